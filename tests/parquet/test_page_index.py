"""The page index of a chunk: only one that fits the chunk tells where its pages are."""

from __future__ import annotations

import pytest

from secure_bloom.errors import IntegrityError
from secure_bloom.parquet.page_index import (
    column_index_extent,
    indexes_extent,
    offset_index_extent,
    page_spans,
)
from secure_bloom.parquet.pages import read_pages
from testing.surgery import Opened
from tests.parquet.conftest import ROWS


def index_bytes(paged_file: Opened) -> bytes:
    extent = offset_index_extent(paged_file.chunk(0, "n"), paged_file.file.size)
    assert extent is not None
    return paged_file.file.read_at(*extent)


def test_spans_are_the_pages_of_the_chunk(paged_file: Opened) -> None:
    chunk = paged_file.chunk(0, "n")
    spans = page_spans(chunk, index_bytes(paged_file))
    assert spans is not None
    pages = read_pages(paged_file.file, chunk)
    assert [span.end - span.start for span in spans] == [page.num_values for page in pages]
    assert (spans[0].start, spans[-1].end) == (0, ROWS)
    assert spans[0].offset == chunk.meta_data.data_page_offset
    assert sum(span.length for span in spans) == chunk.meta_data.total_compressed_size


def test_an_index_of_another_chunk_is_not_used(paged_file: Opened) -> None:
    chunk = paged_file.chunk(0, "n")
    chunk.meta_data.data_page_offset += 1
    assert page_spans(chunk, index_bytes(paged_file)) is None


def test_damaged_bytes_are_no_index_and_altered_modules_an_error(paged_file: Opened) -> None:
    chunk = paged_file.chunk(0, "n")
    damaged = bytearray(index_bytes(paged_file))
    damaged[-1] ^= 0xFF
    if chunk.cipher is None:
        assert page_spans(chunk, bytes(damaged)) is None
    else:
        with pytest.raises(IntegrityError):
            page_spans(chunk, bytes(damaged))


@pytest.mark.parametrize(
    ("offset", "length"),
    [(None, 5), (5, None), (-1, 5), (5, 0), (5, -5), (5, 10**9), (10**9, 5)],
)
def test_an_index_outside_of_the_file_is_none(
    paged_file: Opened, offset: int | None, length: int | None
) -> None:
    chunk = paged_file.chunk(0, "n")
    for name, value in (("offset", offset), ("length", length)):
        if value is None:
            delattr(chunk.column_chunk, f"column_index_{name}")
        else:
            setattr(chunk.column_chunk, f"column_index_{name}", value)
    assert column_index_extent(chunk, paged_file.file.size) is None


def test_the_indexes_of_a_file_are_fetched_together_only_behind_the_pages(
    paged_file: Opened,
) -> None:
    size, groups = paged_file.file.size, paged_file.footer.row_groups
    found = indexes_extent(groups, size)
    assert found is not None
    start, end = found[0], sum(found)
    for name in (leaf.name for leaf in paged_file.footer.leaves):
        for extent in (column_index_extent, offset_index_extent):
            each = extent(paged_file.chunk(0, name), size)
            assert each is not None
            assert start <= each[0] < sum(each) <= end
    assert indexes_extent(groups, end - 1) is None
    # A footer that names a place among the pages.
    groups[0].columns[0].column_index_offset = groups[0].file_offset
    assert indexes_extent(groups, size) is None
