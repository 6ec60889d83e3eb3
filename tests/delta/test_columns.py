"""Logical names of columns, as people write them, and the physical ones that files have."""

from __future__ import annotations

from typing import Any

import pytest

import secure_bloom as sb
from secure_bloom.adding.report import FileAddReport, FilterReport
from secure_bloom.adding.request import FilterRequest, filter_request
from secure_bloom.delta.columns import ColumnNames
from secure_bloom.encryption.policy import KeyPolicy
from secure_bloom.encryption.policy_tables import ColumnRule


def field(name: str, kind: Any = "string") -> dict[str, Any]:
    mapped = {"delta.columnMapping.physicalName": f"col-{name.replace('.', '')}"}
    return {"name": name, "type": kind, "nullable": True, "metadata": mapped}


STRUCT = {"type": "struct", "fields": [field("zip"), field("street")]}
NAMES = ColumnNames(
    fields=[
        field("email"),
        field("a.b"),
        field("address", STRUCT),
        field("many", {"type": "array", "elementType": STRUCT, "containsNull": True}),
        field("map", {"type": "map", "keyType": "string", "valueType": STRUCT}),
        field("day"),
    ],
    partition_columns=("day",),
    is_mapped=True,
)


def in_files(request: FilterRequest) -> FilterRequest:
    """Return the request for files, as a run over the table makes it."""
    for name in request.columns:
        NAMES.require(name)
    return request.renamed(NAMES.stored, frozenset(filter(NAMES.has_field, request.columns)))


@pytest.mark.parametrize(
    ("logical", "physical"),
    [
        ("email", "col-email"),
        ("a.b", "col-ab"),
        ("address", "col-address"),
        ("address.zip", "col-address.col-zip"),
        ("many.list.element.zip", "col-many.list.element.col-zip"),
        ("map.key_value.key", "col-map.key_value.key"),
        ("map.key_value.value.street", "col-map.key_value.value.col-street"),
    ],
)
def test_names_are_translated_both_ways(logical: str, physical: str) -> None:
    request = in_files(filter_request([logical], None))
    assert list(request.columns) == [physical]
    filters = (FilterReport(row_group=0, column=physical, action="added"),)
    report = FileAddReport(path="x", status="added", filters=filters).renamed(NAMES.logical)
    assert [it.column for it in report.filters] == [logical]


def test_the_log_knows_all_columns_but_the_levels_of_lists() -> None:
    """How a writer calls these only its files tell."""
    asked = ["email", "a.b", "address.zip", "many.list.element", "many.array", "map.key_value.key"]
    known = in_files(filter_request(asked, None)).known
    assert known == {"col-email", "col-ab", "col-address.col-zip"}


def test_the_keys_of_a_policy_go_along() -> None:
    rule = ColumnRule(path="address.zip", key="k_pii", bloom=sb.BloomFilterOptions())
    policy = KeyPolicy(footer_key="k_footer", columns={"address.zip": rule})
    request = in_files(filter_request(None, policy))
    assert request.policy is not None
    assert request.policy.key_for(("col-address", "col-zip")) == "k_pii"


@pytest.mark.parametrize("name", ["emial", "address.city", "email.x", "many.list.element.no"])
def test_a_name_that_leads_to_no_column_is_refused(name: str) -> None:
    with pytest.raises(sb.PolicyError, match=name):
        in_files(filter_request([name], None))


def test_a_rule_of_a_policy_that_leads_to_no_column_is_refused() -> None:
    rules = {
        "email": ColumnRule(path="email", bloom=sb.BloomFilterOptions()),
        "phone": ColumnRule(path="phone", key="k_pii"),
    }
    policy = KeyPolicy(footer_key="k_footer", columns=rules)
    with pytest.raises(sb.PolicyError, match="phone"):
        in_files(filter_request(None, policy))


def test_a_partition_column_is_refused() -> None:
    with pytest.raises(sb.PolicyError, match="in the table's log"):
        in_files(filter_request("day", None))
