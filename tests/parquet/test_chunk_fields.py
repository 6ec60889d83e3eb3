"""Fields of many chunks as numbers: what the Thrift library reads, or nothing."""

from __future__ import annotations

import re
from array import array
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from secure_bloom.errors import FormatError
from secure_bloom.parquet import chunk_fields
from secure_bloom.parquet.chunk_fields import SLOTS, read_chunks, read_meta_data
from secure_bloom.parquet.footer.scan import scan_footer
from secure_bloom.parquet.structures.records import decode_record
from testing.project import ROOT
from testing.surgery import opened
from testing.tables import customers, write
from testing.thrift.metadata import ColumnChunk, ColumnMetaData
from tests.kernels import ABSENT, mutations, needs_native

pytestmark = needs_native
NUMBERS = ("num_values", "data_page_offset", "dictionary_page_offset", "bloom_filter_offset")


@pytest.fixture(scope="module")
def plain(tmp_path_factory: pytest.TempPathFactory) -> bytes:
    """The FileMetaData of a file with two row groups of five columns."""
    path = tmp_path_factory.mktemp("chunks") / "x.parquet"
    with opened(write(path, customers(40), row_group_size=20)) as it:
        encoded: bytes = it.footer.metadata.encode()
    return encoded


def assert_says(row: list[int], data: bytes, meta: ColumnMetaData) -> None:
    for name in NUMBERS:
        number = getattr(meta, name)
        assert row[getattr(chunk_fields, name.upper())] == (ABSENT if number is None else number)
    start, end = row[chunk_fields.MIN_VALUE : chunk_fields.MIN_VALUE + 2]
    low = None if meta.statistics is None else meta.statistics.min_value
    assert (None if start == ABSENT else data[start:end]) == low


def rows_of(found: memoryview) -> list[list[int]]:
    numbers = found.tolist()
    return [numbers[start : start + SLOTS] for start in range(0, len(numbers), SLOTS)]


def test_chunks_in_a_footer_and_metadata_in_a_run(plain: bytes) -> None:
    found = scan_footer(plain)
    offsets = [offset for offsets in found.chunk_offsets for offset in offsets]
    rows = read_chunks(plain, array("q", offsets), len(offsets))
    chunks = [chunk for group in found.row_groups for chunk in group.columns]
    metas = [chunk.meta_data for chunk in chunks if chunk.meta_data is not None]
    assert rows is not None
    for row, meta in zip(rows_of(rows), metas, strict=True):
        assert_says(row, plain, meta)
    starts = [plain.index(b"\x19", offset) for offset in offsets]
    assert read_meta_data(plain, array("q", [*starts, len(plain)]), len(starts)) is None


@given(st.data())
def test_hostile_chunks_say_what_the_library_reads(plain: bytes, data: st.DataObject) -> None:
    start = scan_footer(plain).chunk_offsets[0][2]
    hostile = data.draw(mutations(plain[start:]))
    rows = read_chunks(hostile, array("q", [0]), 1)
    if rows is not None:
        meta = decode_record(ColumnChunk, hostile).meta_data
        if meta is not None:
            try:
                assert_says(rows.tolist(), hostile, meta)
            except FormatError as missing:
                assert "is missing" in missing.message  # noqa: PT017 - required and not there


def test_the_slots_are_those_of_the_extension() -> None:
    source = Path(ROOT, "secure_bloom/kernels/native/lookups.c").read_text()
    names = {
        "FILTER_OFFSET": "BLOOM_FILTER_OFFSET",
        "FILTER_LENGTH": "BLOOM_FILTER_LENGTH",
        "OLD_MIN": "MIN",
        "OLD_MAX": "MAX",
        "PATH": "PATH_IN_SCHEMA",
        "ENCRYPTED_METADATA": "ENCRYPTED_COLUMN_METADATA",
        "LEVEL_HISTOGRAM": "DEFINITION_LEVEL_HISTOGRAM",
    }
    found: dict[str, int] = {}
    body = re.search(r"enum \{\s*NUM_VALUES.*?\}", source, re.S)
    assert body is not None
    for entry in body[0].removeprefix("enum {").rstrip("}").split(","):
        name, _, value = (part.strip() for part in entry.partition("="))
        before, _, more = (part.strip() for part in value.partition("+"))
        found[name] = found[before] + int(more) if value else len(found)
    assert {names.get(name, name): slot for name, slot in found.items()} == {
        name: getattr(chunk_fields, name) for name in (names.get(it, it) for it in found)
    }
