"""Bytes that chunks may take decoded: never fewer than they do, few where their pages tell it."""

from __future__ import annotations

import struct
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any
from unittest import mock

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st

import secure_bloom as sb
from secure_bloom.errors import IntegrityError
from secure_bloom.kernels import extension
from secure_bloom.parquet import plain_pages
from secure_bloom.parquet.decoded_bounds import harmless_size
from secure_bloom.parquet.decompression import decompressed
from secure_bloom.parquet.memory_files import MemoryColumn, StoredPage, memory_file
from secure_bloom.parquet.pages import chunk_extent
from secure_bloom.parquet.structures.metadata import (
    CompressionCodec,
    Encoding,
    FieldRepetitionType,
    PageType,
    Type,
)
from secure_bloom.reading.rows import decoded_sizes
from secure_bloom.reading.rows.decoded_sizes import (
    DictionaryStrings,
    decoded_size,
    may_be_decoded_here,
)
from secure_bloom.running.memory_budget import VARIABLE, MemoryBudgetError
from testing.surgery import edit_column, flip, opened
from testing.tables import KEYRING, Mode
from testing.tables import write as write_table
from testing.thrift.metadata import DataPageHeader, DictionaryPageHeader, PageHeader, SchemaElement
from tests.kernels.hybrid import packed, repeated

#: Sizes are told alike in both worlds.
pytestmark = pytest.mark.parametrize("has_extension", [True])

ROWS = 5000
COLUMNS: dict[str, tuple[pa.Array, dict[str, Any]]] = {
    "numbers": (pa.array(range(ROWS)), {}),
    "plain": (pa.array([f"text {n}" for n in range(ROWS)]), {"use_dictionary": False}),
    "dictionary": (pa.array(["a" * 900, "b"] * (ROWS // 2)), {}),
    "prefixes": (
        pa.array(["p" * 200 + str(n) for n in range(ROWS)]),
        {"use_dictionary": False, "column_encoding": {"c": "DELTA_BYTE_ARRAY"}},
    ),
    "lists": (pa.array([[n, n] for n in range(ROWS)]), {}),
    "nulls": (pa.nulls(ROWS, pa.string()), {}),
}


def write(path: Path, table: pa.Table, mode: Mode = Mode.PLAIN, **options: Any) -> Path:
    return write_table(path, table, mode, row_group_size=ROWS, **options)


def size_of(path: Path, column: str = "c") -> int:
    with opened(path) as it:
        (leaf,) = (leaf.name for leaf in it.footer.leaves if leaf.name.startswith(column))
        return decoded_size(it.file, it.chunk(0, leaf)).most


@pytest.mark.parametrize("mode", [Mode.PLAIN, Mode.UNIFORM], ids=lambda mode: mode.name)
@pytest.mark.parametrize("memory", ["1GiB", "1MiB"])
@pytest.mark.parametrize("name", COLUMNS)
def test_no_column_takes_more(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str, memory: str, mode: Mode
) -> None:
    monkeypatch.setenv(VARIABLE, memory)
    array, options = COLUMNS[name]
    path = write(tmp_path / "x.parquet", pa.table({"c": array}), mode, **options)
    # Nulls take a bit each, for which there is room in the size of the largest page.
    assert size_of(path) >= array.nbytes - ROWS // 8 - 8


def test_pages_tell_that_a_chunk_is_small_where_the_footer_alone_would_not(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    array = pa.array([f"text {n}" for n in range(ROWS)])
    options = {"use_dictionary": False, "compression": "BROTLI"}
    path = write(tmp_path / "x.parquet", pa.table({"c": array}), **options)
    monkeypatch.setenv(VARIABLE, "8MiB")
    assert size_of(path) < 4 * array.nbytes < harmless_size()


def test_the_longest_entry_of_a_dictionary_counts_and_not_all_of_them(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    array = pa.array([f"{n % 100:0100}" for n in range(ROWS)])
    path = write(tmp_path / "x.parquet", pa.table({"c": array}))
    monkeypatch.setenv(VARIABLE, "1MiB")
    # 100 entries of 104 bytes: all of them for each value would be 52 MB.
    assert array.nbytes <= size_of(path) < 1_000_000


def test_lists_that_cannot_be_cut_have_to_fit_the_budget(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "x.parquet"
    pq.write_table(pa.table({"c": [[7] * 300_000]}), path)
    monkeypatch.setenv(VARIABLE, "1MiB")
    with pytest.raises(MemoryBudgetError, match="the column's lists") as caught:
        size_of(path)
    assert (caught.value.row_group, caught.value.column) == (0, "c.list.element")


def test_a_file_that_is_not_sound_is_taken_for_the_worst(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    array = pa.array([f"text {n}" for n in range(ROWS)])
    path = write(tmp_path / "x.parquet", pa.table({"c": array}), use_dictionary=False)
    edit_column(path, 0, "c", lambda meta: setattr(meta, "num_values", ROWS + 1))
    monkeypatch.setenv(VARIABLE, "1MiB")
    assert size_of(path) > 100 * array.nbytes


STRING_ROWS = 3000
#: A dictionary as large as its values: for all that the header tells, each could be all of it.
TEXTS = pa.array([f"{n * 7919 % STRING_ROWS:030}" for n in range(STRING_ROWS)])


def decoded(path: Path, type_: pa.DataType | None = None) -> pa.Array | None:
    """The column, decoded as one whose dictionary had to be looked at."""
    with opened(path) as it, mock.patch.object(decoded_sizes, "harmless_size", return_value=0):
        strings = decoded_size(it.file, it.chunk(0, "c")).strings
        return None if strings is None else strings.decoded(type_ or pa.string())


def written(path: Path, column: pa.Array, mode: Mode = Mode.PLAIN, **options: Any) -> Path:
    return write_table(path, pa.table({"c": column}), mode, row_group_size=10**6, **options)


@given(
    words=st.lists(st.text(max_size=12), min_size=1, max_size=300, unique=True),
    data=st.data(),
    codec=st.sampled_from(["none", "snappy", "gzip", "zstd", "lz4", "brotli"]),
    version=st.sampled_from(["1.0", "2.0"]),
    is_binary=st.booleans(),
)
def test_values_are_those_of_pyarrow(
    words: list[str],
    data: st.DataObject,
    codec: str,
    version: str,
    is_binary: bool,
    tmp_path_factory: pytest.TempPathFactory,
) -> None:
    runs = st.tuples(st.sampled_from(words), st.integers(1, 40))
    rows = [word for word, times in data.draw(st.lists(runs, min_size=1)) for _ in range(times)]
    rows = data.draw(st.permutations(words)) + rows
    column = pa.array(rows, pa.binary() if is_binary else pa.string())
    path = written(
        tmp_path_factory.mktemp("strings") / "x.parquet",
        column,
        compression=codec,
        data_page_version=version,
        data_page_size=data.draw(st.integers(1, 1000)),
        write_batch_size=data.draw(st.integers(1, 200)),
    )
    found = decoded(path, column.type)
    assert found is not None
    found.validate(full=True)
    assert found.equals(pq.read_table(path).column("c").combine_chunks())


def test_pages_that_were_read_are_decoded_whatever_they_tell(tmp_path: Path) -> None:
    column = pa.array(["one", "two"] * STRING_ROWS)
    path = written(tmp_path / "x.parquet", column)
    # Too much for what the footer tells, and not for what the headers of the pages tell.
    with (
        opened(path) as it,
        mock.patch.object(decoded_sizes, "harmless_size", return_value=40 * len(column)),
    ):
        found = decoded_size(it.file, it.chunk(0, "c"))
    assert found.strings is not None
    assert found.strings.decoded(pa.string()).equals(column)


@pytest.mark.parametrize("algorithm", ["AES_GCM_V1", "AES_GCM_CTR_V1"])
@pytest.mark.parametrize("codec", ["none", "snappy"])
def test_encrypted_pages_are_decrypted(tmp_path: Path, algorithm: str, codec: str) -> None:
    encryption = {"encryption_algorithm": algorithm}
    path = tmp_path / "x.parquet"
    written(path, TEXTS, Mode.UNIFORM, compression=codec, encryption=encryption)
    assert TEXTS.equals(decoded(path))


def test_pages_behind_a_full_dictionary_are_plain(tmp_path: Path) -> None:
    options = {"dictionary_pagesize_limit": 20_000, "data_page_size": 5000, "write_batch_size": 100}
    path = written(tmp_path / "x.parquet", TEXTS, **options)
    encodings = pq.ParquetFile(path).metadata.row_group(0).column(0).encodings
    assert {"PLAIN", "RLE_DICTIONARY"} <= set(encodings)
    assert TEXTS.equals(decoded(path))


@pytest.mark.parametrize("has_statistics", [True, False])
@pytest.mark.parametrize("version", ["1.0", "2.0"])
@pytest.mark.parametrize("is_first", [True, False], ids=["dictionary", "plain"])
def test_nulls_are_left_to_pyarrow(
    tmp_path: Path, version: str, has_statistics: bool, is_first: bool
) -> None:
    # The indices do not fill their last group: zeros stand for the values that are missing.
    column = pa.array([None, *TEXTS.to_pylist()[3:]] if is_first else [*TEXTS.to_pylist(), None])
    options = {"data_page_version": version, "write_statistics": has_statistics}
    options |= {"dictionary_pagesize_limit": 10**6 if is_first else 1000, "write_batch_size": 100}
    assert decoded(written(tmp_path / "x.parquet", column, **options)) is None


@pytest.mark.parametrize(
    "column",
    [
        TEXTS.cast(pa.large_string()),
        TEXTS.cast(pa.large_binary()),
        TEXTS.cast(pa.string_view()),
        TEXTS.dictionary_encode(),
        TEXTS.cast(pa.decimal128(38, 0)),
        pa.array([{"a": text} for text in TEXTS.to_pylist()]),
        TEXTS.cast(pa.binary()),
        TEXTS,
    ],
    ids=lambda column: str(column.type),
)
def test_a_read_gives_the_type_that_pyarrow_gives(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, column: pa.Array
) -> None:
    path = written(tmp_path / "x.parquet", column, store_decimal_as_integer=False)
    monkeypatch.setenv(VARIABLE, "8MiB")
    found = sb.read_table(path)
    assert found.equals(pq.read_table(path))
    assert found.schema.equals(pq.read_table(path).schema, check_metadata=False)


def test_a_dictionary_is_decompressed_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    table = pa.table({"id": pa.array(range(STRING_ROWS)), "c": TEXTS})
    path = write_table(tmp_path / "x.parquet", table, row_group_size=STRING_ROWS)
    texts, columns = [], []
    read_row_groups = pq.ParquetFile.read_row_groups

    def counted(*arguments: Any) -> Any:
        texts.append(bytes(decompressed(*arguments)))
        return decompressed(*arguments)

    def named(self: pq.ParquetFile, *arguments: Any, **options: Any) -> pa.Table:
        columns.append(options["columns"])
        return read_row_groups(self, *arguments, **options)

    monkeypatch.setattr(plain_pages.__name__ + ".decompressed", counted)
    monkeypatch.setattr(pq.ParquetFile, "read_row_groups", named)
    monkeypatch.setenv(VARIABLE, "8MiB")
    assert sb.read_table(path).equals(table)
    first = struct.pack("<I", 30) + TEXTS[0].as_py().encode()
    assert [text.startswith(first) for text in texts].count(True) == 1
    assert columns == [["id"]]


def test_a_damaged_page_is_an_error_of_its_column(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = written(tmp_path / "x.parquet", TEXTS, Mode.UNIFORM)
    with opened(path) as it:
        start, length = chunk_extent(it.chunk(0, "c"))
    flip(path, start + length - 20)
    monkeypatch.setenv(VARIABLE, "8MiB")
    with pytest.raises(IntegrityError) as caught:
        sb.read_table(path, keys=KEYRING)
    assert (caught.value.row_group, caught.value.column) == (0, "c")


def plain(values: Sequence[bytes]) -> bytes:
    return b"".join(struct.pack("<I", len(value)) + value for value in values)


def dictionary_page(entries: int, body: bytes) -> StoredPage:
    detail = DictionaryPageHeader.of(num_values=entries, encoding=Encoding.PLAIN)
    return _page(PageType.DICTIONARY_PAGE, body, dictionary_page_header=detail)


def data_page(values: int, body: bytes, encoding: Encoding = Encoding.RLE_DICTIONARY) -> StoredPage:
    detail = DataPageHeader.of(
        num_values=values,
        encoding=encoding,
        definition_level_encoding=Encoding.RLE,
        repetition_level_encoding=Encoding.RLE,
    )
    return _page(PageType.DATA_PAGE, body, data_page_header=detail)


def _page(type_: PageType, body: bytes, **detail: Any) -> StoredPage:
    header = PageHeader.of(
        type=type_, uncompressed_page_size=len(body), compressed_page_size=len(body), **detail
    )
    return header.encode(), body


def hostile(path: Path, values: int, *pages: StoredPage, rows: int | None = None) -> Path:
    """A file with one required column of strings, in these pages."""
    schema = [
        SchemaElement.of(name="schema", num_children=1),
        SchemaElement.of(
            name="c", type=Type.BYTE_ARRAY, repetition_type=FieldRepetitionType.REQUIRED
        ),
    ]
    column = MemoryColumn(
        path=["c"],
        type=Type.BYTE_ARRAY,
        codec=CompressionCodec.UNCOMPRESSED,
        values=values,
        pages=pages,
        has_dictionary=True,
    )
    nodes = [element.encode() for element in schema]
    path.write_bytes(memory_file(nodes, [column], values if rows is None else rows))
    return path


ENTRIES = [b"a", b"bc", b"", b"d" * 200]
DICTIONARY = dictionary_page(4, plain(ENTRIES))
INDICES = b"\x02" + packed([3, 1, 0, 2, 1, 1, 1, 1], 2)
LIES: dict[str, tuple[StoredPage, ...]] = {
    "index beyond": (DICTIONARY, data_page(8, b"\x03" + packed([4] * 8, 3))),
    "run beyond": (DICTIONARY, data_page(8, b"\x03" + repeated(7, 8, 3))),
    "too few": (DICTIONARY, data_page(8, b"\x02" + repeated(1, 7, 2))),
    "half a group": (DICTIONARY, data_page(8, INDICES[:-1])),
    "33 bits": (DICTIONARY, data_page(8, b"\x21" + repeated(1, 8, 33))),
    "no bytes": (DICTIONARY, data_page(8, b"")),
    "empty run": (DICTIONARY, data_page(8, b"\x02" + repeated(1, 0, 2) + INDICES[1:])),
    "fewer entries": (dictionary_page(5, plain(ENTRIES)), data_page(8, INDICES)),
    "more entries": (dictionary_page(3, plain(ENTRIES)), data_page(8, INDICES)),
    "entry beyond": (dictionary_page(4, plain(ENTRIES)[:-1]), data_page(8, INDICES)),
    "no values": (DICTIONARY, data_page(0, b""), data_page(8, INDICES)),
    "no values, plain": (
        DICTIONARY,
        data_page(0, b"", Encoding.PLAIN),
        data_page(8, INDICES),
    ),
    "bits": (DICTIONARY, data_page(8, INDICES, Encoding.BIT_PACKED)),
    "deltas": (DICTIONARY, data_page(8, INDICES, Encoding.DELTA_LENGTH_BYTE_ARRAY)),
    "plain, more": (DICTIONARY, data_page(8, plain([b"x"] * 9), Encoding.PLAIN)),
    "two dictionaries": (DICTIONARY, DICTIONARY, data_page(8, INDICES)),
}


def outcome(read: Callable[[], pa.Table]) -> list[bytes] | None:
    """The rows; None for an error of ours or of pyarrow, or if pyarrow tells of none at all."""
    try:
        return read().column("c").to_pylist() or None
    except (sb.SecureBloomError, pa.ArrowException, OSError):
        return None


@pytest.mark.parametrize("lie", LIES)
def test_what_is_not_as_expected_is_left_to_pyarrow(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, lie: str
) -> None:
    path = hostile(tmp_path / "x.parquet", 8, *LIES[lie])
    assert decoded(path, pa.binary()) is None
    # A read whose budget leaves room for the longest entry only.
    monkeypatch.setenv(VARIABLE, "8KiB")
    assert outcome(lambda: sb.read_table(path)) == outcome(lambda: pq.read_table(path))


@pytest.mark.parametrize("rows", [7, 9])
def test_values_that_are_not_the_rows_are_left_to_pyarrow(tmp_path: Path, rows: int) -> None:
    path = hostile(tmp_path / "x.parquet", 8, DICTIONARY, data_page(8, INDICES), rows=rows)
    assert decoded(path, pa.binary()) is None


@pytest.mark.parametrize("rest", [b"", b"\x02\x00", b"\xff" * 9])
@pytest.mark.parametrize("run", [packed([3, 1, 2], 2), repeated(3, 9, 2)], ids=["packed", "run"])
def test_more_indices_than_values_are_ignored_as_by_pyarrow(
    tmp_path: Path, run: bytes, rest: bytes
) -> None:
    page = data_page(3, b"\x02" + run + rest)
    path = hostile(tmp_path / "x.parquet", 3, DICTIONARY, page)
    found = decoded(path, pa.binary())
    assert found is not None
    assert found.to_pylist() == pq.read_table(path).column("c").to_pylist()


def test_a_dictionary_of_one_entry_needs_no_bits(tmp_path: Path) -> None:
    page = data_page(100, b"\x00" + repeated(0, 100, 0))
    path = hostile(tmp_path / "x.parquet", 100, dictionary_page(1, plain([b"one"])), page)
    assert pa.array([b"one"] * 100).equals(decoded(path, pa.binary()))


def test_few_bytes_that_stand_for_gigabytes_are_decoded_in_parts(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    entries = dictionary_page(2, plain([b"x" * 60_000, b"y"]))
    pages = [data_page(1000, b"\x01" + repeated(n % 2, 1000, 1)) for n in range(2)]
    path = hostile(tmp_path / "x.parquet", 2000, entries, *pages)
    monkeypatch.setenv(VARIABLE, "4MiB")
    monkeypatch.setattr(DictionaryStrings, "decoded", None)
    assert sb.read_table(path, where=[("c", "=", b"y")]).num_rows == 1000


@pytest.mark.parametrize(
    ("column", "options"),
    [
        (pa.array(range(STRING_ROWS)), {}),
        (pa.array([*TEXTS.to_pylist(), None]), {}),
        (TEXTS, {"use_dictionary": False}),
    ],
    ids=["numbers", "nulls", "plain"],
)
def test_a_chunk_is_not_read_as_a_whole_for_nothing(
    tmp_path: Path, column: pa.Array, options: dict[str, Any]
) -> None:
    path = written(tmp_path / "x.parquet", column, **options)
    with opened(path) as it:
        assert not may_be_decoded_here(it.chunk(0, "c"))


def test_a_large_chunk_is_left_to_pyarrow(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(decoded_sizes, "_LARGEST_CHUNK", 1000)
    assert decoded(written(tmp_path / "x.parquet", TEXTS)) is None


def test_what_is_held_while_values_are_decoded_counts(tmp_path: Path) -> None:
    path = written(tmp_path / "x.parquet", TEXTS, compression="none")
    with opened(path) as it, mock.patch.object(decoded_sizes, "harmless_size", return_value=0):
        most = decoded_size(it.file, it.chunk(0, "c")).most
    # The chunk as it is stored, the text of its pages, and the values.
    uncompressed = pq.ParquetFile(path).metadata.row_group(0).column(0).total_uncompressed_size
    assert most >= path.stat().st_size + uncompressed + TEXTS.nbytes - 4096


def test_without_the_extension_all_is_left_to_pyarrow(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(extension, "native", None)
    assert decoded(written(tmp_path / "x.parquet", TEXTS)) is None
