"""Ways in which values lie in the structures of a Parquet file that has them encrypted."""

from __future__ import annotations

import base64
import json
import struct
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
from thrift.protocol.TProtocol import TType

from secure_bloom.parquet.footer.locate import read_tail, with_trailer
from secure_bloom.storage import open_input
from testing.live_footer import seal_metadata
from testing.surgery import Opened, edit_footer, opened
from testing.tables import Mode, customers
from testing.thrift import trees
from testing.thrift.metadata import BloomFilterHeader, ColumnIndex, KeyValue, Statistics
from tests.auditing.examples import (
    SIGNED,
    Example,
    chunk_of,
    put_filter,
    set_key_metadata,
    some_filter,
    sound,
    with_rules,
)
from tests.auditing.ways import CHECKED, EMAIL, ROWS, WAYS, lake, way

_TEXT = f"for {EMAIL}".encode()
#: What an unknown field may hold the value as.
_FORMS: dict[str, tuple[int, Any]] = {
    "a text": (TType.STRING, _TEXT),
    "a structure": (TType.STRUCT, trees.Struct({3: (TType.STRING, _TEXT)})),
    "a map": (TType.MAP, trees.Map(TType.STRING, TType.STRING, [(_TEXT, b"")])),
    "bytes": (TType.LIST, trees.Sequence(TType.BYTE, list(EMAIL.encode()))),
    "numbers": (TType.LIST, trees.Sequence(TType.I32, list(EMAIL.encode()))),
    "Base64": (TType.STRING, base64.b64encode(_TEXT * 2)),
}


def _both(name: str, told: str) -> Callable[[Callable[[Path], Any]], Any]:
    """A way that is told of without keys to the values, and as one of the values with them."""

    def register(build: Callable[[Path], Any]) -> Any:
        way(name, told)(build)
        way(f"{name}, values", "values-in-clear", **CHECKED)(build)
        return build

    return register


def _signed(folder: Path, change: Callable[[Opened], object]) -> Example:
    path = sound(folder, Mode.SIGNED)
    edit_footer(path, lambda it: bool(change(it)) * b"")
    return Example(path=path, policy=SIGNED)


for _form, _field in _FORMS.items():

    @_both(f"an unknown field of the footer with {_form}", "unchecked-fields")
    def _(folder: Path, field: tuple[int, Any] = _field) -> Example:
        return _signed(folder, lambda it: it.footer.metadata.tree.fields.update({99: field}))


def _city(it: Opened) -> Any:
    meta_data = chunk_of(it, "city").meta_data
    assert meta_data is not None
    return meta_data


def _tree(view: Any) -> trees.Struct:
    tree: trees.Struct = view.tree
    return tree


_TREES: dict[str, Callable[[Opened], Any]] = {
    "a column of the schema": lambda it: _tree(it.footer.metadata.schema[2]),
    "a row group": lambda it: it.footer.row_groups[0].tree,
    "a column chunk": lambda it: _tree(chunk_of(it, "city")),
    "a sensitive column chunk": lambda it: _tree(chunk_of(it, "email")),
    "a chunk's metadata": lambda it: _city(it).tree,
    "statistics": lambda it: _city(it).statistics.tree,
    "encoding statistics": lambda it: _city(it).encoding_stats[0].tree,
    "the algorithm": lambda it: it.footer.metadata.encryption_algorithm.AES_GCM_V1.tree,
    "the crypto metadata": lambda it: chunk_of(it, "email").crypto_metadata.tree,  # type: ignore[union-attr]
    "a pair of texts": lambda it: it.footer.metadata.key_value_metadata[0].tree,  # type: ignore[index]
}
for _place, _of in _TREES.items():

    @_both(f"an unknown field of {_place}", "unchecked-fields")
    def _(folder: Path, tree: Callable[[Opened], Any] = _of) -> Example:
        return _signed(folder, lambda it: tree(it).fields.update({99: (TType.STRING, _TEXT)}))


@_both("an unknown field in an encrypted footer", "unchecked-fields")
def _(folder: Path) -> None:
    path = lake(folder)
    edit_footer(path, lambda it: it.footer.metadata.tree.fields.update({99: (TType.STRING, _TEXT)}))


@_both("an unknown field before an encrypted footer", "unchecked-fields")
def _(folder: Path) -> None:
    path = lake(folder)
    with open_input(str(path)) as file:
        tail = read_tail(file)
    crypto = trees.decode(tail.clear)[0]
    crypto.fields[99] = (TType.STRING, _TEXT)
    body = trees.encode(crypto) + tail.sealed
    path.write_bytes(path.read_bytes()[: tail.offset] + with_trailer(body, b"PARE"))


def said(**fields: object) -> Callable[[bytes], bytes]:
    return lambda material: json.dumps({**json.loads(material), **fields}).encode()


for _name, _fields in {
    "an unknown field": {"note": EMAIL},
    "the name of a field": {EMAIL: 1},
    "kmsInstanceURL": {"kmsInstanceURL": EMAIL},
    "kmsInstanceID": {"kmsInstanceID": EMAIL},
}.items():

    @_both(f"{_name} of a column's key material", "unchecked-fields")
    def _(folder: Path, fields: dict[str, object] = _fields) -> Example:
        path = sound(folder, Mode.SIGNED)
        set_key_metadata(path, "iban", said(**fields))
        return Example(path=path, policy=SIGNED)

    @_both(f"{_name} of the footer's key material", "unchecked-fields")
    def _(folder: Path, fields: dict[str, object] = _fields) -> None:
        path = lake(folder)
        with open_input(str(path)) as file:
            tail = read_tail(file)
        crypto = trees.decode(tail.clear)[0]
        crypto.fields[2] = (TType.STRING, said(**fields)(tail.key_metadata or b""))
        body = trees.encode(crypto) + tail.sealed
        path.write_bytes(path.read_bytes()[: tail.offset] + with_trailer(body, b"PARE"))

    @_both(f"{_name} of key material outside", "unchecked-fields")
    def _(folder: Path, fields: dict[str, object] = _fields) -> Example:
        path = lake(folder)
        stored: dict[str, str] = {}

        def move(material: bytes) -> bytes:
            told = said(**fields)(material)
            stored["key0"] = json.dumps(
                {k: v for k, v in json.loads(told).items() if k != "internalStorage"}
            )
            reference = {"keyMaterialType": "PKMT1", "internalStorage": False}
            return json.dumps({**reference, "keyReference": "key0"}).encode()

        set_key_metadata(path, "email", move)
        (folder / "_KEY_MATERIAL_FOR_x.parquet.json").write_text(json.dumps(stored))
        return Example(path=path)


for _name in ("keyReference", "keyEncryptionKeyID", "wrappedKEK"):

    @_both(f"{_name} of key material that has no use for it", "unchecked-fields")
    def _(folder: Path, name: str = _name) -> Example:
        path = sound(folder, Mode.SIGNED, encryption={"double_wrapping": False})
        set_key_metadata(path, "iban", said(**{name: EMAIL}))
        return Example(path=path, policy=SIGNED)


@_both("an entry of key material outside that is none", "unchecked-fields")
def _(folder: Path) -> Example:
    path = lake(folder)
    stored = {"note": EMAIL}

    def move(material: bytes) -> bytes:
        fields = json.loads(material).items()
        stored["key0"] = json.dumps({k: v for k, v in fields if k != "internalStorage"})
        reference = {"keyMaterialType": "PKMT1", "internalStorage": False}
        return json.dumps(reference | {"keyReference": "key0"}).encode()

    set_key_metadata(path, "email", move)
    (folder / "_KEY_MATERIAL_FOR_x.parquet.json").write_text(json.dumps(stored))
    return Example(path=path)


@way("metadata of a column chunk", "values-in-clear", **CHECKED)
def _(folder: Path) -> Example:
    pair = KeyValue.of(key="first", value=EMAIL)
    return _signed(folder, lambda it: setattr(_city(it), "key_value_metadata", [pair]))


def _with_metadata(**metadata: str) -> pa.Table:
    table = customers(ROWS)
    at = table.column_names.index("city")
    return table.set_column(at, table.field(at).with_metadata(metadata), table["city"])


@way("metadata of a field of Arrow's schema", "values-in-clear", **CHECKED)
def _(folder: Path) -> Example:
    return Example(path=sound(folder, Mode.SIGNED, table=_with_metadata(note=EMAIL)), policy=SIGNED)


@way("metadata of a field of Arrow's schema in an encrypted footer", "values-in-clear", **CHECKED)
def _(folder: Path) -> None:
    sound(folder, table=_with_metadata(note=EMAIL))


@way("metadata of an inner field of Arrow's schema", "values-in-clear", **CHECKED)
def _(folder: Path) -> Example:
    inner = pa.struct([pa.field("x", pa.int32(), metadata={"note": EMAIL})])
    table = customers(ROWS).append_column("s", pa.array([{"x": 1}] * ROWS, inner))
    return Example(path=sound(folder, Mode.SIGNED, table=table), policy=SIGNED)


@way("the reference system of a geometry", "values-in-clear", **CHECKED)
def _(folder: Path) -> Example:
    logical = trees.Struct({17: (TType.STRUCT, trees.Struct({1: (TType.STRING, _TEXT)}))})

    def change(it: Opened) -> None:
        schema = [element.name for element in it.footer.metadata.schema]
        city = it.footer.metadata.schema[schema.index("city")]
        _tree(city).fields[10] = (TType.STRUCT, logical)

    return _signed(folder, change)


@way("histograms of levels", "values-in-clear", **CHECKED)
def _(folder: Path) -> Example:
    levels = trees.Sequence(TType.I64, list(EMAIL.encode()))
    sizes = trees.Struct({2: (TType.LIST, levels)})
    return _signed(folder, lambda it: _city(it).tree.fields.update({16: (TType.STRUCT, sizes)}))


@way("corners of a bounding box", "values-in-clear", **CHECKED)
def _(folder: Path) -> Example:
    text = EMAIL.encode().ljust(32)
    corners = struct.unpack("<4d", text)
    box = trees.Struct({n: (TType.DOUBLE, it) for n, it in enumerate(corners, 1)})
    places = trees.Struct({1: (TType.STRUCT, box)})
    return _signed(folder, lambda it: _city(it).tree.fields.update({17: (TType.STRUCT, places)}))


def _ruled(folder: Path, **options: Any) -> tuple[Path, Example]:
    """A file whose `city` may be in clear by a rule of the policy."""
    path = sound(folder, Mode.SIGNED, **options)
    return path, Example(path=path, policy=with_rules(SIGNED, city=None))


@way("a bound of a column that may be in clear", "values-in-clear", **CHECKED)
def _(folder: Path) -> Example:
    path, example = _ruled(folder)
    emails = sorted(customers(ROWS)["email"].to_pylist())
    shown = Statistics.of(min_value=b"A", max_value=emails[-1].encode(), null_count=0)
    edit_footer(path, lambda it: setattr(_city(it), "statistics", shown))
    return example


@way("bounds of pages of a column that may be in clear", "values-in-clear", **CHECKED)
def _(folder: Path) -> Example:
    path, example = _ruled(folder)
    index = ColumnIndex.of(
        null_pages=[False], min_values=[EMAIL.encode()], max_values=[b"w"], boundary_order=0
    ).encode()

    def change(it: Opened) -> bytes:
        chunk = chunk_of(it, "city")
        chunk.column_index_offset = it.footer.tail.offset
        chunk.column_index_length = len(index)
        return index

    edit_footer(path, change)
    return example


@_both("the header of a filter in clear", "unchecked-fields")
def _(folder: Path) -> None:
    path = lake(folder)
    cities = [city.encode() for city in set(customers(ROWS)["city"].to_pylist())]
    stored = some_filter(*cities)
    tree, length = trees.decode(stored)
    tree.fields[9] = (TType.STRING, _TEXT)
    put_filter(path, "city", BloomFilterHeader(tree).encode() + stored[length:])


@way("the header of a page of a column in clear", "unchecked-fields", **CHECKED)
@way("the header of a page of a column in clear, values", "values-in-clear", **CHECKED)
def _(folder: Path) -> Example:
    path, example = _ruled(folder, compression="none")
    with opened(path) as it:
        meta_data = _city(it)
        start = meta_data.dictionary_page_offset or meta_data.data_page_offset
        pages = it.file.read_at(start, meta_data.total_compressed_size)
        tree, length = trees.decode(pages)
        tree.fields[99] = (TType.STRING, _TEXT)
        header = trees.encode(tree)

    def change(it: Opened) -> bytes:
        meta_data, more = _city(it), len(header) - length
        behind = meta_data.data_page_offset - start
        meta_data.dictionary_page_offset = it.footer.tail.offset
        meta_data.data_page_offset = it.footer.tail.offset + behind + more
        meta_data.total_compressed_size += more
        meta_data.total_uncompressed_size += more
        return header + pages[length:]

    edit_footer(path, change)
    return example


@way("bytes after the pages of a column", "values-in-clear", **CHECKED)
def _(folder: Path) -> Example:
    path, example = _ruled(folder)
    with opened(path) as it:
        meta_data = _city(it)
        start = meta_data.dictionary_page_offset or meta_data.data_page_offset
        pages = it.file.read_at(start, meta_data.total_compressed_size) + _TEXT

    def change(it: Opened) -> bytes:
        meta_data = _city(it)
        more = it.footer.tail.offset - start
        meta_data.dictionary_page_offset = (meta_data.dictionary_page_offset or 0) + more
        meta_data.data_page_offset += more
        meta_data.total_compressed_size = len(pages)
        return pages

    edit_footer(path, change)
    return example


@way("bytes after the pages of a sensitive column", "values-in-clear", **CHECKED)
def _(folder: Path) -> None:
    path = lake(folder)
    with opened(path) as it:
        chunk = it.chunk(0, "iban")
        start = chunk.meta_data.dictionary_page_offset or chunk.meta_data.data_page_offset
        pages = it.file.read_at(start, chunk.meta_data.total_compressed_size) + _TEXT

    def change(it: Opened) -> bytes:
        chunk = it.chunk(0, "iban")
        more = it.footer.tail.offset - start
        chunk.meta_data.dictionary_page_offset = (
            chunk.meta_data.dictionary_page_offset or 0
        ) + more
        chunk.meta_data.data_page_offset += more
        chunk.meta_data.total_compressed_size = len(pages)
        seal_metadata(chunk)
        return pages

    edit_footer(path, change)


__all__ = ["WAYS"]
