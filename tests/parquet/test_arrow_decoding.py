"""pyarrow decodes pages in a file of one column: every item, and an error for what is missing."""

from __future__ import annotations

import dataclasses
from pathlib import Path

import pyarrow as pa
import pytest

from secure_bloom.errors import FormatError
from secure_bloom.parquet.arrow_decoding import decode_dictionary, decode_items, decode_stored
from secure_bloom.parquet.memory_files import StoredPages
from secure_bloom.parquet.pages import read_pages
from testing.surgery import Opened, opened
from testing.tables import Mode, write

TABLE = pa.table(
    {
        "text": ["a", None, "ccc", "a"],
        "list": [[1, 2], [], None, [3]],
        "s": [{"x": {"y": 1.5}}, {"x": None}, None, {"x": {"y": -0.0}}],
    }
)
MODES = [Mode.PLAIN, Mode.UNIFORM]


@pytest.fixture(params=MODES, ids=lambda mode: mode.name)
def file(request: pytest.FixtureRequest, tmp_path: Path):
    with opened(write(tmp_path / "x.parquet", TABLE, request.param)) as it:
        yield it


def items(file: Opened, name: str, *, nulls: bool) -> list[object]:
    chunk = file.chunk(0, name)
    pages = read_pages(file.file, chunk)
    given = {"rows": 4, "has_dictionary": pages[0].is_dictionary}
    if nulls:
        found = decode_items(chunk.leaf, chunk.codec, pages, **given)
    else:
        found = decode_stored(chunk.leaf, chunk.codec, StoredPages.of(pages), **given)
    return [item for array in found for item in array.to_pylist()]


def name_of(file: Opened, top: str) -> str:
    return next(leaf.name for leaf in file.footer.leaves if leaf.path[0] == top)


@pytest.mark.parametrize(
    ("top", "values", "with_nulls"),
    [
        ("text", [b"a", b"ccc", b"a"], [b"a", None, b"ccc", b"a"]),
        ("list", [1, 2, 3], [1, 2, 3]),
        ("s", [1.5, -0.0], [1.5, None, None, -0.0]),
    ],
)
def test_items_of_leaves(
    file: Opened, top: str, values: list[object], with_nulls: list[object]
) -> None:
    name = name_of(file, top)
    assert items(file, name, nulls=False) == values
    assert items(file, name, nulls=True) == with_nulls


def test_entries_of_a_dictionary_are_physical_values(file: Opened) -> None:
    chunk = file.chunk(0, "text")
    page = read_pages(file.file, chunk)[0]
    found = decode_dictionary(chunk.leaf, chunk.codec, page)
    assert [value for array in found for value in array.to_pylist()] == [b"a", b"ccc"]


def test_rows_that_are_missing_are_an_error(file: Opened) -> None:
    chunk = file.chunk(0, "text")
    pages = read_pages(file.file, chunk)
    stored = StoredPages.of(pages)
    with pytest.raises(FormatError, match="hold 4 rows, wanted 5"):
        list(decode_stored(chunk.leaf, chunk.codec, stored, rows=5, has_dictionary=True))


def test_a_dictionary_with_more_entries_than_it_says_is_an_error(file: Opened) -> None:
    chunk = file.chunk(0, "text")
    page = read_pages(file.file, chunk)[0]
    page = dataclasses.replace(page, counts=(1, page.encoding))
    with pytest.raises(FormatError, match="the 1 entries in its header take 5"):
        list(decode_dictionary(chunk.leaf, chunk.codec, page))
