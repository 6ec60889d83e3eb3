"""Paimon tables are listed as their own engine lists them."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pytest

pytest.importorskip("pypaimon_rust")

import secure_bloom as sb
from secure_bloom.errors import FormatError
from secure_bloom.lakes.avro_files import decode, decoding_room, encode
from secure_bloom.lakes.paimon.names import is_table, table_folder
from secure_bloom.lakes.paimon.schema import read_schema
from secure_bloom.lakes.paimon.snapshot import latest_snapshot, snapshot_at, snapshot_numbers
from secure_bloom.lakes.paimon.table import paimon_table
from secure_bloom.lakes.table_format import TableVersion
from testing.paimon_tables import Warehouse, damage, latest


@pytest.fixture
def lake(tmp_path: Path) -> Warehouse:
    return Warehouse(path=str(tmp_path))


PARTITIONS = [
    ("string", "a b/c=%?*\\é\"'x"),
    ("string", " "),
    ("string", None),
    ("bigint", -5),
    ("date", "date '1969-12-31'"),
    ("boolean", True),
    ("decimal(9, 2)", "1.50"),
    ("decimal(25, 3)", "-1234567890123456789.125"),
    ("timestamp(3)", "timestamp '2024-01-02 03:04:05.1'"),
    ("timestamp(6)", "timestamp '2024-01-02 00:00:00'"),
    ("timestamp(6)", "timestamp '1969-12-31 23:59:59.500001'"),
    ("timestamp(6)", None),
]


def partitioned(lake: Warehouse, kind: str, value: object, **options: str) -> str:
    folder = lake.create(f"id bigint, p {kind}", partitioned="p", **options)
    shown = value.replace("'", "''") if isinstance(value, str) and kind == "string" else value
    quoted = f"'{shown}'" if kind == "string" and value is not None else shown
    lake.sql(f"insert into t values (1, {'null' if value is None else quoted})")
    return folder


@pytest.mark.parametrize(("kind", "value"), PARTITIONS)
@pytest.mark.parametrize("legacy", ["true", "false"])
def test_the_paths_of_partitions_are_those_of_the_files(
    lake: Warehouse, kind: str, value: object, legacy: str
) -> None:
    folder = partitioned(lake, kind, value, partition__legacy_name=legacy)
    assert sorted(paimon_table(folder).files) == sorted(map(str, Path(folder).rglob("data-*")))
    assert sb.read_table(folder).num_rows == 1
    where = "p is null" if value is None else "p is not null"
    report = sb.paimon.build_index(folder, ["id"], where=where)
    assert [file.status for file in report.files] == ["built"]


@pytest.mark.parametrize("legacy", ["true", "false"])
@pytest.mark.parametrize(
    ("kind", "stored", "value"),
    [
        ("TIME(3)", pa.time32("ms"), 11_045_120),
        ("TIMESTAMP(3) WITH LOCAL TIME ZONE", pa.timestamp("ms", "UTC"), 1_704_164_645_100),
        ("TIMESTAMP(6) WITH LOCAL TIME ZONE", pa.timestamp("us", "UTC"), -1),
    ],
)
def test_the_paths_of_partitions_that_sql_cannot_name(
    lake: Warehouse, kind: str, stored: pa.DataType, value: int, legacy: str
) -> None:
    folder = lake.create("id bigint, p int", partitioned="p", partition__legacy_name=legacy)
    schema = Path(folder, "schema/schema-0")
    schema.write_text(schema.read_text().replace('"INT"', f'"{kind}"'))
    builder = lake.table().new_batch_write_builder()
    writer = builder.new_write()
    columns = [pa.array([1], pa.int64()), pa.array([value], stored)]
    writer.write_arrow(pa.record_batch(columns, names=["id", "p"]))
    builder.new_commit().commit(writer.prepare_commit())
    assert sorted(paimon_table(folder).files) == sorted(map(str, Path(folder).rglob("data-*")))
    assert sb.read_table(folder)["p"].to_pylist() == [row["p"] for row in lake.rows()]
    shown = columns[1][0].as_py()
    report = sb.paimon.build_index(folder, ["id"], where=f"p = '{shown}'")
    assert [file.status for file in report.files] == ["built"]
    assert sb.paimon.build_index(folder, ["id"], where=f"p < '{shown}'").files == ()


def test_a_partition_of_bytes_has_a_name_only_without_legacy_names(lake: Warehouse) -> None:
    folder = partitioned(lake, "binary", "X'616263'", partition__legacy_name="false")
    assert sorted(paimon_table(folder).files) == sorted(map(str, Path(folder).rglob("data-*")))
    path = Path(folder, "schema/schema-0")
    path.write_text(path.read_text().replace('"partition.legacy-name":"false"', '"a":"b"'))
    with pytest.raises(sb.UnsupportedFeatureError, match="of type BINARY"):
        paimon_table(folder)


def test_null_has_the_name_that_the_table_gives_it(lake: Warehouse) -> None:
    folder = partitioned(lake, "string", None, partition__default_name="nobody")
    [path] = paimon_table(folder).files
    assert "/p=nobody/" in path


@pytest.mark.parametrize(
    ("where", "found"),
    [("p = 1.5", 1), ("p > 1.5", 0), ("p in (1.50, 2)", 1), ("p = 2", 0)],
)
def test_files_are_chosen_by_a_decimal(lake: Warehouse, where: str, found: int) -> None:
    folder = partitioned(lake, "decimal(9, 2)", "1.50")
    assert len(sb.paimon.build_index(folder, ["id"], where=where, dry_run=True).files) == found


@pytest.mark.parametrize(
    ("where", "found"), [("p = timestamp '2024-01-02 03:04:05'", 1), ("p < '2024-01-02'", 0)]
)
def test_files_are_chosen_by_a_time(lake: Warehouse, where: str, found: int) -> None:
    folder = partitioned(lake, "timestamp(6)", "timestamp '2024-01-02 03:04:05'")
    assert len(sb.paimon.build_index(folder, ["id"], where=where, dry_run=True).files) == found


def test_a_condition_that_no_file_matches_is_a_note_with_the_partitions(lake: Warehouse) -> None:
    folder = partitioned(lake, "decimal(9, 2)", "1.50")
    report = sb.paimon.build_index(folder, ["id"], where="p = 2", dry_run=True)
    assert report.notes == ("no live file has p = 2: p is '1.50'",)
    found = sb.paimon.build_index(folder, ["id"], where="p = 1.5", dry_run=True)
    assert "no live file" not in str(found.notes)


def test_files_at_external_paths_get_indexes_beside_them(lake: Warehouse, tmp_path: Path) -> None:
    outside = tmp_path / "elsewhere"
    folder = lake.create(
        "id bigint, name string",
        file_index__in_manifest_threshold="0 b",
        **{"data-file.external-paths": f"file://{outside}"},
        **{"data-file.external-paths.strategy": "round-robin"},
    )
    lake.insert([(1, "a"), (100, "b")])
    [path] = paimon_table(folder).files
    assert path.startswith(f"{outside}/")
    assert sb.read_table(folder, where="id = 100").to_pylist() == [{"id": 100, "name": "b"}]
    sb.paimon.build_index(folder, {"id": sb.paimon.IndexOptions(items=100, fpp=1e-6)})
    [index] = outside.rglob("*.index")
    assert index.parent == Path(path).parent
    damage(path)
    assert lake.rows("id = 57") == []


def test_an_audit_looks_for_old_files_at_external_paths(lake: Warehouse, tmp_path: Path) -> None:
    folder = lake.create(
        "id bigint, email string",
        **{"data-file.external-paths": f"file://{tmp_path}/elsewhere"},
        **{"data-file.external-paths.strategy": "round-robin"},
    )
    lake.insert([(1, "a@example.org")])
    [live] = map(Path, paimon_table(folder).files)
    old = live.with_name("data-old.parquet")
    old.write_bytes(live.read_bytes())
    policy = tmp_path / "policy.toml"
    policy.write_text('[footer]\nkey = "k"\n[columns.email]\nkey = "k"\n')
    report = sb.audit(folder, policy=policy, without_keys=True)
    shown = {it.path for it in report.findings if it.id == "column-in-clear"}
    assert shown == {str(live), str(old)}


def test_an_external_path_that_the_table_does_not_name_is_refused(
    lake: Warehouse, tmp_path: Path
) -> None:
    folder = lake.create(
        "id bigint",
        **{"data-file.external-paths": f"file://{tmp_path}/elsewhere"},
        **{"data-file.external-paths.strategy": "round-robin"},
    )
    lake.insert([(1,)])
    path = Path(folder, "schema/schema-0")
    path.write_text(path.read_text().replace("/elsewhere", "/elsewher"))
    with pytest.raises(sb.UnsupportedFeatureError, match="at an external path"):
        sb.read_table(folder)


def test_files_that_were_taken_away_are_not_live(lake: Warehouse) -> None:
    folder = lake.create("id bigint", row_tracking__enabled="true")
    lake.insert([(1,), (2,)])
    lake.insert([(3,)])
    assert len(paimon_table(folder).files) == 2
    lake.sql("delete from t where id = 2")
    table = paimon_table(folder)
    assert sum(file.entry.file["_ROW_COUNT"] for file in table.files.values()) == 2
    assert len(paimon_table(folder, TableVersion(snapshot=1)).files) == 1
    with pytest.raises(sb.PolicyError, match="has no snapshot 9"):
        paimon_table(folder, TableVersion(snapshot=9))
    with pytest.raises(sb.PolicyError, match="not versions"):
        paimon_table(folder, TableVersion(version=1))


def test_snapshots_are_found_without_the_hint(lake: Warehouse) -> None:
    folder = lake.create("id bigint")
    assert latest_snapshot(folder) is None
    lake.insert([(1,)])
    lake.insert([(2,)])
    Path(folder, "snapshot/LATEST").write_text("1")
    assert snapshot_numbers(folder) == [1, 2]
    found = latest_snapshot(folder)
    assert found is not None
    assert found.id == 2
    assert snapshot_at(folder, "2999-01-01").id == 2
    with pytest.raises(sb.PolicyError, match="no snapshot until that time"):
        snapshot_at(folder, "1999-01-01")


def test_columns_keep_their_ids(lake: Warehouse) -> None:
    folder = lake.create("id bigint, name string")
    lake.insert([(1, "a")])
    lake.sql("alter table t rename column name to title")
    assert [f.name for f in read_schema(folder, 1).fields] == ["id", "title"]
    table = paimon_table(folder)
    [file] = table.files.values()
    assert table.mapping(file).logical("name") == "title"


def test_a_table_is_recognized(lake: Warehouse, tmp_path: Path) -> None:
    folder = lake.create("id bigint")
    assert is_table(folder)
    assert table_folder(f"paimon://{lake.path}/default.t") == folder
    (tmp_path / "plain/schema").mkdir(parents=True)
    assert not is_table(str(tmp_path / "plain"))


@pytest.mark.parametrize("name", ["../x", "a/b", "", ".."])
def test_names_that_lead_elsewhere_are_refused(lake: Warehouse, name: str) -> None:
    folder = lake.create("id bigint")
    lake.insert([(1,)])
    path = Path(folder, "snapshot/snapshot-1")
    path.write_text(path.read_text().replace(latest(folder)["deltaManifestList"], name))
    with pytest.raises(sb.FormatError, match="by a path"):
        paimon_table(folder)


@pytest.mark.parametrize("damage", ["{", "[]", '{"id": "x"}', '{"id": 1}', "[" * 100_000])
def test_damaged_snapshots_and_schemas_are_refused(lake: Warehouse, damage: str) -> None:
    folder = lake.create("id bigint")
    lake.insert([(1,)])
    for name in ("snapshot/snapshot-1", "schema/schema-0"):
        path = Path(folder, name)
        before = path.read_text()
        path.write_text(damage)
        with pytest.raises(sb.FormatError):
            paimon_table(folder)
        path.write_text(before)
    paimon_table(folder)


def test_a_list_that_names_a_manifest_many_times_is_damaged(lake: Warehouse) -> None:
    """A few bytes of the list, and the time for all of a manifest, each time."""
    folder = lake.create("id bigint")
    lake.insert([(1,)])
    lake.insert([(2,)])
    path = Path(folder, "manifest", latest(folder)["baseManifestList"])
    listed = decode(path.read_bytes(), decoding_room())
    path.write_bytes(encode(listed.schema, [*listed.records, *listed.records]))
    with pytest.raises(FormatError, match="name a manifest twice"):
        paimon_table(folder)
