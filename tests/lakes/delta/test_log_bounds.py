"""What statistics of a Delta log show of columns, and how that is taken out of them."""

from __future__ import annotations

import json

import pytest

import secure_bloom as sb
from secure_bloom.lakes.delta.log_bounds import bounded_columns, without_bounds
from testing import delta_logs as logs

MAPPED = {"delta.columnMapping.physicalName": "col-1"}
INNER = {"type": "struct", "fields": [logs.column("zip", "string"), logs.column("city", "string")]}
SCHEMA = {
    "type": "struct",
    "fields": [logs.column("amount", "decimal(38,18)"), logs.column("home", INNER, **MAPPED)],
}
STATS = (
    '{"numRecords":2,"minValues":{"amount":12345678901234567890.123456789012345678,'
    '"col-1":{"zip":"00118","city":"é"}},"maxValues":{"amount":null,"col-1":{"zip":"9"}},'
    '"nullCount":{"amount":0,"col-1":{"zip":0,"city":1}},"tightBounds":false}'
)


def test_columns_go_by_the_names_that_people_use() -> None:
    shown = bounded_columns({"stats": STATS}, SCHEMA)
    assert shown == {("amount",), ("home", "zip"), ("home", "city")}
    assert bounded_columns({}, SCHEMA) == bounded_columns({"stats": ""}, SCHEMA) == set()


def test_bounds_of_secret_columns_go_and_all_else_is_written_as_it_was() -> None:
    left = without_bounds({"stats": STATS}, SCHEMA, lambda path: path == ("home", "zip"))
    wanted = STATS.replace('"zip":"00118",', "").replace('"zip":"9"', "")
    assert left == wanted
    assert "12345678901234567890.123456789012345678" in wanted  # which no float holds


def test_a_secret_parent_hides_what_is_inside() -> None:
    left = without_bounds({"stats": STATS}, SCHEMA, lambda path: path[0] == "home")
    assert left is not None
    assert json.loads(left)["minValues"].keys() == {"amount", "col-1"}
    assert bounded_columns({"stats": left}, SCHEMA) == {("amount",)}


def test_statistics_that_show_nothing_secret_are_left_alone() -> None:
    for stats in (STATS, None, '{ "numRecords" : 1 }'):
        assert without_bounds({"stats": stats}, SCHEMA, lambda _: False) is stats


@pytest.mark.parametrize("text", ["{", "[" * 100_000, 7])
def test_damaged_statistics_are_an_error_that_quotes_nothing(text: object) -> None:
    with pytest.raises(sb.FormatError, match="no JSON"):
        bounded_columns({"stats": text}, SCHEMA)


def test_bounds_that_lie_too_deep_go_too() -> None:
    deep = '{"a":' * 150 + "1" + "}" * 150
    add = {"stats": f'{{"minValues":{{"amount":1,"x":{deep}}}}}'}
    left = without_bounds(add, SCHEMA, lambda path: path == ("amount",))
    assert left is not None
    assert "1" not in left
