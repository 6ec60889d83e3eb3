"""Logical names of columns, as people write them, and the physical ones that files have."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

import secure_bloom as sb
from secure_bloom.adding.request import FilterRequest, filter_request
from secure_bloom.api.add import open_table_run
from secure_bloom.encryption.policy import KeyPolicy
from secure_bloom.encryption.policy_tables import ColumnRule
from secure_bloom.lakes.delta.table_run import TableRun
from secure_bloom.lakes.formats import DELTA
from secure_bloom.lakes.writable_table import TableChoice
from testing.delta_logs import column, commit, start

NUMBERS = iter(range(1, 100))


def field(name: str, kind: Any = "string") -> dict[str, Any]:
    mapping = {
        "delta.columnMapping.id": next(NUMBERS),
        "delta.columnMapping.physicalName": f"col-{name.replace('.', '')}",
    }
    return column(name, kind, **mapping)


STRUCT = {"type": "struct", "fields": [field("zip"), field("street")]}
FIELDS = [
    field("email"),
    field("a.b"),
    field("address", STRUCT),
    field("many", {"type": "array", "elementType": STRUCT, "containsNull": True}),
    field("texts", {"type": "array", "elementType": "string", "containsNull": True}),
    field("map", {"type": "map", "keyType": "string", "valueType": STRUCT}),
    field("day"),
]


@pytest.fixture(params=["name", "id"])
def table(tmp_path: Path, request: pytest.FixtureRequest) -> str:
    """An empty table that maps its columns by name, or by id."""
    mode = {"delta_columnMapping_mode": request.param}
    features = ["columnMapping"]
    commit(tmp_path, 0, *start(*FIELDS, features=features, partitions=["day"], **mode))
    return str(tmp_path)


def run_on(table: str, request: FilterRequest) -> tuple[TableRun, FilterRequest]:
    """Return the run over the table, and the request for its files."""
    run, of_files = open_table_run(DELTA, table, request, TableChoice())
    assert isinstance(run, TableRun)
    return run, of_files


@pytest.mark.parametrize(
    ("logical", "physical"),
    [
        ("email", "col-email"),
        ("a.b", "col-ab"),
        ("address", "col-address"),
        ("address.zip", "col-address.col-zip"),
        ("many.list.element.zip", "col-many.list.element.col-zip"),
        ("texts.list.element", "col-texts.list.element"),
        ("map.key_value.key", "col-map.key_value.key"),
        ("map.key_value.value.street", "col-map.key_value.value.col-street"),
    ],
)
def test_names_are_translated_both_ways(table: str, logical: str, physical: str) -> None:
    run, request = run_on(table, filter_request([logical], None))
    assert list(request.wanted.columns) == [logical]
    assert request.wanted.names == run.opened_names is not None
    assert run.names.stored(logical) == physical
    assert run.names.logical(physical) == logical


def test_the_log_knows_all_columns_but_the_levels_of_lists(table: str) -> None:
    """How a writer calls these only its files tell."""
    asked = ["email", "a.b", "address.zip", "many.list.element", "many.array", "map.key_value.key"]
    known = run_on(table, filter_request(asked, None))[1].wanted.known
    assert known == {"email", "a.b", "address.zip"}


def test_the_keys_of_a_policy_go_along(table: str) -> None:
    rule = ColumnRule(path="address.zip", key="k_pii", bloom=sb.BloomFilterOptions())
    policy = KeyPolicy(footer_key="k_footer", columns={"address.zip": rule})
    _, request = run_on(table, filter_request(None, policy))
    assert request.guard.policy is not None
    assert request.guard.policy.key_for(("address", "zip")) == "k_pii"


@pytest.mark.parametrize(
    "name", ["emial", "address.city", "email.x", "texts.list.element.x", "many.list.element.no"]
)
def test_a_name_that_leads_to_no_column_is_refused(table: str, name: str) -> None:
    with pytest.raises(sb.PolicyError, match=name):
        run_on(table, filter_request([name], None))


def test_a_rule_of_a_policy_that_leads_to_no_column_is_refused(table: str) -> None:
    rules = {
        "email": ColumnRule(path="email", bloom=sb.BloomFilterOptions()),
        "phone": ColumnRule(path="phone", key="k_pii"),
    }
    policy = KeyPolicy(footer_key="k_footer", columns=rules)
    with pytest.raises(sb.PolicyError, match="phone"):
        run_on(table, filter_request(None, policy))


def test_a_partition_column_is_refused(table: str) -> None:
    with pytest.raises(sb.PolicyError, match="in the table's log"):
        run_on(table, filter_request("day", None))
