"""The regions of a file are told in its order; what shares bytes or leaves the file is refused."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import secure_bloom as sb
from secure_bloom.bloom.stored import filter_extent
from secure_bloom.errors import FormatError
from secure_bloom.rekeying.regions import Region, RegionKind, regions
from testing.surgery import Opened, opened
from testing.tables import write

TABLE = pa.table({"a": range(40), "b": range(40)})


@pytest.fixture
def file(tmp_path: Path) -> Iterator[Opened]:
    path = write(tmp_path / "x.parquet", TABLE, row_group_size=20, write_page_index=True)
    sb.add_bloom_filters(path, columns=["b"])
    with opened(path, None) as it:
        yield it


def found(file: Opened) -> list[Region]:
    chunks = [(i, file.chunk(g, name)) for g in range(2) for i, name in enumerate(("a", "b"))]
    return regions(
        ((column, chunk, filter_extent(file.file, chunk)) for column, chunk in chunks),
        file.footer.tail.offset,
    )


def test_pages_indexes_and_filters_are_all_of_the_file(file: Opened) -> None:
    every = found(file)
    assert [it.kind for it in every].count(RegionKind.PAGES) == 4
    assert [it.kind for it in every].count(RegionKind.FILTER) == 2
    assert [it.kind for it in every].count(RegionKind.OFFSET_INDEX) == 4
    assert [it.offset for it in every] == sorted(it.offset for it in every)
    assert all(a.end <= b.offset for a, b in itertools.pairwise(every))
    assert sum(it.length for it in every) == file.footer.tail.offset - 4


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("data_page_offset", 5),
        ("total_compressed_size", 10**6),
        ("bloom_filter_offset", 4),
        ("bloom_filter_offset", 10**9),
    ],
)
def test_regions_that_overlap_or_leave_the_file_are_refused(
    file: Opened, name: str, value: int
) -> None:
    chunk = file.chunk(1, "b")
    del chunk.meta_data.dictionary_page_offset
    setattr(chunk.meta_data, name, value)
    with pytest.raises(FormatError, match="is outside the file's data, or overlaps another part"):
        found(file)


def test_an_offset_index_in_front_of_its_pages_is_refused(file: Opened) -> None:
    pages = file.chunk(0, "a")
    column: Any = file.chunk(1, "a").column_chunk
    length = column.offset_index_length
    # Room is made in front of the first pages, and the index is said to stand there.
    pages.meta_data.total_compressed_size -= length
    pages.meta_data.data_page_offset += length
    pages.meta_data.dictionary_page_offset = 4 + length
    column.offset_index_offset = 4
    with pytest.raises(FormatError, match="comes before the pages that it lists"):
        found(file)
