"""Paimon's writer in Java and our commits on the same tables: nothing is lost on either side."""

from __future__ import annotations

import json
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pyarrow as pa
import pytest

pytest.importorskip("pypaimon_rust")
pytest.importorskip("pyspark")

import secure_bloom as sb
from secure_bloom.lakes.paimon.rows import text_of
from secure_bloom.lakes.paimon.schema import AtomicType
from secure_bloom.lakes.paimon.table import paimon_table
from testing.paimon_java import JARS, MISSING, JavaWriter, paimon_java
from testing.paimon_tables import Warehouse, damage, files_below, latest
from tests.paimon.test_table_kills import CHILD

# `make test-all` installs them.
pytestmark = [pytest.mark.slow, pytest.mark.skipif(not JARS.is_dir(), reason=MISSING)]
OPTIONS = {"name": sb.paimon.IndexOptions(items=100, fpp=1e-6)}
SCHEMA = pa.schema([("id", pa.int64()), ("name", pa.string()), ("part", pa.string())])


@pytest.fixture(scope="module")
def java() -> Iterator[JavaWriter]:
    with paimon_java() as writer:
        yield writer


@pytest.fixture
def lake(tmp_path: Path) -> Warehouse:
    return Warehouse(path=str(tmp_path))


@pytest.fixture(params=["", "deletion-vectors"])
def keyed(lake: Warehouse, java: JavaWriter, request: pytest.FixtureRequest) -> str:
    """A table with a primary key: an older and a newer version of a row, in two files."""
    options = {"deletion_vectors__enabled": "true"} if request.param else {}
    folder = lake.create(
        "id bigint, name string, part string, primary key (part, id)",
        partitioned="part",
        bucket="1",
        file_index__in_manifest_threshold="0 b",
        **options,
    )
    insert(java, lake, (1, "old"), (2, "two"), (9, "old"))
    insert(java, lake, (1, "new"), (3, "three"))
    return folder


def insert(java: JavaWriter, lake: Warehouse, *rows: tuple[int, str]) -> None:
    given = [{"id": number, "name": name, "part": "x"} for number, name in rows]
    java.insert(lake.path, given, SCHEMA)


def names(rows: list[dict[str, object]]) -> list[tuple[object, object]]:
    return sorted((row["id"], row["name"]) for row in rows)


ROWS = [(1, "new"), (2, "two"), (3, "three"), (9, "old")]


def test_a_compacted_table_is_read_and_gets_indexes_of_all_columns(
    lake: Warehouse, java: JavaWriter, keyed: str
) -> None:
    java.compact(lake.path)
    assert names(sb.read_table(keyed).to_pylist()) == ROWS
    assert names(sb.read_table(keyed, where="name = 'old'").to_pylist()) == [(9, "old")]
    report = sb.paimon.build_index(keyed, OPTIONS)
    assert {file.status for file in report.files} == {"built"}
    assert names(lake.rows()) == ROWS
    assert names(lake.rows("name = 'old'")) == [(9, "old")]
    for file in paimon_table(keyed).files:
        damage(file)
    # Between the bounds of the file, and ruled out by our index.
    assert lake.rows("name = 'other'") == []


def test_a_newer_version_of_a_row_wins_over_an_indexed_one(
    lake: Warehouse, java: JavaWriter, keyed: str
) -> None:
    java.compact(lake.path)
    sb.paimon.build_index(keyed, OPTIONS)
    insert(java, lake, (9, "newest"))
    java.compact(lake.path)
    assert lake.rows("name = 'newest'") == [{"id": 9, "name": "newest", "part": "x"}]
    assert lake.rows("name = 'old'") == []
    sb.paimon.build_index(keyed, OPTIONS)
    assert names(lake.rows()) == [*ROWS[:3], (9, "newest")]
    assert names(sb.read_table(keyed, where="id = 9").to_pylist()) == [(9, "newest")]


def test_files_that_are_merged_get_no_index_of_other_columns(
    lake: Warehouse, java: JavaWriter
) -> None:
    folder = lake.create("id bigint, name string, part string, primary key (id)", bucket="1")
    insert(java, lake, (1, "old"), (2, "two"))
    insert(java, lake, (1, "new"))
    report = sb.paimon.build_index(folder, OPTIONS)
    assert {file.status for file in report.files} == {"unchanged"}
    assert all("not part of the primary key" in str(file.note) for file in report.files)
    with pytest.raises(sb.UnsupportedFeatureError, match="not compacted"):
        sb.read_table(folder)
    report = sb.paimon.build_index(folder, ["id"])
    assert {file.status for file in report.files} == {"built"}
    assert lake.rows("name = 'old'") == []
    java.compact(lake.path)
    assert names(lake.rows()) == [(1, "new"), (2, "two")]


def test_expiry_in_java_removes_what_our_snapshots_do_not_need(
    lake: Warehouse, java: JavaWriter, keyed: str
) -> None:
    java.compact(lake.path)
    sb.paimon.build_index(keyed, OPTIONS)
    sb.paimon.build_index(keyed, ["id"])
    assert java.expire(lake.path) >= 4
    table = paimon_table(keyed)
    left = {Path(name).name for name in files_below(keyed) if "bucket-" in name}
    assert {name for name in left if name.endswith(".parquet")} == {
        Path(path).name for path in table.files
    }
    # An index that another one replaced stays until Paimon removes orphan files.
    assert {name for file in table.files.values() for name in file.index_names} < left
    assert names(lake.rows()) == ROWS
    assert names(lake.rows("name = 'old'")) == [(9, "old")]


@pytest.mark.parametrize("when", ["before", "after"])
def test_paimons_removal_of_orphans_takes_what_a_killed_run_left(
    lake: Warehouse, java: JavaWriter, when: str
) -> None:
    folder = lake.create("id bigint, name string", file_index__in_manifest_threshold="0 b")
    lake.insert([(1, "a")])
    sb.paimon.build_index(folder, ["name"])
    java.table(lake.path).createTag("before")
    lake.insert([(2, "b")])
    before, rows = files_below(folder), lake.rows()
    # The fourth file of a commit is its snapshot.
    subprocess.run([sys.executable, "-c", CHILD, folder, "4", when], timeout=120, check=False)
    left = files_below(folder)
    assert left.keys() > before.keys()
    removed = java.remove_orphans(lake.path)
    if when == "before":
        assert files_below(folder) == before
    else:
        # The snapshot is there, so all that the run wrote is named.
        assert removed == []
    assert lake.rows() == rows
    assert lake.rows("name = 'b'") == [{"id": 2, "name": "b"}]
    assert lake.sql("select * from t version as of 'before'") == [{"id": 1, "name": "a"}]


def test_an_index_that_another_one_replaced_stays_while_a_tag_names_it(
    lake: Warehouse, java: JavaWriter
) -> None:
    """Afterwards Paimon's removal of orphans takes it, once its writer has merged manifests."""
    folder = lake.create(
        "id bigint, name string",
        file_index__in_manifest_threshold="0 b",
        manifest__merge_min_count="1",
        manifest__full_compaction_threshold_size="1 b",
    )
    lake.insert([(1, "a")])
    sb.paimon.build_index(folder, ["id"])
    [[old]] = [file.index_names for file in paimon_table(folder).files.values()]
    java.table(lake.path).createTag("before")
    sb.paimon.build_index(folder, ["name"])
    java.insert(lake.path, [{"id": 2, "name": "b"}], TWO)
    java.expire(lake.path)
    assert java.remove_orphans(lake.path) == []
    assert Path(folder, "bucket-0", old).exists()
    java.table(lake.path).deleteTag("before")
    assert old in java.remove_orphans(lake.path)
    assert not Path(folder, "bucket-0", old).exists()
    assert names(lake.rows()) == [(1, "a"), (2, "b")]
    assert names(sb.read_table(folder, where="name = 'a'").to_pylist()) == [(1, "a")]


def test_branches_and_tags_stay(lake: Warehouse, java: JavaWriter, keyed: str) -> None:
    java.compact(lake.path)
    java.table(lake.path).createTag("before")
    java.table(lake.path).createBranch("side", "before")
    kept = {
        name: it for name, it in files_below(keyed).items() if name.startswith(("branch", "tag"))
    }
    assert kept
    sb.paimon.build_index(keyed, OPTIONS)
    java.expire(lake.path)
    after = files_below(keyed)
    assert {name: after[name] for name in kept} == kept
    assert names(lake.sql("select * from t version as of 'before'")) == ROWS
    assert names(lake.sql("select * from t$branch_side")) == ROWS
    # The branch lists no index of ours, and all that it lists is there.
    side = json.loads(Path(keyed, "branch/branch-side").rglob("snapshot-*").__next__().read_text())
    assert side["id"] < latest(keyed)["id"]


@pytest.fixture
def branched(lake: Warehouse, java: JavaWriter) -> str:
    """A table and its branch ``side``, with a row of both and a row of each."""
    folder = lake.create("id bigint, name string", file_index__in_manifest_threshold="0 b")
    lake.insert([(1, "both"), (100, "both")])
    java.table(lake.path).createTag("before")
    java.table(lake.path).createBranch("side", "before")
    java.insert(lake.path, [{"id": 2, "name": "side"}], TWO, SIDE)
    java.insert(lake.path, [{"id": 3, "name": "main"}], TWO)
    return folder


TWO, SIDE = pa.schema(list(SCHEMA)[:2]), "t$branch_side"
OF_SIDE, OF_MAIN = (
    [(1, "both"), (2, "side"), (100, "both")],
    [(1, "both"), (3, "main"), (100, "both")],
)


def test_a_branch_is_read_and_gets_indexes_of_its_own(
    lake: Warehouse, java: JavaWriter, branched: str
) -> None:
    side = f"{branched}$branch_side"
    before = files_below(branched)
    report = sb.paimon.build_index(side, {"id": OPTIONS["name"]})
    assert [file.status for file in report.files] == ["built", "built"]
    changed = {name for name, it in files_below(branched).items() if before.get(name) != it}
    assert {name.partition("/")[0] for name in changed} == {"branch", "manifest", "bucket-0"}
    assert names(lake.sql(f"select * from {SIDE}")) == OF_SIDE
    assert names(lake.rows()) == OF_MAIN
    assert names(sb.read_table(f"paimon://{lake.path}/default.{SIDE}").to_pylist()) == OF_SIDE
    assert {it.verdict for it in sb.paimon.probe(side, "id = 57").files} == {sb.Verdict.ABSENT}
    assert {it.verdict for it in sb.paimon.probe(branched, "id = 57").files} == {
        sb.Verdict.NO_FILTER
    }
    # Java goes on with the branch, and removes no file that only the branch has.
    java.insert(lake.path, [{"id": 4, "name": "side"}], TWO, SIDE)
    assert java.remove_orphans(lake.path) == []
    assert names(lake.sql(f"select * from {SIDE} where id = 4")) == [(4, "side")]
    for path in paimon_table(f"{branched}/branch/branch-side").files.values():
        if path.index_names:
            damage(path.path)
    assert lake.sql(f"select * from {SIDE} where id = 57") == []


def test_a_branch_that_is_not_there_is_named_with_those_that_are(branched: str) -> None:
    with pytest.raises(sb.PolicyError, match="the table has no branch sid") as error:
        sb.paimon.build_index(f"{branched}$branch_sid", ["id"])
    assert error.value.hint == "its branches: side"
    assert sb.paimon.build_index(f"{branched}$branch_main", ["id"], dry_run=True).files


def test_the_audit_of_a_table_whose_branch_has_schemas_of_its_own(
    lake: Warehouse, java: JavaWriter, branched: str, tmp_path: Path
) -> None:
    paimon = java.jvm.org.apache.paimon
    table = java.table(lake.path, SIDE)
    changes = java.jvm.java.util.ArrayList()
    changes.add(paimon.schema.SchemaChange.renameColumn("name", "email"))
    paimon.schema.SchemaManager(table.fileIO(), table.location(), "side").commitChanges(changes)
    renamed = pa.schema([("id", pa.int64()), ("email", pa.string())])
    java.insert(lake.path, [{"id": 5, "email": "side"}], renamed, SIDE)
    (tmp_path / "policy.toml").write_text('[footer]\nkey = "f"\n[columns.email]\nkey = "k"\n')
    keys = sb.Keyring(master_keys={"f": bytes(16), "k": bytes(16)})
    for place in (branched, f"{branched}$branch_side"):
        found = sb.audit(place, policy=tmp_path / "policy.toml", keys=keys).findings
        assert not any("no such file" in it.message for it in found)
        assert any(it.column == "email" and "smallest" in it.message for it in found)


@pytest.mark.parametrize(
    ("kind", "stored", "values"),
    [
        ("float", pa.float32(), [1.5, 0.1, -0.0, 1e10, 1e-4, float("nan")]),
        ("double", pa.float64(), [123456.789, 1e7, 9999999.0, 1e-3, -2.5e-10]),
    ],
)
def test_folders_of_partitions_are_named_as_java_names_numbers(
    lake: Warehouse, java: JavaWriter, kind: str, stored: pa.DataType, values: list[float]
) -> None:
    folder = lake.create(f"id bigint, p {kind}", partitioned="p")
    schema = pa.schema([("id", pa.int64()), ("p", stored)])
    java.insert(lake.path, [{"id": at, "p": value} for at, value in enumerate(values)], schema)
    table = paimon_table(folder)
    assert sorted(table.files) == sorted(map(str, Path(folder).rglob("data-*")))
    report = sb.paimon.build_index(folder, ["id"], where=f"p >= {values[0]}")
    assert {file.status for file in report.files} == {"built"}


TIMES = [0, 1, 100, 11_045_000, 11_045_120, 86_399_999]
#: Before 1970, in winter, in summer, and in the hour that New York has twice.
MOMENTS = [(-1, 0), (1_704_164_645_100, 123_456), (1_719_900_000_000, 0), (1_730_613_600_000, 0)]


@pytest.mark.parametrize("zone", ["UTC", "America/New_York", "Asia/Kolkata"])
@pytest.mark.parametrize("precision", [0, 1, 3, 6, 9])
def test_folders_of_times_are_named_as_java_casts_them(
    java: JavaWriter, monkeypatch: pytest.MonkeyPatch, zone: str, precision: int
) -> None:
    paimon, lang = java.jvm.org.apache.paimon, java.jvm.java.lang
    monkeypatch.setenv("TZ", zone)
    time.tzset()
    java.jvm.java.util.TimeZone.setDefault(java.jvm.java.util.TimeZone.getTimeZone(zone))
    text = paimon.types.VarCharType(2**31 - 1)
    moments = {it: paimon.data.Timestamp.fromEpochMillis(*it) for it in MOMENTS}
    times = {it: lang.Integer.valueOf(it) for it in TIMES}
    try:
        for root, kind, values in (
            ("TIME", paimon.types.TimeType(precision), times),
            ("TIMESTAMP", paimon.types.TimestampType(precision), moments),
            ("TIMESTAMP_LTZ", paimon.types.LocalZonedTimestampType(precision), moments),
        ):
            cast = paimon.casting.CastExecutors.resolve(kind, text)
            ours = AtomicType(root=root, length=precision)
            for value, java_value in values.items():
                shown = text_of(value, ours, legacy=False)
                assert shown == cast.cast(java_value).toString(), (root, value)
    finally:
        monkeypatch.undo()
        time.tzset()
