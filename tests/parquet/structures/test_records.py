"""Records: the same fields as views, and structures that are decoded when they are looked at."""

from __future__ import annotations

import functools
import io
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st

from secure_bloom.errors import FormatError
from secure_bloom.parquet.structures import records
from secure_bloom.parquet.structures.metadata import (
    ColumnChunk,
    FileMetaData,
    LogicalType,
    Statistics,
)
from secure_bloom.parquet.structures.records import (
    LaterRecords,
    RecordSource,
    decode_record,
    measured_outline,
    measured_record,
)
from testing.quick_cases import examples


@functools.cache
def _footer() -> bytes:
    """The footer of a file with three row groups of columns of several kinds."""
    table = pa.table(
        {
            "text": ["a", "b", None, "ü"] * 3,
            "number": pa.array(range(12), pa.int64()),
            "list": [[1.5], [], None, [2.5, -1.0]] * 3,
        }
    )
    out = io.BytesIO()
    pq.write_table(table, out, row_group_size=4, write_page_index=True)
    file = out.getvalue()
    return file[-8 - int.from_bytes(file[-8:-4], "little") : -8]


def _values(record: Any) -> Any:
    """Records, and lists of them, as plain Python values."""
    if isinstance(record, list | LaterRecords):
        return [_values(item) for item in record]
    if type(record).__module__ == "builtins":
        return record
    return {name: _values(value) for name, value in vars(record).items()}


def _outlined(footer: bytes) -> tuple[Any, int]:
    """The footer by its outline, every chunk of it looked at."""
    metadata, length = measured_outline(FileMetaData, footer, ColumnChunk)
    source = RecordSource(ColumnChunk, footer)
    for group in vars(metadata).get("row_groups", []):
        if "columns" in vars(group):
            group.columns = LaterRecords(source, group.columns)
    return _values(metadata), length


def _whole(footer: bytes) -> tuple[Any, int]:
    metadata, length = measured_record(FileMetaData, footer)
    return _values(metadata), length


def _outcome(decode: Any, footer: bytes) -> Any:
    try:
        return decode(footer)
    except FormatError:
        return FormatError


def test_an_outline_has_the_places_of_structures_and_all_else() -> None:
    footer = _footer()
    metadata, length = measured_outline(FileMetaData, footer, ColumnChunk)
    assert length == len(footer)
    places = [place for group in metadata.row_groups for place in group.columns]
    assert len(places) == 9
    assert places == sorted(set(places))
    assert _outlined(footer) == _whole(footer)


@examples(25)
@given(st.data())
def test_a_damaged_footer_is_refused_by_its_outline_as_it_is_whole(data: st.DataObject) -> None:
    footer = bytearray(_footer())
    for _ in range(data.draw(st.integers(1, 3))):
        place = data.draw(st.integers(0, len(footer) - 1))
        footer[place] = data.draw(st.integers(0, 255))
    damaged = bytes(footer[: data.draw(st.sampled_from([len(footer), place + 1]))])
    assert repr(_outcome(_outlined, damaged)) == repr(_outcome(_whole, damaged))


@given(st.binary(max_size=200))
def test_bytes_that_are_no_footer_are_refused_by_their_outline_as_whole(stored: bytes) -> None:
    assert repr(_outcome(_outlined, stored)) == repr(_outcome(_whole, stored))


def test_structures_of_a_list_are_decoded_once_and_by_place() -> None:
    footer = _footer()
    metadata, _ = measured_outline(FileMetaData, footer, ColumnChunk)
    chunks = LaterRecords(RecordSource(ColumnChunk, footer), metadata.row_groups[1].columns)
    assert len(chunks) == 3
    assert chunks[1].meta_data.path_in_schema == ["number"]
    assert chunks[1] is chunks[1]
    assert [chunk.meta_data.num_values for chunk in chunks] == [4, 4, 5]


def test_what_only_decoding_refuses_shows_when_the_structure_is_looked_at() -> None:
    footer = bytearray(_footer())
    metadata, _ = measured_outline(FileMetaData, bytes(footer), ColumnChunk)
    encodings = footer.index(b"\x19\x35", metadata.row_groups[2].columns[1]) + 1
    # A list of three i64 where i32 are wanted: a whole structure, and not a ColumnMetaData.
    footer[encodings] = 0x36
    metadata, _ = measured_outline(FileMetaData, bytes(footer), ColumnChunk)
    chunks = LaterRecords(RecordSource(ColumnChunk, bytes(footer)), metadata.row_groups[2].columns)
    assert chunks[0].meta_data.path_in_schema == ["text"]
    with pytest.raises(FormatError, match="damaged"):
        chunks[1]


def test_absent_fields_of_a_record_are_none_or_refused_by_name() -> None:
    assert decode_record(Statistics, b"\x00").null_count is None
    with pytest.raises(FormatError, match=r"ColumnChunk\.file_offset is missing"):
        _ = decode_record(ColumnChunk, b"\x00").file_offset


def test_without_the_librarys_c_code_records_have_the_same_fields(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    footer = _footer()
    fast, length = measured_record(FileMetaData, footer)
    places, _ = measured_outline(FileMetaData, footer, ColumnChunk)
    monkeypatch.setattr(records, "HAS_C_CODE", False)
    slow_places, measured = measured_outline(FileMetaData, footer, ColumnChunk)
    assert measured == length
    assert [g.columns for g in slow_places.row_groups] == [g.columns for g in places.row_groups]
    for group in slow_places.row_groups:
        group.columns = LaterRecords(RecordSource(ColumnChunk, footer), group.columns)  # type: ignore[assignment]
    for slow in (measured_record(FileMetaData, footer)[0], slow_places):
        assert slow.created_by == fast.created_by
        for mine, theirs in zip(slow.row_groups, fast.row_groups, strict=True):
            assert mine.num_rows == theirs.num_rows
            for one, other in zip(mine.columns, theirs.columns, strict=True):
                assert one.meta_data.codec == other.meta_data.codec
                assert one.meta_data.path_in_schema == other.meta_data.path_in_schema
                assert one.meta_data.statistics.max_value == other.meta_data.statistics.max_value
    assert decode_record(LogicalType, b"\x1c\x00\x00").member() == "STRING"
    with pytest.raises(FormatError, match=r"ColumnChunk\.file_offset is missing"):
        _ = decode_record(ColumnChunk, b"\x00").file_offset
