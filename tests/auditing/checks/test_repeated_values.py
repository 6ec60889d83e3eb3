"""Values of a sensitive column elsewhere in clear, looked for on request."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pytest

from secure_bloom.auditing.checks import repeated_values
from testing.tables import customers
from tests.auditing.datasets import ids
from tests.auditing.examples import POLICY, Example, sound, with_rules


def with_column(folder: Path, values: list[str]) -> Example:
    table = customers(len(values))
    return Example(path=sound(folder, table=table.append_column("x", pa.array(values))))


def test_they_are_looked_for_only_on_request(tmp_path: Path) -> None:
    found = with_column(tmp_path, customers(30)["email"].to_pylist())
    assert ids(found.audit()) == []
    assert ids(found.audit(check_values=True)) == ["values-in-clear"]


def test_values_behind_the_sample_are_not_looked_at(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(repeated_values, "_MOST_LOOKED_FOR", 0)
    found = with_column(tmp_path, customers(30)["email"].to_pylist())
    assert ids(found.audit(check_values=True)) == []


def test_two_values_by_chance_are_no_copy(tmp_path: Path) -> None:
    some = customers(30)["email"].to_pylist()
    found = with_column(tmp_path, [some[0], *(f"town {i}" for i in range(29))])
    assert ids(found.audit(check_values=True)) == []


def test_a_column_with_a_rule_without_a_key_may_repeat_them(tmp_path: Path) -> None:
    found = with_column(tmp_path, customers(30)["email"].to_pylist())
    found.policy = with_rules(POLICY, x=None)
    assert ids(found.audit(check_values=True)) == []
