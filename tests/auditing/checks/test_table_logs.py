"""What the logs of tables show of sensitive columns."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from pyiceberg.catalog.memory import InMemoryCatalog
from pyiceberg.transforms import IdentityTransform

import secure_bloom as sb
from secure_bloom.auditing.checks import copies
from secure_bloom.auditing.checks.table_logs import check_table_logs
from secure_bloom.encryption.policy import KeyPolicy
from secure_bloom.lakes import list_tables
from testing.delta_logs import add, column, commit, log_of, metadata, protocol
from testing.tables import KEYRING, Mode, customers, write
from tests.auditing.datasets import ids
from tests.auditing.examples import POLICY as EXAMPLE_POLICY
from tests.auditing.examples import Example, rules, sound

POLICY = '[footer]\nkey = "k1"\n[columns.email]\nkey = "k2"\n[columns."person.iban"]\nkey = "k2"\n'


def found(table: Path, policy: Path) -> list[tuple[str | None, str]]:
    policy.write_text(POLICY)
    findings = list(check_table_logs(list_tables([str(table)]), KeyPolicy.load(policy)))
    assert all(finding.path == str(table) for finding in findings)
    return [(it.column, it.what) for it in findings]


def bounds(**values: Any) -> str:
    return json.dumps({"numRecords": 2, "minValues": values, "maxValues": values})


def test_files_are_counted_and_columns_without_a_key_are_nobodys_secret(tmp_path: Path) -> None:
    table = tmp_path / "t"
    person = {"type": "struct", "fields": [column("iban", "string"), column("age")]}
    commit(table, 0, protocol(), metadata(column("email", "string"), column("person", person)))
    inside = {"iban": "DE1", "age": 7}
    commit(table, 1, add("a", stats=bounds(email="a", person=inside)), add("b", stats=bounds()))
    commit(table, 2, add("c", stats=bounds(email="secret")), add("d"))
    told = found(table, tmp_path / "p.toml")
    assert [name for name, _ in told] == ["email", "person.iban"]
    assert told[0][1].endswith("in 2 files")
    assert "secret" not in str(told)


@pytest.mark.parametrize("mode", ["name", "id"])
def test_statistics_have_physical_names(tmp_path: Path, mode: str) -> None:
    table = tmp_path / "t"
    names = {"delta.columnMapping.physicalName": "col-1", "delta.columnMapping.id": 1}
    columns = [column("email", "string", **names)]
    mapped = metadata(*columns, delta_columnMapping_mode=mode)
    commit(table, 0, protocol("columnMapping"), mapped)
    commit(table, 1, add("a", stats=json.dumps({"minValues": {"col-1": "a"}})))
    assert [name for name, _ in found(table, tmp_path / "p.toml")] == ["email"]


def test_a_log_without_bounds_shows_nothing(tmp_path: Path) -> None:
    table = tmp_path / "t"
    commit(table, 0, protocol(), metadata(column("email", "string")))
    counts = json.dumps({"numRecords": 1, "nullCount": {"email": 0}, "minValues": {"email": None}})
    commit(table, 1, add("a", stats=counts))
    assert found(table, tmp_path / "p.toml") == []


def test_statistics_that_are_no_json_are_an_error_without_their_text(tmp_path: Path) -> None:
    table = tmp_path / "t"
    commit(table, 0, protocol(), metadata(column("email", "string")))
    commit(table, 1, add("a", stats='{"minValues": {"email": "secret'))
    policy = KeyPolicy(footer_key="k1", columns=rules(email="k2"))
    (finding,) = check_table_logs(list_tables([str(table)]), policy)
    assert (finding.id, finding.path) == ("unchecked-file", str(log_of(table) / f"{1:020}.json"))
    assert "secret" not in finding.message


def test_values_that_partition_a_delta_table_are_in_its_log(tmp_path: Path) -> None:
    table = customers(30).drop_columns("email")
    path = sound(tmp_path, table=table, column_keys={"k_finance": ["iban"]})
    columns = (column(name, "string") for name in ("email", "iban"))
    commit(tmp_path, 0, protocol(), metadata(*columns, partitions=["email"]))
    values = {"email": "user1@example.com"}
    commit(tmp_path, 1, add(path.name, path.stat().st_size, partitionValues=values))
    (finding,) = Example(path=tmp_path).audit().findings
    assert (finding.id, finding.column) == ("table-log-in-clear", "email")
    assert "user1" not in finding.message


def test_bounds_in_the_manifests_of_an_iceberg_table_are_found(tmp_path: Path) -> None:
    catalog = InMemoryCatalog("tests", warehouse=str(tmp_path))
    catalog.create_namespace("db")
    rows = pa.table({"email": ["u@example.com"], "city": ["rome"]})
    schema = pa.schema({"email": pa.string(), "city": pa.string()})
    table = catalog.create_table("db.t", schema=schema)
    with table.update_spec() as update:
        update.add_field("city", IdentityTransform(), "town")
    table.append(rows.cast(schema))
    policy = KeyPolicy(footer_key="k_footer", columns=rules(email="k_pii", city="k_pii"))
    tables = list_tables([table.metadata_location])
    told = {(it.column, "partition" in it.what) for it in check_table_logs(tables, policy)}
    shown = {("email", False), ("city", False), ("city", True)}
    assert told == shown
    with table.update_schema(allow_incompatible_changes=True) as change:
        change.delete_column("email")
    tables = list_tables([table.metadata_location])
    assert ("email", False) in {(it.column, False) for it in check_table_logs(tables, policy)}
    assert "u@example.com" not in str(
        sb.audit(table.metadata_location, policy=policy, keys=KEYRING).findings
    )


@pytest.mark.parametrize("name", ["old.parquet", "_change_data/cdc.parquet", "_tmp/x.parquet"])
def test_files_in_clear_that_the_log_does_not_name_are_found(tmp_path: Path, name: str) -> None:
    path = sound(tmp_path)
    commit(tmp_path, 0, protocol(), metadata(column("email", "string")))
    commit(tmp_path, 1, add(path.name, path.stat().st_size))
    assert ids(Example(path=tmp_path).audit()) == []
    old = tmp_path / name
    old.parent.mkdir(exist_ok=True)
    # What every version leaves behind, also where everybody may read the footer.
    for mode in (Mode.ENCRYPTED, Mode.SIGNED):
        write(old, customers(30), mode)
        assert ids(Example(path=tmp_path).audit()) == []
    write(old, customers(30))
    findings = Example(path=tmp_path).audit().findings
    assert {(it.id, it.path, it.column) for it in findings} == {
        ("column-in-clear", str(old), "email"),
        ("column-in-clear", str(old), "iban"),
    }
    assert f"SQL: VACUUM '{tmp_path}' (" in findings[0].fix


def test_old_files_of_a_table_with_mapped_columns_have_its_names(tmp_path: Path) -> None:
    names = {"delta.columnMapping.physicalName": "col-1", "delta.columnMapping.id": 1}
    commit(
        tmp_path,
        0,
        protocol("columnMapping"),
        metadata(column("email", "string", **names), delta_columnMapping_mode="name"),
    )
    write(tmp_path / "old.parquet", pa.table({"col-1": ["a"]}))
    live = write(tmp_path / "new.parquet", pa.table({"col-1": ["b"]}))
    commit(tmp_path, 1, add(live.name, live.stat().st_size))
    policy = KeyPolicy(footer_key="k_footer", columns=rules(email="k_pii"))
    found = sb.audit(tmp_path, policy=policy, keys=KEYRING).findings
    told = {(it.id, it.path, it.column) for it in found}
    assert ("column-in-clear", str(tmp_path / "old.parquet"), "email") in told


def test_a_table_may_have_any_number_of_old_files(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(copies, "_MOST_OPENED", 2)
    path = sound(tmp_path)
    commit(tmp_path, 0, protocol(), metadata(column("email", "string")))
    commit(tmp_path, 1, add(path.name, path.stat().st_size))
    for ordinal in range(4):
        write(tmp_path / f"old-{ordinal}.parquet", customers(30), Mode.ENCRYPTED)
    assert ids(Example(path=tmp_path).audit()) == []


def test_names_of_columns_that_our_own_commits_hold_are_no_values(tmp_path: Path) -> None:
    path = sound(tmp_path)
    commit(tmp_path, 0, protocol(), metadata(column("email", "string"), column("iban", "string")))
    commit(tmp_path, 1, add(path.name, path.stat().st_size))
    for columns in (["email"], {"email": 0.001, "iban": None}):
        run = sb.add_bloom_filters(tmp_path, columns=columns, keys=KEYRING, replace_filters=True)
        assert len(run.commits) == 1
    report = Example(path=tmp_path).audit()
    assert "table-log-in-clear" not in ids(report)


@pytest.mark.parametrize(
    ("parameters", "is_shown"),
    [
        ({"partitionBy": '["email"]'}, False),
        ({"zOrderBy": '["email","iban"]', "predicate": "[]"}, False),
        ({"clusterBy": '[["email"]]'}, False),
        ({"columns": '[{"column":{"name":"email","type":"string","metadata":{}}}]'}, False),
        ({"predicate": "[\"(city#1 = 'email')\"]"}, False),
        ({"properties": '{"delta.dataSkippingStatsColumns":"email,iban"}'}, False),
        ({"predicate": "[\"(email#1 = 'a@x.example')\"]"}, True),
        ({"predicate": "\"email\" = 'a@x.example'"}, True),
        ({"predicate": '["`Email` IN (\\"a@x.example\\")"]'}, True),
        ({"values": '{"email":"a@x.example"}'}, True),
        ({"values": [{"email": 7}]}, True),
        ({"predicate": {"condition": "email > 5"}}, True),
        ({"predicate": "day = date '2026-01-31' and city in ('x', null)"}, False),
        ({"predicate": "day >= cast('2026-01-31' as date) and day < '2026-02-01'::date"}, False),
        ({"predicate": "[\"(day#1 = DATE '2026-01-31') AND (x#2 IN (1))\"]"}, False),
        ({"predicate": "[\"(day#1 = cast('2026-01-31' as date))\"]"}, False),
        ({"predicate": "date = date '2026-01-31'"}, True),
        ({"predicate": "[\"(date#1 = DATE '2026-01-31')\"]"}, True),
        ({"predicate": "[\"(upper(date#1) = '2026')\"]"}, True),
    ],
)
def test_a_parameter_shows_values_and_not_names(
    tmp_path: Path, parameters: dict[str, Any], is_shown: bool
) -> None:
    path = sound(tmp_path)
    commit(tmp_path, 0, protocol(), metadata(column("email", "string"), column("iban", "string")))
    commit(tmp_path, 1, add(path.name, path.stat().st_size))
    info = {"operation": "ANY", "operationParameters": parameters}
    commit(tmp_path, 2, {"commitInfo": info})
    policy = replace(
        EXAMPLE_POLICY, columns=rules(**dict.fromkeys(("email", "iban", "date"), "k_pii"))
    )
    report = Example(path=tmp_path, policy=policy).audit()
    assert ("table-log-in-clear" in ids(report)) is is_shown
