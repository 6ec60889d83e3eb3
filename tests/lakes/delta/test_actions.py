"""The lines of a log, and their fields, are checked where they are read."""

from __future__ import annotations

import copy
import json
import tempfile
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from secure_bloom.errors import FormatError, SecureBloomError
from secure_bloom.lakes import list_tables, snapshot
from secure_bloom.lakes.delta.actions import column_names, metadata_of
from secure_bloom.reading.table.table_state import table_state
from testing.delta_logs import add, column, commit, log_of, metadata, remove, start


@pytest.mark.parametrize(
    "line",
    [
        "{",
        "[]",
        '{"add": 1}',
        '{"add": {"path": 1}}',
        '{"add": {"path": "../x", "size": 1}}',
        '{"add": {"path": "x", "size": -1}}',
        '{"add": {"path": "x", "size": 1, "deletionVector": {}}}',
        '{"metaData": {"schemaString": "["}}',
        '{"metaData": {"schemaString": "{}", "configuration": []}}',
        "[" * 100_000,
        r'{"add": {"path": "\ud800", "size": 1}}',
        r'{"metaData": {"schemaString": "\ud800"}}',
        r'{"metaData": {"schemaString": "{\"fields\": [\"\\ud800\"]}"}}',
    ],
)
def test_a_log_that_is_none_is_an_error(tmp_path: Path, line: str) -> None:
    commit(tmp_path, 0, *start())
    (log_of(tmp_path) / f"{1:020}.json").write_text(line)
    with pytest.raises(FormatError):
        snapshot(tmp_path)


JUNK = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5),
    lambda it: st.lists(it, max_size=2) | st.dictionaries(st.text(max_size=5), it, max_size=2),
    max_leaves=4,
)
MAPPED = {"delta.columnMapping.id": 1, "delta.columnMapping.physicalName": "c"}
INLINE = {"storageType": "i", "pathOrInlineDv": "00000", "sizeInBytes": 4, "cardinality": 1}
VALID = [
    *start(
        column("p", {"type": "array", "elementType": "date"}, **MAPPED),
        features=["columnMapping"],
        delta_columnMapping_mode="name",
    ),
    add("x", deletionVector=INLINE),
    remove("y"),
    {"domainMetadata": {"domain": "d", "configuration": "{}", "removed": False}},
    {"commitInfo": {"inCommitTimestamp": 5}},
]


@given(st.data())
def test_any_junk_in_a_log_is_an_error_or_read(data: st.DataObject) -> None:
    actions = copy.deepcopy(VALID)
    place: Any = data.draw(st.sampled_from(actions))
    while True:
        key = data.draw(st.sampled_from(sorted(place)))
        inner = place[key]
        if not isinstance(inner, dict) or not inner or data.draw(st.booleans()):
            place[key] = data.draw(JUNK)
            break
        place = inner
    with tempfile.TemporaryDirectory() as folder, suppress(SecureBloomError):
        commit(Path(folder), 0, *actions)
        for file in list_tables([folder]).files.values():
            assert isinstance(file.path, str)


@given(st.data())
def test_any_junk_in_a_schema_is_an_error_or_read(data: st.DataObject) -> None:
    schema: Any = json.loads(VALID[1]["metaData"]["schemaString"])
    place: Any = schema["fields"][0]
    key = data.draw(st.sampled_from(sorted(place)))
    place[key] = data.draw(JUNK)
    actions = copy.deepcopy(VALID)
    actions[1]["metaData"]["schemaString"] = json.dumps(schema)
    with tempfile.TemporaryDirectory() as folder, suppress(SecureBloomError):
        commit(Path(folder), 0, *actions)
        listing = list_tables([folder])
        table_state(listing, [folder])


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
