"""A scan finds the parts of a footer, and decodes a schema once."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from secure_bloom.encryption.file_keys import KeyResolver
from secure_bloom.errors import FormatError
from secure_bloom.parquet.footer import scan
from secure_bloom.parquet.footer.locate import read_tail
from secure_bloom.parquet.footer.opened import unlock
from secure_bloom.parquet.footer.scan import scan_footer
from secure_bloom.parquet.key_material_files import file_keys
from secure_bloom.parquet.structures.format_fields import known_fields
from secure_bloom.parquet.structures.metadata import ColumnChunk as View
from secure_bloom.parquet.structures.records import HAS_C_CODE, decode_record
from secure_bloom.storage import open_input
from testing.surgery import opened
from testing.tables import KEYRING, Mode, customers, write
from testing.thrift import trees
from testing.thrift.metadata import ColumnChunk, FileMetaData
from testing.thrift.trees import Struct


def _footer(path: Path) -> bytes:
    with open_input(str(path)) as file:
        return read_tail(file).clear


@pytest.fixture
def plain(tmp_path: Path) -> bytes:
    return _footer(write(tmp_path / "x.parquet", customers(40), row_group_size=20))


def _reordered(plain: bytes, *ids: int) -> bytes:
    fields = trees.decode(plain)[0].fields
    return trees.encode(Struct({field_id: fields[field_id] for field_id in ids}))


def test_an_offset_leads_to_each_chunk(plain: bytes) -> None:
    found = scan_footer(plain + b"behind it")
    assert found.length == len(plain)
    assert [len(offsets) for offsets in found.chunk_offsets] == [5, 5]
    for offsets, group in zip(found.chunk_offsets, found.row_groups, strict=True):
        for offset, chunk in zip(offsets, group.columns, strict=True):
            there = decode_record(ColumnChunk, plain[offset:])
            assert there.file_offset == chunk.file_offset
            assert there.meta_data is not None
            assert chunk.meta_data is not None
            assert there.meta_data.path_in_schema == chunk.meta_data.path_in_schema


@pytest.mark.skipif(not HAS_C_CODE, reason="without C code there is no record")
@pytest.mark.parametrize("mode", [Mode.PLAIN, Mode.SIGNED, Mode.ENCRYPTED])
def test_chunks_of_a_footer_decoded_whole_are_those_decoded_one_by_one(
    tmp_path: Path, mode: Mode
) -> None:
    table = customers(40)
    path = write(tmp_path / "x.parquet", table, mode, row_group_size=20, write_page_index=True)
    with open_input(str(path)) as file:
        plain = unlock(read_tail(file), file_keys(KeyResolver(KEYRING), file)).plain
    one_by_one, taken = scan_footer(plain), scan_footer(plain)
    whole = known_fields("FileMetaData", plain)
    assert whole is not None
    taken.take_chunks(whole.row_groups)
    for wanted, found in zip(one_by_one.column_chunks, taken.column_chunks, strict=True):
        assert [_values(View, it) for it in found] == [_values(View, it) for it in wanted]
        assert len(found) == len(table.column_names)
        assert found[0] is whole.row_groups[taken.column_chunks.index(found)].columns[0]


def _values(view: Any, record: Any) -> Any:
    """Return the declared fields of a record, and of the records in it."""
    if isinstance(record, list):
        return [_values(view, it) for it in record]
    if not hasattr(view, "FIELDS") or record is None:
        return record
    kinds = {name: field.kind for name, field in view.FIELDS.items()}
    return {
        name: _values(getattr(kind.inner, "inner", None) or kind.inner, getattr(record, name))
        for name, kind in kinds.items()
    }


def test_files_of_one_schema_share_it(tmp_path: Path, plain: bytes) -> None:
    other = _footer(write(tmp_path / "y.parquet", customers(7)))
    assert other != plain
    assert scan_footer(other).schema is scan_footer(plain).schema
    changed = pa.table({"email": ["a"]})
    assert (
        scan_footer(_footer(write(tmp_path / "z.parquet", changed))).schema.leaves[0].name
        == "email"
    )


def test_schemas_are_forgotten_before_they_fill_the_memory(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, plain: bytes
) -> None:
    monkeypatch.setattr(scan, "_schemas", scan._Schemas())
    monkeypatch.setattr(scan, "_KNOWN_BYTES", 300)
    first = scan_footer(plain).schema
    for number in range(10):
        table = pa.table({f"a_column_with_a_long_name_{number}": [1]})
        footer = scan_footer(_footer(write(tmp_path / f"{number}.parquet", table)))
        assert footer.schema.leaves[0].name == table.column_names[0]
        assert sum(map(len, scan._schemas._known)) <= 300
    again = scan_footer(plain).schema
    assert again is not first
    assert again.encoded == first.encoded


def test_a_schema_is_found_wherever_it_stands(plain: bytes) -> None:
    assert scan_footer(_reordered(plain, 1, 4, 2, 3)).schema is scan_footer(plain).schema


def test_a_schema_that_is_no_tree_is_refused_when_it_is_looked_at(plain: bytes) -> None:
    tree, _ = trees.decode(plain)
    tree.fields[2][1].items.pop()  # type: ignore[union-attr]
    found = scan_footer(trees.encode(tree))
    assert found.metadata.num_rows == 40
    with pytest.raises(FormatError, match="more nodes than its list"):
        found.check_chunks()
    tree.fields[2][1].items.clear()  # type: ignore[union-attr]
    with pytest.raises(FormatError, match="no root"):
        _ = scan_footer(trees.encode(tree)).schema


def test_chunks_are_as_many_as_columns(plain: bytes) -> None:
    tree, _ = trees.decode(plain)
    tree.fields[4][1].items[1].fields[1][1].items.pop()  # type: ignore[union-attr]
    with pytest.raises(FormatError, match="4 column chunks, the schema has 5 columns") as caught:
        scan_footer(trees.encode(tree)).check_chunks()
    assert caught.value.row_group == 1


def test_numbers_ordinals_and_chunks(tmp_path: Path) -> None:
    table = pa.table({"a": range(30), "b": range(30)})
    with opened(write(tmp_path / "x.parquet", table, row_group_size=10)) as it:
        metadata: FileMetaData = it.footer.metadata
        for group in metadata.row_groups:
            del group.ordinal
        metadata.row_groups[1].ordinal = 7
        found = scan_footer(metadata.encode())
    groups = found.row_groups
    assert found.rows == [10, 10, 10]
    assert found.ordinals == [0, 7, 2]
    assert [group.ordinal for group in groups] == [None, 7, None]
    paths = [[chunk.meta_data.path_in_schema for chunk in g.columns] for g in groups]  # type: ignore[union-attr]
    assert paths == [[["a"], ["b"]]] * 3
    assert groups[1] is groups[1]
