"""The page index of a chunk: only one that fits the chunk tells where its pages are."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pyarrow as pa
import pytest

from secure_bloom.errors import IntegrityError
from secure_bloom.parquet.page_index import column_index_extent, offset_index_extent, page_spans
from secure_bloom.parquet.pages import read_pages
from tests.surgery import Opened, opened
from tests.tables import Mode, write

ROWS = 50


@pytest.fixture(params=[Mode.PLAIN, Mode.ENCRYPTED], ids=lambda mode: mode.name)
def file(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Opened]:
    path = write(
        tmp_path / "x.parquet",
        pa.table({"n": range(ROWS)}),
        request.param,
        column_keys={"k_pii": ["n"]},
        write_page_index=True,
        data_page_size=64,
        write_batch_size=8,
        use_dictionary=False,
    )
    with opened(path) as it:
        yield it


def index_bytes(file: Opened) -> bytes:
    extent = offset_index_extent(file.chunk(0, "n"), file.file.size)
    assert extent is not None
    return file.file.read_at(*extent)


def test_spans_are_the_pages_of_the_chunk(file: Opened) -> None:
    chunk = file.chunk(0, "n")
    spans = page_spans(chunk, index_bytes(file))
    assert spans is not None
    pages = read_pages(file.file, chunk)
    assert [span.end - span.start for span in spans] == [page.num_values for page in pages]
    assert (spans[0].start, spans[-1].end) == (0, ROWS)
    assert spans[0].offset == chunk.meta_data.data_page_offset
    assert sum(span.length for span in spans) == chunk.meta_data.total_compressed_size


def test_an_index_of_another_chunk_is_not_used(file: Opened) -> None:
    chunk = file.chunk(0, "n")
    chunk.meta_data.data_page_offset += 1
    assert page_spans(chunk, index_bytes(file)) is None


def test_damaged_bytes_are_no_index_and_altered_modules_an_error(file: Opened) -> None:
    chunk = file.chunk(0, "n")
    damaged = bytearray(index_bytes(file))
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
    file: Opened, offset: int | None, length: int | None
) -> None:
    chunk = file.chunk(0, "n")
    for name, value in (("offset", offset), ("length", length)):
        if value is None:
            delattr(chunk.column_chunk, f"column_index_{name}")
        else:
            setattr(chunk.column_chunk, f"column_index_{name}", value)
    assert column_index_extent(chunk, file.file.size) is None
