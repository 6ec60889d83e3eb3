"""Indexes of a Paimon table are committed, and Paimon's own reader asks them."""

from __future__ import annotations

from pathlib import Path

import pytest

pytest.importorskip("pypaimon_rust")

import secure_bloom as sb
from testing.paimon_tables import Warehouse, damage, files_below, latest

OPTIONS = {"id": sb.paimon.IndexOptions(items=100, fpp=1e-6)}


@pytest.fixture
def lake(tmp_path: Path) -> Warehouse:
    return Warehouse(path=str(tmp_path))


def filled(lake: Warehouse, **options: str) -> str:
    """A table with two data files, partitioned by day."""
    folder = lake.create("id bigint, name string, day date", partitioned="day", **options)
    lake.insert([(2, "a", "date '2024-01-01'"), (100, "b", "date '2024-01-01'")])
    lake.insert([(4, "c", "date '2024-01-02'"), (104, "d", "date '2024-01-02'")])
    return folder


def data_files(folder: str) -> list[str]:
    return sorted(map(str, Path(folder).rglob("data-*.parquet")))


@pytest.mark.parametrize("threshold", ["0 b", "1 kb"])
def test_paimon_leaves_out_files_by_the_index_of_a_commit(lake: Warehouse, threshold: str) -> None:
    folder = filled(lake, file_index__in_manifest_threshold=threshold)
    rows = lake.rows()
    report = sb.paimon.build_index(folder, OPTIONS)
    assert [file.status for file in report.files] == ["built", "built"]
    assert lake.rows() == rows
    for path in data_files(folder):
        damage(path)
    # Between the bounds of both files, and in neither.
    assert lake.rows("id = 57") == []
    with pytest.raises(Exception, match="Parquet"):
        lake.rows("id = 100")


def test_the_snapshot_has_no_new_rows(lake: Warehouse) -> None:
    folder = filled(lake)
    before = latest(folder)
    report = sb.paimon.build_index(folder, OPTIONS)
    after = latest(folder)
    assert after["id"] == before["id"] + 1
    assert (after["commitKind"], after["deltaRecordCount"]) == ("COMPACT", 0)
    assert after["totalRecordCount"] == before["totalRecordCount"]
    assert report.to_dict()["commits"] == [
        {"snapshot": after["id"], "operation": "COMPACT", "files": data_files(folder)}
    ]
    scan = lake.table().new_read_builder().new_incremental_scan(before["id"], after["id"])
    assert scan.plan().splits() == []


def test_data_files_and_old_snapshots_stay_as_they_are(lake: Warehouse) -> None:
    folder = filled(lake)
    before = files_below(folder)
    sb.paimon.build_index(folder, OPTIONS)
    after = files_below(folder)
    hint = "snapshot/LATEST"
    assert {name: after[name] for name in before if name != hint} == {
        name: content for name, content in before.items() if name != hint
    }
    assert after[hint] == b"3"


def test_a_second_run_changes_nothing(lake: Warehouse) -> None:
    folder = filled(lake)
    sb.paimon.build_index(folder, OPTIONS)
    before = files_below(folder)
    report = sb.paimon.build_index(folder, OPTIONS)
    assert {file.status for file in report.files} == {"unchanged"}
    assert files_below(folder) == before


@pytest.mark.parametrize("threshold", ["0 b", "1 kb"])
def test_filters_of_an_index_are_built_anew_if_asked(lake: Warehouse, threshold: str) -> None:
    folder = filled(lake, file_index__in_manifest_threshold=threshold)
    sb.paimon.build_index(
        folder, {"id": sb.paimon.IndexOptions(items=100, fpp=0.5), "name": sb.paimon.IndexOptions()}
    )
    rows, before = lake.rows(), sb.paimon.show(folder).to_dict()
    left = sb.paimon.build_index(folder, OPTIONS)
    assert {str(file.note).partition("; ")[2] for file in left.files} == {
        "replace_filters (--replace-filters) builds them anew"
    }
    report = sb.paimon.build_index(folder, OPTIONS, replace_filters=True)
    assert [(file.status, file.kept) for file in report.files] == [
        ("built", ("name: bloom-filter",))
    ] * 2
    assert len(report.commits) == 1
    assert lake.rows() == rows
    assert sb.paimon.show(folder).to_dict() != before
    # The same filters need no commit, and older ones may come back.
    same = sb.paimon.build_index(folder, OPTIONS, replace_filters=True)
    assert (same.commits, {file.status for file in same.files}) == ((), {"unchanged"})
    older = {"id": sb.paimon.IndexOptions(items=100, fpp=0.5)}
    assert sb.paimon.build_index(folder, older, replace_filters=True).commits
    assert lake.rows() == rows
    assert sb.paimon.build_index(folder, OPTIONS, replace_filters=True).commits
    for path in data_files(folder):
        damage(path)
    assert lake.rows("id = 57") == []


def test_another_column_is_added_to_the_index(lake: Warehouse) -> None:
    folder = filled(lake, file_index__in_manifest_threshold="0 b")
    sb.paimon.build_index(folder, OPTIONS)
    report = sb.paimon.build_index(folder, ["name"])
    assert {file.kept for file in report.files} == {("id: bloom-filter",)}
    for path in data_files(folder):
        damage(path)
    assert lake.rows("id = 57") == []
    assert lake.rows("name = 'bb'") == []


def test_a_dry_run_writes_nothing(lake: Warehouse) -> None:
    folder = filled(lake)
    before = files_below(folder)
    report = sb.paimon.build_index(folder, OPTIONS, dry_run=True)
    assert [file.status for file in report.files] == ["built", "built"]
    assert report.commits[0].snapshot is None
    assert files_below(folder) == before


def test_files_are_chosen_by_partition_and_by_snapshot(lake: Warehouse) -> None:
    folder = filled(lake)
    report = sb.paimon.build_index(folder, OPTIONS, where="day = '2024-01-02'")
    assert [Path(file.path).parts[-3] for file in report.files] == ["day=19724"]
    report = sb.paimon.build_index(folder, ["name"], since=1)
    assert [Path(file.path).parts[-3] for file in report.files] == ["day=19724"]
    with pytest.raises(sb.PolicyError, match="not a partition column"):
        sb.paimon.build_index(folder, OPTIONS, where="id = 5")


def test_a_column_that_partitions_the_table_gets_no_index(lake: Warehouse) -> None:
    folder = filled(lake)
    before = files_below(folder)
    with pytest.raises(sb.PolicyError, match="one value of it in each file") as raised:
        sb.paimon.build_index(folder, ["id", "day"])
    assert (raised.value.column, raised.value.path) == ("day", folder)
    assert files_below(folder) == before
    # Paimon's own writers give it one, too, if the table's options name it.
    lake.sql("alter table t set tblproperties ('file-index.bloom-filter.columns'='day')")
    assert {file.status for file in sb.paimon.build_index(folder).files} == {"built"}


def test_commits_after_every_few_files(lake: Warehouse) -> None:
    folder = filled(lake)
    report = sb.paimon.build_index(folder, OPTIONS, commit_every=1)
    assert [commit.snapshot for commit in report.commits] == [3, 4]
    assert lake.rows("id = 100") != []


def test_columns_are_those_of_the_tables_own_options(lake: Warehouse) -> None:
    folder = filled(lake)
    with pytest.raises(sb.PolicyError, match="the table has no option"):
        sb.paimon.build_index(folder)
    lake.sql("alter table t set tblproperties ('file-index.bloom-filter.columns'='id,name')")
    lake.sql("alter table t set tblproperties ('file-index.bloom-filter.id.items'='50')")
    report = sb.paimon.build_index(folder)
    assert {(c.column, c.items) for file in report.files for c in file.columns} == {
        ("id", 50),
        ("name", 2),
    }
    # Paimon keeps the old name in the option when a column gets another one.
    lake.sql("alter table t rename column name to title")
    with pytest.raises(sb.PolicyError, match="columns names name"):
        sb.paimon.build_index(folder)


def test_a_table_is_named_in_its_warehouse(lake: Warehouse) -> None:
    filled(lake)
    report = sb.paimon.build_index(f"paimon://{lake.path}/default.t", OPTIONS)
    assert len(report.files) == 2


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("default.none", "the warehouse has no such table"),
        ("none", "not the name of a Paimon table"),
        ("none/default.t", "there is no warehouse"),
    ],
)
def test_a_table_that_is_not_there(lake: Warehouse, name: str, message: str) -> None:
    filled(lake)
    with pytest.raises(sb.PolicyError, match=message) as error:
        sb.paimon.build_index(f"paimon://{lake.path}/{name}", OPTIONS)
    assert error.value.hint


@pytest.mark.parametrize("catalog", ["http://localhost:1", "thrift://localhost:9083"])
def test_a_catalog_in_a_service_is_not_asked(catalog: str) -> None:
    with pytest.raises(
        sb.PolicyError, match="catalogs that are a service are not supported"
    ) as error:
        sb.paimon.build_index(f"paimon://{catalog}/default.t", OPTIONS)
    assert error.value.hint == "give the table's folder, which the catalog names"


def test_an_unknown_column_is_named_with_those_that_are_near(lake: Warehouse) -> None:
    folder = filled(lake)
    before = files_below(folder)
    with pytest.raises(sb.PolicyError, match="there is no column nmae") as error:
        sb.paimon.build_index(folder, ["nmae"])
    assert error.value.hint == "did you mean name"
    assert files_below(folder) == before


def test_a_table_of_a_newer_format_is_refused(lake: Warehouse) -> None:
    folder = filled(lake)
    path = Path(folder, "snapshot/snapshot-2")
    path.write_text(path.read_text().replace('"version":3', '"version":4'))
    before = files_below(folder)
    with pytest.raises(sb.UnsupportedFeatureError, match="format version 4"):
        sb.paimon.build_index(folder, OPTIONS)
    assert files_below(folder) == before


def test_a_run_on_files_takes_no_options_of_tables(tmp_path: Path) -> None:
    (tmp_path / "a.parquet").write_bytes(b"")
    with pytest.raises(sb.PolicyError, match="where is an option of a Paimon table"):
        sb.paimon.build_indexes(tmp_path, ["id"], where="a = 1")


def test_add_refuses_the_table(lake: Warehouse) -> None:
    folder = filled(lake)
    with pytest.raises(sb.UnsupportedFeatureError, match="a Paimon table") as error:
        sb.add_bloom_filters(folder, columns=["id"])
    assert "paimon build" in str(error.value.hint)


POLICY = """
[footer]
key = "k_footer"
[columns.email]
key = "k_pii"
"""


def test_a_policy_rules_the_columns_by_the_tables_names(lake: Warehouse, tmp_path: Path) -> None:
    """The file calls the sensitive column by a name that no policy has."""
    (tmp_path / "policy.toml").write_text(POLICY)
    folder = lake.create("id bigint, mail string")
    lake.insert([(1, "a")])
    lake.sql("alter table t rename column mail to email")
    before = files_below(folder)
    [report] = sb.paimon.build_indexes(
        folder, ["email"], policy=tmp_path / "policy.toml", keys=KEYS
    ).files
    assert report.status == "failed"
    assert files_below(folder) == before


KEYS = sb.Keyring(master_keys={"k_footer": bytes(16), "k_pii": bytes(16)})


def test_a_table_beside_other_paths_is_refused(lake: Warehouse, tmp_path: Path) -> None:
    folder = filled(lake)
    before = files_below(folder)
    for others in ([folder, folder], [folder, str(tmp_path)], [*data_files(folder), folder]):
        with pytest.raises(sb.PolicyError, match="a Paimon table is given alone"):
            sb.paimon.build_indexes(others, OPTIONS)
    assert files_below(folder) == before
