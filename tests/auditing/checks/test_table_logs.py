"""What a Delta table's log shows of sensitive columns, by the names that the policy has."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from secure_bloom.auditing.checks.table_logs import check_table_logs
from secure_bloom.encryption.policy import KeyPolicy
from secure_bloom.errors import FormatError
from secure_bloom.tables import snapshot
from tests.tables.delta_logs import add, column, commit, metadata, protocol

POLICY = '[footer]\nkey = "k1"\n[columns.email]\nkey = "k2"\n[columns."person.iban"]\nkey = "k2"\n'


def found(table: Path, policy: Path) -> list[tuple[str | None, str]]:
    state = snapshot(table)
    assert state is not None
    policy.write_text(POLICY)
    findings = check_table_logs([state], KeyPolicy.load(policy))
    assert all(finding.path == str(table) for finding in findings)
    return [(it.column, it.what) for it in check_table_logs([state], KeyPolicy.load(policy))]


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
    with pytest.raises(FormatError) as caught:
        found(table, tmp_path / "p.toml")
    assert "secret" not in str(caught.value)
