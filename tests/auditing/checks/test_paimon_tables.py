"""An audit says what the metadata of a Paimon table shows of sensitive columns."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("pypaimon_rust")

import secure_bloom as sb
from secure_bloom.errors import UnsupportedFeatureError
from testing.paimon_tables import Warehouse

POLICY = """
[footer]
key = "k_footer"
[columns.email]
key = "k_pii"
[columns.day]
key = "k_pii"
"""


@pytest.fixture
def lake(tmp_path: Path) -> Warehouse:
    (tmp_path / "policy.toml").write_text(POLICY)
    return Warehouse(path=str(tmp_path / "lake"))


def findings(lake: Warehouse, path: str, name: str) -> set[tuple[str | None, str | None]]:
    report = sb.audit(path, policy=Path(lake.path).parent / "policy.toml", without_keys=True)
    return {(it.path, it.column) for it in report.findings if it.id == name}


@pytest.mark.parametrize("threshold", ["0 b", "1 kb"])
def test_an_index_in_clear_of_a_sensitive_column_is_found(lake: Warehouse, threshold: str) -> None:
    folder = lake.create("id bigint, mail string", file_index__in_manifest_threshold=threshold)
    lake.insert([(1, "a"), (2, "b")])
    # The file calls the column by a name that no policy has.
    lake.sql("alter table t rename column mail to email")
    assert findings(lake, folder, "paimon-index-in-clear") == set()
    sb.paimon.build_index(folder, ["email"])
    found = findings(lake, folder, "paimon-index-in-clear")
    assert {column for _, column in found} == {"email"}
    assert findings(lake, f"paimon://{lake.path}/default.t", "paimon-index-in-clear") == found


def test_bounds_and_partitions_in_manifests_are_found(lake: Warehouse) -> None:
    folder = lake.create(
        "id bigint, mail string, day date", partitioned="day", row_tracking__enabled="true"
    )
    lake.insert([(1, "a", "date '2024-01-01'")])
    lake.sql("alter table t rename column mail to email")
    assert findings(lake, folder, "table-log-in-clear") == {(folder, "day"), (folder, "email")}
    # Older manifests count too.
    lake.sql("delete from t where id = 1")
    assert (folder, "email") in findings(lake, folder, "table-log-in-clear")


def test_a_column_that_was_renamed_has_its_older_names_too(lake: Warehouse) -> None:
    """The policy knows the name that the column had: before the file was written, or in it."""
    folder = lake.create("id bigint, email string", file_index__in_manifest_threshold="1 kb")
    lake.insert([(1, "a")])
    lake.sql("alter table t rename column email to e2")
    lake.insert([(2, "b")])
    lake.sql("alter table t rename column e2 to contact")
    sb.paimon.build_index(folder, ["contact"])
    assert findings(lake, folder, "table-log-in-clear") == {(folder, "email")}
    assert {column for _, column in findings(lake, folder, "paimon-index-in-clear")} == {"email"}
    clear = findings(lake, folder, "column-in-clear")
    assert {column for _, column in clear} == {"email"}
    assert len({path for path, _ in clear}) == 2


Fields = list[dict[str, Any]]


def _renamed(fields: Fields) -> None:
    fields[1]["type"]["fields"][0]["name"] = "contact"


def _dropped(fields: Fields) -> None:
    del fields[1]["type"]["fields"][0]


def _made_anew(fields: Fields) -> None:
    fields[1]["type"]["fields"][0]["id"] = 9


def _both_renamed(fields: Fields) -> None:
    _renamed(fields)
    fields[1]["name"] = "people"


def _with_default(fields: Fields) -> None:
    fields[1]["defaultValue"] = "a@example.com"


def _change(folder: str, change: Callable[[Fields], None]) -> None:
    """Give a table of one schema another one."""
    schema = json.loads(Path(folder, "schema", "schema-0").read_text())
    change(schema["fields"])
    schema["id"] = 1
    Path(folder, "schema", "schema-1").write_text(json.dumps(schema))


@pytest.mark.parametrize("change", [_renamed, _dropped, _made_anew, _both_renamed])
def test_a_member_of_a_structure_is_judged_by_the_names_it_had(
    lake: Warehouse, change: Callable[[Fields], None]
) -> None:
    folder = lake.create("id bigint, p struct<email: string, n: bigint>")
    lake.sql("insert into t values (1, named_struct('email', 'a@example.com', 'n', 2))")
    policy = Path(lake.path).parent / "policy.toml"
    policy.write_text('[footer]\nkey = "k_footer"\n[columns."p.email"]\nkey = "k_pii"\n')
    _change(folder, change)
    assert {it for _, it in findings(lake, folder, "column-in-clear")} == {"p.email"}
    assert findings(lake, folder, "policy-column-unknown") == set()
    with pytest.raises(UnsupportedFeatureError, match="were changed after files were written"):
        sb.read_table(folder)


def test_defaults_and_statistics_show_values(lake: Warehouse) -> None:
    folder = lake.create("id bigint, email string", metadata__stats_mode="none")
    lake.insert([(1, "a")])
    assert findings(lake, folder, "table-log-in-clear") == set()
    _change(folder, _with_default)
    lake.sql("alter table t rename column email to contact")
    assert findings(lake, folder, "table-log-in-clear") == {(folder, "email")}
    Path(folder, "schema", "schema-1").unlink()
    Path(folder, "schema", "schema-2").unlink()
    statistics = {"colStats": {"email": {"colId": 1, "min": "a", "max": "b"}, "id": {}}}
    Path(folder, "statistics").mkdir()
    Path(folder, "statistics", "stat-0").write_text(json.dumps({"schemaId": 0} | statistics))
    assert findings(lake, folder, "table-log-in-clear") == {(folder, "email")}


def test_a_global_index_holds_all_values(lake: Warehouse) -> None:
    tracked = {"row_tracking__enabled": "true", "data_evolution__enabled": "true"}
    folder = lake.create("id bigint, mail string", metadata__stats_mode="none", **tracked)
    lake.sql("insert into t (id, mail) values (1, 'a@example.com')")
    made = "CALL sys.create_global_index(table => 'default.t', index_type => 'btree', %s)"
    lake.sql(made % "index_column => 'id'")
    assert findings(lake, folder, "paimon-index-in-clear") == set()
    assert notes(lake, folder) == {"paimon-index-present"}
    lake.sql(made % "index_column => 'mail'")
    lake.sql("alter table t rename column mail to email")
    assert findings(lake, folder, "paimon-index-in-clear") == {(folder, "email")}


def test_an_index_in_a_manifest_gets_a_note_or_a_finding_also_of_an_older_snapshot(
    lake: Warehouse,
) -> None:
    folder = lake.create("id bigint, email string", file_index__in_manifest_threshold="1 kb")
    lake.insert([(1, "a")])
    sb.paimon.build_index(folder, ["id"])
    assert notes(lake, folder) == {"paimon-index-present"}
    sb.paimon.build_index(folder, ["email"])
    lake.sql("insert overwrite t values (2, 'b')")
    assert findings(lake, folder, "paimon-index-in-clear") == {(folder, "email")}


def notes(lake: Warehouse, path: str) -> set[str]:
    report = sb.audit(path, policy=Path(lake.path).parent / "policy.toml", without_keys=True)
    return {it.id for it in report.notes} - {"policy-column-looks-sensitive", "other-files"}
