"""All fields of the format, and what a structure holds beyond them."""

from __future__ import annotations

import pytest
from thrift.protocol.TProtocol import TType

from secure_bloom.errors import FormatError
from secure_bloom.parquet.structures.format_fields import TYPES, contents, known_fields
from secure_bloom.parquet.structures.records import HAS_C_CODE
from testing.thrift import trees
from tests import idl

_ENUMS = frozenset(idl.enums())
BINARY, I64, LIST, STRUCT = TType.STRING, TType.I64, TType.LIST, TType.STRUCT


def _spelled(kind: str) -> str:
    inner = kind.removeprefix("list<").removesuffix(">")
    name = "i32" if inner in _ENUMS else "binary" if inner == "string" else inner
    return kind.replace(inner, name)


def test_the_table_has_every_field_of_the_idl_and_no_other() -> None:
    wanted = {
        name: {field.id: _spelled(field.type) for field in fields.values()}
        for name, fields in idl.structures().items()
        if fields
    }
    assert wanted == TYPES


def test_fields_that_the_format_does_not_have_are_unknown_at_any_depth() -> None:
    hidden = trees.Struct({7: (BINARY, b"x@y.fi")})
    pair = trees.Struct({1: (BINARY, b"key"), 9: (BINARY, b"a text")})
    tree = trees.Struct(
        {
            5: (LIST, trees.Sequence(STRUCT, [pair])),
            8: (STRUCT, trees.Struct({1: (STRUCT, hidden)})),
            99: (STRUCT, hidden),
        }
    )
    found = contents("FileMetaData", trees.encode(tree))
    assert [it.value for it in found if it.is_known] == [b"key"]
    unknown = {(it.structure, it.field): it.value for it in found if not it.is_known}
    assert set(unknown) == {("KeyValue", 9), ("AesGcmV1", 7), ("FileMetaData", 99)}
    assert b"a text" in unknown["KeyValue", 9]
    assert b"x@y.fi" in unknown["AesGcmV1", 7]


def test_a_field_of_another_type_and_one_that_occurs_again_are_unknown() -> None:
    assert not contents("FileCryptoMetaData", trees.encode(trees.Struct({2: (I64, 5)})))[0].is_known
    twice = b"\x28\x01a" + b"\x08\x04\x01b" + b"\x00"
    first, again = contents("FileCryptoMetaData", twice)
    assert (first.value, first.is_known) == (b"a", True)
    assert (again.value, again.is_known) == (b"\x08\x04\x01b", False)


@pytest.mark.skipif(not HAS_C_CODE, reason="without C code there is no record")
def test_a_record_is_made_of_known_fields_alone() -> None:
    algorithm = trees.Struct({1: (STRUCT, trees.Struct({2: (BINARY, b"unique")}))})
    known = trees.encode(trees.Struct({1: (STRUCT, algorithm), 2: (BINARY, b"key")}))
    record = known_fields("FileCryptoMetaData", known + b"more")
    assert record is not None
    algorithm = record.encryption_algorithm
    assert (algorithm.AES_GCM_V1.aad_file_unique, record.key_metadata) == (b"unique", b"key")
    assert (algorithm.AES_GCM_V1.aad_prefix, algorithm.AES_GCM_CTR_V1) == (None, None)


@pytest.mark.parametrize(
    "encoded",
    [
        trees.encode(trees.Struct({2: (BINARY, b"key"), 3: (BINARY, b"a text")})),
        trees.encode(trees.Struct({1: (STRUCT, trees.Struct({3: (STRUCT, trees.Struct({}))}))})),
        trees.encode(trees.Struct({2: (I64, 5)})),
        b"\x28\x01a" + b"\x08\x04\x01b" + b"\x00",
        b"\x28\x05ab\x00",
    ],
    ids=["added", "added-inside", "of-another-type", "again", "damaged"],
)
def test_unknown_fields_and_damaged_bytes_are_no_record(encoded: bytes) -> None:
    assert known_fields("FileCryptoMetaData", encoded) is None


@pytest.mark.parametrize("damaged", [b"", b"\x28", b"\x28\x05ab\x00", b"\x2e\x00"])
def test_damaged_bytes_are_a_format_error(damaged: bytes) -> None:
    with pytest.raises(FormatError):
        contents("FileCryptoMetaData", damaged)
