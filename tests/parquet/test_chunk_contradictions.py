"""What a file says of a chunk and cannot be true is told; what may be true is not."""

from __future__ import annotations

from typing import Any

import pytest

from secure_bloom.parquet.chunk_contradictions import (
    in_bounds,
    in_column_index,
    in_counts,
    in_null_count,
    in_offset_index,
)
from secure_bloom.parquet.footer.chunks import Chunk
from secure_bloom.parquet.page_index import (
    column_index_extent,
    decode_column_index,
    decode_offset_index,
    offset_index_extent,
    page_spans,
)
from secure_bloom.parquet.value_order import order_of
from testing.surgery import Opened
from testing.thrift.metadata import SizeStatistics, Statistics
from tests.parquet.conftest import ROWS


def chunk_of(paged_file: Opened) -> Chunk:
    return paged_file.chunk(0, "n")


def indexes(paged_file: Opened) -> tuple[Any, Any, list[int]]:
    """The chunk's two indexes, and the rows of its pages."""
    chunk = chunk_of(paged_file)
    offsets = paged_file.file.read_at(*(offset_index_extent(chunk, paged_file.file.size) or (0, 0)))
    columns = paged_file.file.read_at(*(column_index_extent(chunk, paged_file.file.size) or (0, 0)))
    spans = page_spans(chunk, offsets) or []
    return (
        decode_offset_index(chunk, offsets),
        decode_column_index(chunk, columns),
        [span.end - span.start for span in spans],
    )


def test_what_a_writer_writes_does_not_contradict_itself(paged_file: Opened) -> None:
    chunk = chunk_of(paged_file)
    offset_index, column_index, rows = indexes(paged_file)
    assert len(rows) > 3
    assert list(in_counts(chunk.leaf, chunk.meta_data, ROWS)) == []
    assert list(in_null_count(chunk.leaf, chunk.meta_data)) == []
    assert list(in_offset_index(chunk, offset_index)) == []
    assert list(in_column_index(chunk, column_index, rows, order_of(chunk.leaf))) == []


@pytest.mark.parametrize(
    ("is_list", "rows", "is_wrong"),
    [(False, ROWS + 1, True), (False, ROWS - 1, True), (True, ROWS + 1, True), (True, 9, False)],
)
def test_values_are_as_many_as_rows_or_more_in_lists(
    paged_file: Opened, is_list: bool, rows: int, is_wrong: bool
) -> None:
    leaf = next(leaf for leaf in paged_file.footer.leaves if leaf.is_repeated is is_list)
    found = list(in_counts(leaf, paged_file.chunk(0, leaf.name).meta_data, rows))
    said = f"ColumnMetaData.num_values is 60, the row group has {rows} rows"
    assert found == ([said] if is_wrong else [])


@pytest.mark.parametrize(
    ("statistics", "histogram", "said"),
    [
        ({"null_count": -1}, None, "null_count is -1, of 60 values"),
        ({"null_count": 61}, None, "null_count is 61, of 60 values"),
        ({"null_count": 60, "min_value": b"x"}, None, "all values are null, and there are bounds"),
        ({"null_count": 10}, [9, 51], "the histogram of definition levels has other counts"),
        ({"null_count": 10}, [10, 50], None),
        ({}, None, None),
    ],
)
def test_counts_of_nulls(
    paged_file: Opened, statistics: dict[str, Any], histogram: list[int] | None, said: str | None
) -> None:
    chunk = chunk_of(paged_file)
    chunk.meta_data.statistics = Statistics.of(**statistics)
    if histogram is not None:
        sizes = SizeStatistics.of(definition_level_histogram=histogram)
        chunk.meta_data.size_statistics = sizes
    elif chunk.meta_data.size_statistics is not None:
        del chunk.meta_data.size_statistics
    found = list(in_null_count(chunk.leaf, chunk.meta_data))
    assert len(found) == (said is not None)
    assert said is None or said in found[0]


@pytest.mark.parametrize(
    ("low", "high", "said"),
    [
        (1, 2, None),
        (2, 2, None),
        (3, 2, "the lower bound is above the upper"),
        (b"short", 2, "a bound is not a value of the column's type"),
        (None, 2, None),
    ],
)
def test_bounds_that_no_value_can_have_are_told(
    paged_file: Opened, low: Any, high: int, said: str | None
) -> None:
    stored = low.to_bytes(8, "little") if isinstance(low, int) else low
    order = order_of(chunk_of(paged_file).leaf)
    found = list(in_bounds(order, stored, high.to_bytes(8, "little")))
    assert found == ([] if said is None else [f"Statistics: {said}"])


@pytest.mark.parametrize(
    "change",
    [
        lambda pages: setattr(pages[1], "first_row_index", 0),
        lambda pages: setattr(pages[-1], "first_row_index", ROWS),
        lambda pages: setattr(pages[0], "first_row_index", 1),
        lambda pages: setattr(pages[1], "offset", pages[1].offset + 1),
        lambda pages: setattr(pages[-1], "compressed_page_size", 1),
        lambda pages: pages.clear(),
    ],
)
def test_pages_stand_one_behind_the_other_and_have_all_rows(
    paged_file: Opened, change: Any
) -> None:
    index, _, _ = indexes(paged_file)
    pages = list(index.page_locations)
    change(pages)
    index.page_locations = pages
    assert list(in_offset_index(chunk_of(paged_file), index))


@pytest.mark.parametrize(
    ("change", "said"),
    [
        (lambda it: setattr(it, "null_pages", it.null_pages[1:]), "its lists are not all of"),
        (
            lambda it: setattr(it, "null_counts", [it.null_counts[0] + 1, *it.null_counts[1:]]),
            "Statistics.null_count is 10",
        ),
        (
            lambda it: setattr(it, "null_pages", [True, *it.null_pages[1:]]),
            "null_pages and null_counts do not agree",
        ),
        (
            lambda it: setattr(it, "max_values", [it.min_values[0], *it.max_values[1:]][::-1]),
            "lower bound of a page is above the upper",
        ),
    ],
)
def test_a_column_index_fits_pages_and_statistics(
    paged_file: Opened, change: Any, said: str
) -> None:
    _, index, rows = indexes(paged_file)
    change(index)
    chunk = chunk_of(paged_file)
    assert said in "; ".join(in_column_index(chunk, index, rows, order_of(chunk.leaf)))
