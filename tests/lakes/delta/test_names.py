"""What a Delta schema with column mapping says of the names in files."""

from __future__ import annotations

import json
from typing import Any

import pytest

from secure_bloom.errors import FormatError
from secure_bloom.lakes.delta.actions import metadata_of
from secure_bloom.lakes.delta.names import column_names
from testing.delta_logs import column, metadata


def field(name: str, number: int, kind: Any = "long") -> dict[str, Any]:
    mapping = {"delta.columnMapping.id": number, "delta.columnMapping.physicalName": f"c{number}"}
    return column(name, kind, **mapping)


def names(*columns: Any, mode: str = "name") -> Any:
    action = metadata(*columns, delta_columnMapping_mode=mode)
    return column_names(metadata_of(action["metaData"]))


def test_lists_maps_and_structures_are_looked_into() -> None:
    inner = {"type": "struct", "fields": [field("a", 2)]}
    items = {"type": "array", "elementType": inner, "containsNull": True}
    pairs = {"type": "map", "keyType": "string", "valueType": items, "valueContainsNull": True}
    found = names(field("m", 1, pairs))
    (pair,) = found.members.values()
    key, value = pair.inside.inner
    assert (pair.name, key) == ("m", None)
    assert value.inner[0].members["c2"].name == "a"
    assert list(names(field("m", 1), mode="id").members) == [1]


def test_without_mapping_there_are_no_other_names() -> None:
    assert names(column("a"), mode="none") is None


def test_two_columns_in_one_place_are_damage() -> None:
    with pytest.raises(FormatError, match="same name or id"):
        names(field("a", 1), field("b", 1))


def test_a_schema_without_end_is_damage() -> None:
    kind: Any = "long"
    for _ in range(150):
        kind = {"type": "array", "elementType": kind}
    assert json.dumps(kind)
    with pytest.raises(FormatError, match="nests deeper"):
        names(field("a", 1, kind))
