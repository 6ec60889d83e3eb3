"""Splices: the same structure as an edit of the tree gives, and all other bytes as they were."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from thrift.protocol.TProtocol import TType

from secure_bloom.parquet.structures.splices import (
    NewValue,
    binary,
    i32,
    i64,
    set_fields,
    splice,
    struct,
    structs,
)
from secure_bloom.parquet.structures.wire_fields import find_fields, list_elements
from testing.thrift import trees
from testing.thrift.trees import Sequence, Struct
from tests.parquet.structures.thrift_values import structs as trees_of

_NEW = {
    TType.I32: (st.integers(-(2**31), 2**31 - 1), i32),
    TType.I64: (st.integers(-(2**63), 2**63 - 1), i64),
    TType.STRING: (st.binary(max_size=200), binary),
}


def _edits_of(ttype: int) -> st.SearchStrategy[tuple[int, object, NewValue]]:
    values, make = _NEW[ttype]
    return values.map(lambda value: (ttype, value, make(value)))


_EDITS = st.dictionaries(
    st.integers(1, 220), st.one_of(st.none(), *map(_edits_of, _NEW)), max_size=6
)


@given(trees_of(2), _EDITS, st.binary(max_size=9))
def test_an_edit_is_that_of_the_tree(tree: Struct, edits: dict[int, object], before: bytes) -> None:
    buffer = before + trees.encode(tree) + b"behind"
    fields = find_fields(buffer, len(before))
    assert list(fields.by_id) == list(tree.fields)
    new = {i: None if edit is None else edit[2] for i, edit in edits.items()}
    spliced = splice(buffer, set_fields(buffer, fields, new))
    assert spliced.startswith(before)
    assert spliced.endswith(b"\0behind")
    found, length = trees.decode(spliced[len(before) :])
    assert length == len(spliced) - len(before) - len(b"behind")
    wanted = {i: field for i, field in tree.fields.items() if i not in edits or edits[i]}
    wanted |= {i: edit[:2] for i, edit in edits.items() if edit is not None}
    assert found.fields == wanted


@given(st.dictionaries(st.integers(1, 40), st.integers(0, 9), max_size=8), st.integers(1, 40))
def test_a_new_field_stands_in_ascending_order(numbers: dict[int, int], new: int) -> None:
    tree = Struct({i: (TType.I32, n) for i, n in sorted(numbers.items())})
    buffer = trees.encode(tree)
    spliced = splice(buffer, set_fields(buffer, find_fields(buffer), {new: i64(5)}))
    assert spliced == trees.encode(
        Struct(dict(sorted({**tree.fields, new: (TType.I64, 5)}.items())))
    )


@given(trees_of(2))
def test_no_edit_changes_no_byte(tree: Struct) -> None:
    buffer = trees.encode(tree)
    assert splice(buffer, set_fields(buffer, find_fields(buffer), {})) == buffer


def test_forms_that_no_writer_needs_are_kept() -> None:
    # Field 1 with its id written out, then field 2 an i32 in a varint of two bytes.
    odd = bytes([0x05, 0x02, 0x02, 0x15, 0x82, 0x00, 0x00])
    spliced = splice(odd, set_fields(odd, find_fields(odd), {3: i32(1)}))
    assert spliced == odd[:-1] + bytes([0x15, 0x02, 0x00])
    between = bytes([0x15, 0x02, 0x05, 0x06, 0x04, 0x00])
    spliced = splice(between, set_fields(between, find_fields(between), {2: i32(1)}))
    assert spliced == bytes([0x15, 0x02, 0x15, 0x02, 0x05, 0x06, 0x04, 0x00])


@given(st.lists(trees_of(1), max_size=20))
def test_elements_of_a_list_are_found_and_put_together_again(items: list[Struct]) -> None:
    buffer = trees.encode(Struct({1: (TType.LIST, Sequence(TType.STRUCT, list(items)))}))
    field = find_fields(buffer).by_id[1]
    encoded = [buffer[start:end] for start, end in list_elements(buffer, field)]
    assert encoded == [trees.encode(item) for item in items]
    again = splice(b"\0", set_fields(b"\0", find_fields(b"\0"), {1: structs(encoded)}))
    assert again == buffer


def test_a_structure_is_set_by_its_bytes() -> None:
    inner = trees.encode(Struct({2: (TType.BOOL, True)}))
    made = splice(b"\0", set_fields(b"\0", find_fields(b"\0"), {7: struct(inner)}))
    assert trees.decode(made)[0].fields[7] == (TType.STRUCT, trees.decode(inner)[0])


def test_splices_that_overlap_are_refused() -> None:
    with pytest.raises(ValueError, match="overlap"):
        splice(b"abcdef", [(0, 3, b""), (2, 4, b"")])


def test_what_is_new_is_a_type_and_bytes() -> None:
    assert i32(-1) == NewValue(5, b"\x01")
    assert i64(2**63 - 1).encoded == b"\xfe\xff\xff\xff\xff\xff\xff\xff\xff\x01"
    assert binary(b"ab").encoded == b"\x02ab"
