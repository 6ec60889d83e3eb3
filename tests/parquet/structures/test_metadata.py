"""The views and the IDL say the same, and a view's edit leaves the rest of the tree alone."""

from __future__ import annotations

import enum

import pytest

from secure_bloom.errors import FormatError, UnsupportedFeatureError
from secure_bloom.parquet.structures import metadata
from secure_bloom.parquet.structures.declarations import Required, Structure
from secure_bloom.parquet.structures.metadata import Type
from testing.thrift import trees
from testing.thrift.metadata import BloomFilterHash, ColumnMetaData
from tests import idl

VIEWS = [
    cls
    for cls in vars(metadata).values()
    if isinstance(cls, type) and issubclass(cls, Structure) and cls.FIELDS
]
ENUMS = [
    cls
    for cls in vars(metadata).values()
    if isinstance(cls, type) and issubclass(cls, enum.IntEnum) and cls is not enum.IntEnum
]
STRUCTURES = idl.structures()


@pytest.mark.parametrize("view", VIEWS, ids=lambda v: v.__name__)
def test_a_view_declares_fields_as_the_idl_does(view: type[Structure]) -> None:
    declared = STRUCTURES[view.__name__]
    for name, field in view.FIELDS.items():
        wanted = declared[name]
        assert (field.id, field.kind.name) == (wanted.id, wanted.type), f"{view.__name__}.{name}"
        assert isinstance(field, Required) is wanted.required, f"{view.__name__}.{name}"


@pytest.mark.parametrize("cls", ENUMS, ids=lambda e: e.__name__)
def test_an_enum_has_the_members_of_the_idl(cls: type[enum.IntEnum]) -> None:
    assert {m.name: m.value for m in cls} == idl.enums()[cls.__name__]


def test_the_views_cover_what_a_footer_needs() -> None:
    names = {view.__name__ for view in VIEWS}
    assert {"FileMetaData", "RowGroup", "ColumnChunk", "ColumnMetaData"} <= names
    assert len(names) > 20


def test_an_edit_keeps_unknown_fields_and_the_order_of_ids() -> None:
    unknown = trees.Struct({99: (8, b"later")})
    tree = trees.Struct({1: (8, int(Type.INT64)), 13: (8, 5), 20: (12, unknown)})
    tree.fields[1] = (8, 2)
    view = ColumnMetaData(tree)
    view.bloom_filter_offset = 4711
    assert list(view.tree.fields) == [1, 13, 14, 20]
    assert view.tree.fields[20][1] is unknown
    assert view.bloom_filter_offset == 4711


def test_a_missing_required_field_is_named() -> None:
    with pytest.raises(FormatError, match=r"ColumnMetaData\.codec is missing"):
        _ = ColumnMetaData().codec


def test_a_field_of_another_thrift_type_is_named() -> None:
    tree = trees.Struct({5: (11, b"many")})
    with pytest.raises(FormatError, match=r"ColumnMetaData\.num_values has Thrift type 11"):
        _ = ColumnMetaData(tree).num_values


def test_an_enum_number_from_the_future_is_unsupported_not_a_guess() -> None:
    tree = trees.Struct({4: (8, 77)})
    with pytest.raises(UnsupportedFeatureError, match=r"ColumnMetaData\.codec is 77, which is no"):
        _ = ColumnMetaData(tree).codec


def test_an_integer_outside_its_type_is_refused() -> None:
    tree = trees.Struct({15: (8, 1 << 40)})
    with pytest.raises(FormatError, match="i32"):
        _ = ColumnMetaData(tree).bloom_filter_length


def test_a_union_with_no_member_or_an_unknown_one_is_unsupported() -> None:
    for tree in (trees.Struct(), trees.Struct({7: (12, trees.Struct())})):
        with pytest.raises(UnsupportedFeatureError):
            BloomFilterHash(tree).member()
