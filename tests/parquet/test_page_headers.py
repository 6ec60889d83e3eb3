"""Page headers that cannot be are refused."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from secure_bloom.errors import FormatError
from secure_bloom.parquet.pages import read_pages
from secure_bloom.parquet.structures.metadata import (
    DataPageHeader,
    Encoding,
    PageHeader,
    PageType,
)
from tests.surgery import edit_column, opened
from tests.tables import write


def page_header(**fields: object) -> PageHeader:
    defaults = {"type": PageType.DATA_PAGE, "uncompressed_page_size": 8}
    return PageHeader.of(**{**defaults, "compressed_page_size": 8, **fields})


def values(cls: Any, num_values: int) -> object:
    levels = {"definition_level_encoding": Encoding.RLE, "repetition_level_encoding": Encoding.RLE}
    extra = levels if cls is DataPageHeader else {}
    return cls.of(num_values=num_values, encoding=Encoding.PLAIN, **extra)


@pytest.mark.parametrize(
    ("header", "text"),
    [
        (page_header(), "DATA_PAGE lacks its own header"),
        (page_header(type=PageType.DATA_PAGE_V2), "DATA_PAGE_V2 lacks its own header"),
        (page_header(data_page_header=values(DataPageHeader, -1)), "-1 values"),
        (
            page_header(compressed_page_size=2**31 - 1, data_page_header=values(DataPageHeader, 1)),
            "2147483647 bytes",
        ),
        (
            page_header(compressed_page_size=-8, data_page_header=values(DataPageHeader, 1)),
            "-8 bytes",
        ),
        (page_header(type=PageType.INDEX_PAGE), "pages end"),
    ],
)
def test_a_page_header_that_cannot_be_is_refused(
    tmp_path: Path, header: PageHeader, text: str
) -> None:
    path = write(tmp_path / "x.parquet", pa.table({"n": pa.array([1, 2], pa.int64())}))
    content = header.encode() + bytes(8)
    path.write_bytes(path.read_bytes()[:4] + content + path.read_bytes()[4:])

    def point_at_it(meta_data) -> None:
        del meta_data.dictionary_page_offset
        meta_data.data_page_offset = 4
        meta_data.total_compressed_size = len(content)

    edit_column(path, 0, "n", point_at_it)
    with opened(path) as it, pytest.raises(FormatError, match=text):
        assert all(page.num_values >= 0 for page in read_pages(it.file, it.chunk(0, "n")))
