"""Many small pages are read as rows of numbers, with the values and the errors of single pages."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path
from typing import Any
from unittest import mock

import pyarrow as pa
import pytest

from secure_bloom.errors import FormatError, IntegrityError, SecureBloomError
from secure_bloom.kernels import extension
from secure_bloom.parquet import column_values
from secure_bloom.parquet.column_values import read_encoded
from secure_bloom.parquet.decoded_bounds import measured, size_of_rows
from secure_bloom.parquet.dictionary_pages import (
    ClaimedDictionary,
    end_of_pages,
    read_full_dictionary,
    read_headers,
    read_rows,
)
from secure_bloom.parquet.footer.chunks import Chunk
from secure_bloom.parquet.page_rows import FIRST_PAGES, walk_rows
from secure_bloom.parquet.pages import chunk_extent, pages_in, read_pages
from secure_bloom.parquet.plain_pages import as_arrays
from secure_bloom.reading.rows import decoded_sizes
from secure_bloom.reading.rows.decoded_sizes import decoded_size
from testing.growth import calls
from testing.surgery import Opened, opened
from testing.tables import Mode, write

pytestmark = pytest.mark.skipif(extension.native is None, reason="rows are made by the C extension")

ROWS = 700
SMALL = {"data_page_size": 1, "write_batch_size": 1, "row_group_size": 10**6}
CTR = {"encryption_algorithm": "AES_GCM_CTR_V1"}
#: How a file is protected: the mode, and pyarrow's settings.
PROTECTIONS: dict[str, tuple[Mode, dict[str, str]]] = {
    "clear": (Mode.PLAIN, {}),
    "gcm": (Mode.ENCRYPTED, {}),
    "ctr": (Mode.ENCRYPTED, CTR),
}
#: Values, and pyarrow's options for them.
KINDS: dict[str, tuple[list[Any], dict[str, Any]]] = {
    "texts": ([f"text{n}" for n in range(ROWS)], {"use_dictionary": False}),
    "nulls": ([n if n % 5 else None for n in range(ROWS)], {"use_dictionary": False}),
    "version 2": (list(range(ROWS)), {"use_dictionary": False, "data_page_version": "2.0"}),
    "dictionary": ([f"t{n % 5}" for n in range(ROWS)], {"data_page_version": "2.0"}),
    "fallback": ([f"text{n}" for n in range(ROWS)], {"dictionary_pagesize_limit": 900}),
    "lists": ([[n, n + 1] for n in range(ROWS)], {"use_dictionary": False, "compression": "zstd"}),
    "no codec": ([float(n) for n in range(ROWS)], {"compression": "none", "use_dictionary": False}),
    "deltas": (
        list(range(ROWS)),
        {"use_dictionary": False, "column_encoding": "DELTA_BINARY_PACKED"},
    ),
}


def written(path: Path, kind: str, protection: str) -> Path:
    values, options = KINDS[kind]
    mode, encryption = PROTECTIONS[protection]
    leaf = "a.list.element" if kind == "lists" else "a"
    table = pa.table({"a": values})
    return write(
        path,
        table,
        mode,
        column_keys={"k_pii": [leaf]},
        encryption=encryption,
        **{**SMALL, **options},
    )


@pytest.fixture(params=[(k, p) for k in KINDS for p in PROTECTIONS], ids=lambda it: "-".join(it))
def small_file(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Opened]:
    with opened(written(tmp_path / "x.parquet", *request.param)) as it:
        yield it


def first_chunk(it: Opened) -> Chunk:
    return it.chunk(0, it.footer.leaves[0].name)


def values_of(it: Opened) -> tuple[str, int, Counter[Any]]:
    """Return the source, the bound and the values of the first chunk."""
    chunk = first_chunk(it)
    read = read_encoded(it.file, chunk)
    found: Counter[Any] = Counter()
    for entries in read.entries:
        arrays = as_arrays(chunk.leaf, entries)
        if hasattr(arrays, "prefix"):
            starts, data = arrays.offsets, arrays.data.tobytes()
            found.update(data[start + arrays.prefix : end] for start, end in pairwise(starts))
        else:
            found.update(arrays.tolist())
    return read.source, read.upper_bound, found


def test_values_of_small_pages_are_those_of_single_pages(small_file: Opened) -> None:
    with mock.patch.object(column_values, "_find_small_pages", return_value=None):
        single = values_of(small_file)
    with mock.patch.object(column_values, "_select_pages", side_effect=AssertionError):
        assert values_of(small_file) == single


def test_rows_are_the_pages_of_a_chunk(small_file: Opened) -> None:
    chunk = first_chunk(small_file)
    start, length = chunk_extent(chunk)
    stored = small_file.file.view_at(start, length)
    pages, at = pages_in(chunk, stored), 0
    for rows in walk_rows(chunk, lambda position, _: stored[position:], length):
        own, pages = pages[: len(rows.numbers)], pages[len(rows.numbers) :]
        assert rows.values.tolist() == [page.num_values for page in own]
        assert rows.encodings.tolist() == [page.encoding for page in own]
        assert rows.is_data.tolist() == [not page.is_dictionary for page in own]
        at += int(rows.ends[-1])
    assert not pages
    assert start + at == end_of_pages(small_file.file, chunk) == start + length


def test_the_size_of_rows_is_that_of_single_pages(small_file: Opened) -> None:
    file, chunk = small_file.file, first_chunk(small_file)
    single, _ = measured(chunk, list(read_headers(file, chunk)), 1 << 60)
    assert size_of_rows(chunk, read_rows(file, chunk)) == single


def test_many_encrypted_pages_are_measured_in_few_calls(tmp_path: Path) -> None:
    with opened(written(tmp_path / "x.parquet", "texts", "gcm")) as it:
        chunk = first_chunk(it)
        # What the footer says of the size would allow gigabytes.
        with mock.patch.object(decoded_sizes, "_by_metadata", return_value=1 << 40):
            assert calls(lambda: decoded_size(it.file, chunk)) < 16 * ROWS
            assert decoded_size(it.file, chunk).most < 100_000


@pytest.mark.parametrize("protection", PROTECTIONS)
def test_a_dictionary_is_full_if_the_headers_of_many_pages_say_so(
    tmp_path: Path, protection: str
) -> None:
    with opened(written(tmp_path / "x", "dictionary", protection)) as it:
        refers = mock.patch.object(ClaimedDictionary, "_refers", return_value=True)
        with refers as one_by_one:
            assert read_full_dictionary(it.file, first_chunk(it)) is not None
        assert one_by_one.call_count < ROWS / 5
    with opened(written(tmp_path / "y", "fallback", protection)) as it:
        assert read_full_dictionary(it.file, first_chunk(it)) is None


@pytest.mark.parametrize(("protection", "most"), [("clear", 1), ("gcm", 16), ("ctr", 16)])
@pytest.mark.parametrize("kind", ["texts", "dictionary"])
def test_a_small_page_takes_few_calls(
    tmp_path: Path, kind: str, protection: str, most: float
) -> None:
    """In clear a call finds thousands of pages. An encrypted page has two modules to decrypt."""
    with opened(written(tmp_path / "x.parquet", kind, protection)) as it:
        values_of(it)
        chunk = first_chunk(it)
        work = calls(lambda: list(read_encoded(it.file, chunk).entries))
        assert work < most * ROWS + 3000


@pytest.mark.parametrize("protection", ["gcm", "ctr"])
def test_an_altered_header_among_many_does_not_authenticate(
    tmp_path: Path, protection: str
) -> None:
    path = written(tmp_path / "x.parquet", "texts", protection)
    with opened(path) as it:
        start, _ = chunk_extent(first_chunk(it))
    content = bytearray(path.read_bytes())
    # Behind the length field and the nonce of the first page's header.
    content[start + 20] ^= 1
    path.write_bytes(content)
    with opened(path) as it, pytest.raises(IntegrityError, match="column a: an encrypted module"):
        values_of(it)


def test_an_altered_body_among_many_does_not_authenticate(tmp_path: Path) -> None:
    path = written(tmp_path / "x.parquet", "texts", "gcm")
    with opened(path) as it:
        start, length = chunk_extent(first_chunk(it))
    content = bytearray(path.read_bytes())
    content[start + length - 1] ^= 1
    path.write_bytes(content)
    with opened(path) as it, pytest.raises(IntegrityError, match="column a: an encrypted module"):
        values_of(it)


def outcome(it: Opened) -> object:
    try:
        return values_of(it)
    except SecureBloomError as error:
        return type(error)


@pytest.mark.parametrize("position", range(0, 120, 7))
def test_altered_pages_in_clear_end_as_single_pages_do(tmp_path: Path, position: int) -> None:
    path = written(tmp_path / "x.parquet", "nulls", "clear")
    with opened(path) as it:
        start, _ = chunk_extent(first_chunk(it))
    content = bytearray(path.read_bytes())
    content[start + position] ^= 0x41
    path.write_bytes(content)
    with opened(path) as it:
        with mock.patch.object(column_values, "_find_small_pages", return_value=None):
            single = outcome(it)
        found = outcome(it)
    assert isinstance(found, tuple) == isinstance(single, tuple)
    if isinstance(found, tuple):
        assert found == single


def test_empty_pages_between_others_are_left_out(tmp_path: Path) -> None:
    """pyarrow takes an empty page for the end of a chunk, so runs end there."""
    with opened(written(tmp_path / "x.parquet", "texts", "clear")) as it:
        chunk = first_chunk(it)
        found = column_values._find_small_pages(chunk, it.file.view_at(*chunk_extent(chunk)))
        assert found is not None
        own = found[0].values > 0
        own[::3] = False
        (group,) = column_values._groups_of(own.nonzero()[0], found[0])
        stored = column_values._SmallPages(rows=found[0], positions=group).stored
        assert stored.values == int(own.sum())
        assert len(stored.pages) == FIRST_PAGES // 3


def test_a_chunk_with_more_values_than_it_says_is_left_to_single_pages(tmp_path: Path) -> None:
    with opened(written(tmp_path / "x.parquet", "lists", "clear")) as it:
        chunk = first_chunk(it)
        chunk.meta_data.num_values -= 1
        start, length = chunk_extent(chunk)
        stored = it.file.view_at(start, length)
        with pytest.raises(FormatError, match="more values"):
            list(walk_rows(chunk, lambda position, _: stored[position:], length))
        with pytest.raises(FormatError, match="the pages hold"):
            read_pages(it.file, chunk)
