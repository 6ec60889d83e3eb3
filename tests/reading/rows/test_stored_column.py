"""Few rows of a column from its pages as stored: what a full decode returns, or its error."""

from __future__ import annotations

import datetime
import random
import re
from collections.abc import Callable, Iterator
from decimal import Decimal
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
import pytest

import secure_bloom as sb
from secure_bloom.encryption.file_keys import KeyResolver
from secure_bloom.errors import FormatError, IntegrityError, SecureBloomError
from secure_bloom.kernels.loops import Sought
from secure_bloom.parquet.footer.columns import SchemaCache
from secure_bloom.parquet.footer.opened import Footer, read_footer
from secure_bloom.parquet.pages import chunk_extent, read_pages
from secure_bloom.reading.rows import stored_column
from secure_bloom.reading.rows.page_reads import ReadWholeError, Rows, decoded_rows
from secure_bloom.reading.rows.stored_column import MOST_WALKED, StoredColumn
from secure_bloom.storage import CountedFile, InputFile, open_input
from testing.surgery import flip, opened
from testing.tables import KEYRING, Mode, customers, write

ROWS, PAGE = 400, 20
#: Rows of the first page, of two that follow each other, and of the last one.
RANGES = [(0, 3), (58, 62), (399, 400)]
POSITIONS = [row for start, end in RANGES for row in range(start, end)]

RNG = np.random.default_rng(5)
TEXTS = [f"text {n % 90}" * (n % 4) for n in range(ROWS)]
DAYS = [datetime.date(1970, 1, 1) + datetime.timedelta(days=n) for n in range(ROWS)]
COLUMNS: dict[str, pa.Array] = {
    **{
        name: pa.array(RNG.integers(0, 100, ROWS), getattr(pa, name)())
        for name in ("int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64")
    },
    "negative": pa.array(RNG.integers(-(2**62), 2**62, ROWS)),
    "float16": pa.array(RNG.normal(size=ROWS).astype(np.float16)),
    "float32": pa.array(RNG.normal(size=ROWS).astype(np.float32)),
    "float64": pa.array(RNG.normal(size=ROWS)),
    "bool": pa.array(RNG.integers(0, 2, ROWS) == 1),
    "string": pa.array(TEXTS),
    "large": pa.array(TEXTS, pa.large_string()),
    "view": pa.array(TEXTS, pa.string_view()),
    "binary": pa.array([text.encode() for text in TEXTS]),
    "fixed": pa.array([f"{n:07d}".encode() for n in range(ROWS)], pa.binary(7)),
    "date": pa.array(DAYS),
    "time32": pa.array(range(ROWS), pa.time32("ms")),
    "time64": pa.array(range(ROWS), pa.time64("us")),
    "nanos": pa.array(range(ROWS), pa.time64("ns")),
    "seconds": pa.array(range(ROWS), pa.timestamp("s")),
    "millis": pa.array(range(ROWS), pa.timestamp("ms")),
    "micros": pa.array(range(ROWS), pa.timestamp("us", "UTC")),
    "nano": pa.array(range(ROWS), pa.timestamp("ns")),
    "duration": pa.array(range(ROWS), pa.duration("us")),
    "decimal9": pa.array([Decimal(n - 99).scaleb(-2) for n in range(ROWS)], pa.decimal128(9, 2)),
    "decimal38": pa.array([Decimal(n - 99).scaleb(-2) for n in range(ROWS)], pa.decimal128(38, 2)),
    "decimal76": pa.array([Decimal(n).scaleb(-2) for n in range(ROWS)], pa.decimal256(76, 2)),
    "coded": pa.array(TEXTS).dictionary_encode(),
    "inner": pa.array([{"a": n} for n in range(ROWS)]),
    "two": pa.array([{"a": n, "b": str(n)} for n in range(ROWS)]),
    "list": pa.array([list(range(n % 3)) for n in range(ROWS)]),
    # Of more values than a page has, so rows go over pages.
    "long": pa.array([list(range(1 + n % 7 * 9)) for n in range(ROWS)]),
    "lists": pa.array([[[n, None], [], None][: n % 4] for n in range(ROWS)]),
    "texts": pa.array([TEXTS[n : n + n % 5] for n in range(ROWS)]),
    # Of several leaves, whose pages have other rows if one has lists and one has none.
    "map": pa.array(
        [[(str(i), [n, None][i % 2]) for i in range(n % 4)] for n in range(ROWS)],
        pa.map_(pa.binary(), pa.int64()),
    ),
    "structs": pa.array(
        [[{"a": n, "b": None}, None, {"a": None, "b": b"%d" % n}][: n % 4] for n in range(ROWS)]
    ),
    "mixed": pa.array(
        [
            {"a": n, "b": [None, [], [{"c": n, "d": [n] * (n % 3)}, None] * (n % 4)][n % 3]}
            if n % 5
            else None
            for n in range(ROWS)
        ]
    ),
    "maps": pa.array(
        [[[(str(n), {"a": n, "b": [n, None] * (n % 3)})], None, []][: n % 4] for n in range(ROWS)],
        pa.large_list(
            pa.map_(
                pa.binary(),
                pa.struct({"a": pa.int64(), "b": pa.large_list(pa.int32())}),
            )
        ),
    ),
    "coded_two": pa.StructArray.from_arrays(
        [pa.array(TEXTS).dictionary_encode(), pa.array([[n] * (n % 3) for n in range(ROWS)])],
        ["a", "b"],
    ),
    "sized": pa.array(
        [{"a": [n, 1], "b": [n] * (n % 4)} for n in range(ROWS)],
        pa.struct({"a": pa.list_(pa.int64(), 2), "b": pa.list_(pa.int64())}),
    ),
}


def with_nulls(column: pa.Array, every: int) -> pa.Array:
    is_left = pa.array([n % every != 0 for n in range(len(column))])
    index = pc.if_else(is_left, pa.array(range(len(column))), None)
    if column.type == pa.string_view():
        return column.cast(pa.string()).take(index).cast(column.type)
    return column.take(index)


def written(path: Path, table: pa.Table, mode: Mode = Mode.PLAIN, **options: Any) -> Path:
    options = {"row_group_size": ROWS, "data_page_size": 1, "write_batch_size": PAGE, **options}
    keys = {"k_pii": table.column_names}
    return write(path / "x.parquet", table, mode, column_keys=keys, **options)


@pytest.fixture(autouse=True)
def any_share(monkeypatch: pytest.MonkeyPatch) -> None:
    """Pages are decoded alone even if they have most bytes of a small file."""
    monkeypatch.setattr(stored_column, "_MOST_NEEDED", float("inf"))


def opened_file(path: Path) -> Iterator[tuple[InputFile, Footer]]:
    with open_input(str(path)) as file:
        counted = CountedFile(file)
        yield counted, read_footer(counted, KeyResolver(KEYRING), SchemaCache())


def taken(path: Path, name: str, ranges: Any = RANGES) -> pa.ChunkedArray | None:
    for file, footer in opened_file(path):
        first, *others = [
            StoredColumn(file, footer, footer.chunk_to_read(0, ordinal))
            for ordinal in footer.columns.below(name)
        ]
        return first.take(Rows.of(ranges), others)
    raise AssertionError


def holds(path: Path, table: pa.Table) -> None:
    """Each column has the rows that pyarrow decodes."""
    for name in table.column_names:
        whole = pq.read_table(path, columns=[name])[name]
        found = taken(path, name)
        assert found is not None, name
        if pa.types.is_dictionary(whole.type):
            # The entries of other pages may be missing from the dictionary.
            whole, found = whole.cast(pa.string()), found.cast(pa.string())
        elif name == "coded_two":
            assert (found.type, found.to_pylist()) == (
                whole.type,
                whole.take(POSITIONS).to_pylist(),
            )
            continue
        wanted = [chunk for a, b in RANGES for chunk in whole.slice(a, b - a).chunks]
        assert found.equals(pa.chunked_array(wanted, whole.type)), name


@pytest.mark.parametrize("index", [True, False])
@pytest.mark.parametrize("version", ["1.0", "2.0"])
@pytest.mark.parametrize("dictionary", [True, False])
@pytest.mark.parametrize("nulls", [0, 1, 3])
def test_each_type_has_the_rows_of_a_full_decode(
    tmp_path: Path, index: bool, version: str, dictionary: bool, nulls: int
) -> None:
    columns = {name: with_nulls(it, nulls) if nulls else it for name, it in COLUMNS.items()}
    # A dictionary that is given up may have a page without values in front of the last one.
    table = pa.table(columns)
    path = written(
        tmp_path,
        table,
        use_dictionary=dictionary,
        data_page_version=version,
        write_page_index=index,
    )
    holds(path, table)


ENCODINGS = {
    "int32": ["PLAIN", "DELTA_BINARY_PACKED", "BYTE_STREAM_SPLIT"],
    "negative": ["PLAIN", "DELTA_BINARY_PACKED", "BYTE_STREAM_SPLIT"],
    "float32": ["BYTE_STREAM_SPLIT"],
    "float64": ["BYTE_STREAM_SPLIT"],
    "fixed": ["BYTE_STREAM_SPLIT", "DELTA_BYTE_ARRAY"],
    "decimal38": ["BYTE_STREAM_SPLIT", "DELTA_BYTE_ARRAY"],
    "string": ["DELTA_LENGTH_BYTE_ARRAY", "DELTA_BYTE_ARRAY"],
    "bool": ["PLAIN", "RLE"],
}


@pytest.mark.parametrize("mode", list(Mode))
@pytest.mark.parametrize("nulls", [0, 3])
@pytest.mark.parametrize(
    ("name", "encoding"), [(n, encoding) for n, every in ENCODINGS.items() for encoding in every]
)
def test_each_encoding_has_the_rows_of_a_full_decode(
    tmp_path: Path, name: str, encoding: str, nulls: int, mode: Mode
) -> None:
    column = with_nulls(COLUMNS[name], nulls) if nulls else COLUMNS[name]
    path = written(
        tmp_path,
        pa.table({name: column}),
        mode,
        use_dictionary=False,
        column_encoding={name: encoding},
        data_page_version="2.0" if nulls else "1.0",
    )
    found = taken(path, name)
    assert found is not None
    assert found.to_pylist() == column.take(POSITIONS).to_pylist()


@pytest.mark.parametrize("codec", ["none", "snappy", "gzip", "zstd", "brotli", "lz4"])
@pytest.mark.parametrize("version", ["1.0", "2.0"])
def test_each_codec_has_the_rows_of_a_full_decode(tmp_path: Path, codec: str, version: str) -> None:
    names = ["int64", "string", "bool", "decimal38", "long"]
    table = pa.table({name: with_nulls(COLUMNS[name], 3) for name in names})
    options = {"compression": codec, "data_page_version": version, "use_dictionary": names[:-1]}
    holds(written(tmp_path, table, **options), table)


@pytest.mark.parametrize("mode", list(Mode))
@pytest.mark.parametrize("version", ["1.0", "2.0"])
@pytest.mark.parametrize("name", ["long", "lists", "coded", "map", "structs", "mixed", "maps"])
def test_pages_of_lists_and_dictionaries_are_decoded_alone(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str, version: str, mode: Mode
) -> None:
    column, decoded = COLUMNS[name], list[int]()

    def counted(footer: Any, columns: Any, spans: Any, ranges: Any) -> Any:
        for _, pages in columns:
            decoded.append(sum(page.num_values for page in pages if not page.is_dictionary))
        return decoded_rows(footer, columns, spans, ranges)

    monkeypatch.setattr(stored_column, "decoded_rows", counted)
    options = {"data_page_version": version, "use_dictionary": name == "coded"}
    path = written(tmp_path, pa.table({name: column}), mode, **options)
    for row in (0, 3, 57, 58, ROWS - 1):
        found = taken(path, name, [(row, row + 1)])
        assert found is not None
        assert found.to_pylist() == [column[row].as_py()]
    # A row has up to 55 values, and the pages of a row have those of the rows around it.
    assert max(decoded) <= 4 * 55


def test_rows_that_repetition_levels_do_not_show_are_left_to_a_full_decode(tmp_path: Path) -> None:
    table = pa.table({"a": COLUMNS["list"].slice(0, 90)})
    path = write(tmp_path / "x.parquet", table, compression="none", use_dictionary=False)
    for _, footer in opened_file(path):
        start, _ = chunk_extent(footer.chunk(0, 0))
        [page] = read_pages(open_input(str(path)), footer.chunk(0, 0))
        body = start + len(page.encoded_header)
    content = bytearray(path.read_bytes())
    for length in (0, 5, 2**31):
        content[body : body + 4] = length.to_bytes(4, "little")
        path.write_bytes(content)
        assert taken(path, "a", [(7, 8)]) is None


@pytest.mark.parametrize("mode", list(Mode))
def test_only_the_pages_with_the_rows_are_read(tmp_path: Path, mode: Mode) -> None:
    texts = pa.table({"a": [f"{n:06d}" * 300 for n in range(ROWS)]})
    options = {"use_dictionary": False, "compression": "none", "write_page_index": True}
    for file, footer in opened_file(written(tmp_path, texts, mode, **options)):
        counted = CountedFile(file)
        column = StoredColumn(counted, footer, footer.chunk_to_read(0, 0))
        assert column.take(Rows.of([(7, 8)])).to_pylist() == texts["a"].slice(7, 1).to_pylist()
        assert counted.bytes_read < 3 * PAGE * 1800


@pytest.mark.parametrize("dictionary", [True, False])
@pytest.mark.parametrize("nulls", [0, 3])
@pytest.mark.parametrize("sought", [["text 7" * 3], ["text 7" * 3, "text 5", "nothing"], ["none"]])
def test_rows_are_found_where_the_values_are(
    tmp_path: Path, dictionary: bool, nulls: int, sought: list[str]
) -> None:
    column = with_nulls(COLUMNS["string"], nulls) if nulls else COLUMNS["string"]
    path = written(tmp_path, pa.table({"a": column}), use_dictionary=dictionary)
    wanted = Sought.of([value.encode() for value in sought])
    for file, footer in opened_file(path):
        found = StoredColumn(file, footer, footer.chunk_to_read(0, 0)).find(wanted)
        assert found is not None
        values = column.to_pylist()
        assert found.tolist() == [n for n, value in enumerate(values) if value in sought]


def test_a_dictionary_that_is_given_up_is_searched_with_the_rest(tmp_path: Path) -> None:
    texts = [f"text {n:05d}" for n in range(ROWS)]
    path = written(tmp_path, pa.table({"a": texts}), dictionary_pagesize_limit=1000)
    for sought in (3, 390):
        for file, footer in opened_file(path):
            column = StoredColumn(file, footer, footer.chunk_to_read(0, 0))
            found = column.find(Sought.of([texts[sought].encode()]))
            assert found is not None
            assert found.tolist() == [sought]
            assert column.take(Rows.of([(sought, sought + 1)])).to_pylist() == [texts[sought]]


def test_values_in_many_rows_are_left_to_a_full_decode(tmp_path: Path) -> None:
    path = written(tmp_path, pa.table({"a": ["same"] * 2000}), row_group_size=2000)
    for file, footer in opened_file(path):
        column = StoredColumn(file, footer, footer.chunk_to_read(0, 0))
        assert column.find(Sought.of([b"same"])) is None


# --- Pages that lie ---


def answer(path: Path, where: Any) -> object:
    """The rows, or the error: its class, its text without numbers, its hint and its place."""
    try:
        # As a text, in which a NaN equals itself.
        return repr(sb.read_table(path, where=where, keys=KEYRING).to_pydict())
    except SecureBloomError as error:
        text = re.sub(r"[0-9,]+", "N", error.message)
        return type(error), text, error.hint, error.row_group, error.column


def both_ways(path: Path, where: Any, monkeypatch: pytest.MonkeyPatch) -> tuple[object, object]:
    """What a read of few rows answers, and what a decode of all pages does."""
    ours = answer(path, where)
    with monkeypatch.context() as patched:
        patched.setattr(StoredColumn, "take", lambda *_: None)
        patched.setattr(StoredColumn, "find", lambda *_: None)
        return ours, answer(path, where)


def damaged(content: bytes, extents: list[tuple[int, int]], rng: random.Random) -> Iterator[bytes]:
    """Copies with a byte changed, often one of a header."""
    while True:
        changed, (start, length) = bytearray(content), rng.choice(extents)
        at = start + rng.randrange(min(length, rng.choice([60, length])))
        changed[at] = rng.choice([0, 1, 127, 128, 255, changed[at] ^ 1 << rng.randrange(8)])
        yield bytes(changed)


@pytest.mark.parametrize("mode", [Mode.PLAIN, Mode.ENCRYPTED])
@pytest.mark.parametrize("version", ["1.0", "2.0"])
@pytest.mark.parametrize("codec", ["none", "snappy", "gzip", "zstd"])
@pytest.mark.parametrize("encoding", ["dictionary", None, "DELTA_BYTE_ARRAY"])
def test_damaged_pages_give_the_rows_or_the_error_of_a_full_decode(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    trials: Callable[[int], int],
    codec: str,
    encoding: str | None,
    version: str,
    mode: Mode,
) -> None:
    rng = random.Random(f"{codec} {encoding} {version} {mode}")
    # One more column of any type each time, some of which pyarrow must decode.  No texts, because
    # changed bytes are none.
    others = ["bool", "float64", "decimal38", "list", "lists", "two", "coded", "inner", "fixed"]
    others += ["map", "structs", "mixed", "maps"]
    names = ["binary", rng.choice(others)]
    columns = {name: with_nulls(COLUMNS[name], 7).slice(0, 90) for name in names}
    table = pa.table({"key": pa.array(range(90)), **columns, "n": range(90)})
    encodings = {"binary": encoding or "PLAIN", "key": "PLAIN", "n": "DELTA_BINARY_PACKED"}
    is_coded = encoding == "dictionary"
    path = write(
        tmp_path / "x.parquet",
        table,
        mode,
        row_group_size=90,
        compression=codec,
        data_page_version=version,
        column_keys={"k_pii": table.column_names},
        use_dictionary=is_coded,
        **({} if is_coded else {"column_encoding": encodings}),
    )
    for _, footer in opened_file(path):
        extents = [chunk_extent(footer.chunk(0, it)) for it in range(len(footer.leaves))]
    changed = damaged(path.read_bytes(), extents, rng)
    for _ in range(trials(24)):
        path.write_bytes(next(changed))
        ours, whole = both_ways(path, [("key", "=", rng.randrange(90))], monkeypatch)
        assert ours == whole


@pytest.mark.parametrize("index", [True, False])
@pytest.mark.parametrize("version", ["1.0", "2.0"])
def test_leaves_with_keys_of_their_own_are_read_as_by_a_full_decode(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, version: str, index: bool
) -> None:
    names = ["map", "structs", "mixed", "maps", "two"]
    table = pa.table({"key": range(ROWS), **{n: with_nulls(COLUMNS[n], 7) for n in names}})
    path = write(
        tmp_path / "x.parquet",
        table,
        Mode.ENCRYPTED,
        column_keys={
            "k_pii": ["map.key_value.key", "mixed.b.list.element.c", "two"],
            "k_finance": ["map.key_value.value", "structs.list.element.a"],
        },
        row_group_size=ROWS,
        data_page_size=1,
        write_batch_size=PAGE,
        data_page_version=version,
        write_page_index=index,
    )
    for row in (3, 57, 58):
        ours, whole = both_ways(path, [("key", "=", row)], monkeypatch)
        assert ours == whole == repr(table.slice(row, 1).to_pydict())


@pytest.mark.parametrize("index", [True, False])
@pytest.mark.parametrize("codec", ["none", "snappy"])
def test_damage_in_a_page_that_is_not_read_changes_no_row(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    trials: Callable[[int], int],
    codec: str,
    index: bool,
) -> None:
    rng = random.Random(f"{codec} {index}")
    table = pa.table(
        {name: COLUMNS[name] for name in ("int32", "binary", "fixed", "list", "long", "mixed")}
    )
    table = table.append_column("key", [range(ROWS)])
    options = {"use_dictionary": ["binary"], "compression": codec, "write_page_index": index}
    path = written(tmp_path, table, **options)
    for _, footer in opened_file(path):
        extents = [chunk_extent(footer.chunk(0, it)) for it in range(len(footer.leaves))]
    changed = damaged(path.read_bytes(), extents, rng)
    for _ in range(trials(40)):
        path.write_bytes(next(changed))
        row = rng.randrange(ROWS)
        ours, whole = both_ways(path, [("key", "=", row)], monkeypatch)
        assert ours in (whole, repr(table.slice(row, 1).to_pydict()))


def test_an_index_without_an_entry_is_an_error(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    texts = pa.array([f"text {n % 5}" for n in range(90)]).dictionary_encode()
    options = {"compression": "none", "row_group_size": 90, "use_dictionary": ["coded"]}
    path = write(tmp_path / "x.parquet", pa.table({"key": range(90), "coded": texts}), **options)
    for file, footer in opened_file(path):
        chunk = footer.chunk(0, 1)
        start, _ = chunk_extent(chunk)
        page = read_pages(file, chunk)[-1]
    content = bytearray(path.read_bytes())
    content[start + page.extent[1] - 3] = 0xFF
    path.write_bytes(content)
    ours, whole = both_ways(path, [("key", "=", 88)], monkeypatch)
    assert ours == whole
    assert isinstance(ours, tuple)
    assert ours[0] is FormatError
    assert ours[-2:] == (0, "coded")


@pytest.mark.parametrize("mode", [mode for mode in Mode if mode is not Mode.PLAIN])
def test_a_page_that_does_not_authenticate_is_an_error(tmp_path: Path, mode: Mode) -> None:
    path = write(tmp_path / "x.parquet", customers(200), mode, row_group_size=200)
    with opened(path) as it:
        start, length = chunk_extent(it.chunk(0, "email"))
    flip(path, start + length - 5)
    with pytest.raises(IntegrityError) as caught:
        sb.read_table(path, where=[("email", "=", "user7@example.com")], keys=KEYRING)
    assert (caught.value.row_group, caught.value.column) == (0, "email")


def test_an_index_that_contradicts_a_page_is_not_believed(tmp_path: Path) -> None:
    first, second = tmp_path / "1", tmp_path / "2"
    for folder in (first, second):
        folder.mkdir()
    table = pa.table({"a": COLUMNS["int64"]})
    options = {"write_page_index": True, "use_dictionary": False, "compression": "none"}
    path = written(first, table, **options)
    for file, footer in opened_file(path):
        chunk = footer.chunk_to_read(0, 0)
        column = StoredColumn(file, footer, chunk)
        assert column.take(Rows.of([(5, 6)])) is not None
    index = chunk.column_chunk.offset_index_offset
    content = bytearray(path.read_bytes())
    place = content.index(bytes([2 * PAGE]), index)  # the first row of the second page, zigzag
    content[place] += 2
    path.write_bytes(content)
    with pytest.raises(ReadWholeError):
        taken(path, "a", [(5, 6)])


@pytest.mark.parametrize("indexed", [True, False])
def test_many_rows_are_taken_only_where_an_index_locates_their_pages(
    tmp_path: Path, indexed: bool
) -> None:
    path = written(tmp_path, pa.table({"a": COLUMNS["int64"]}), write_page_index=indexed)
    few = [(n, n + 1) for n in range(0, 2 * MOST_WALKED, 2)]
    many = [*few, (ROWS - 1, ROWS)]
    assert len(taken(path, "a", few) or ()) == len(few)
    found = taken(path, "a", many)
    assert (None if found is None else len(found)) == (len(many) if indexed else None)


def test_leaves_of_which_most_is_needed_are_decoded_whole(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.undo()
    texts = [{"a": f"{n:060}", "b": n} for n in range(2_000)]
    for dictionary, size, is_taken in (
        (False, 4096, True),
        (True, 4096, False),
        (False, 1 << 20, False),
    ):
        options = {"use_dictionary": dictionary, "data_page_size": size, "write_batch_size": 64}
        path = tmp_path / "x.parquet"
        pq.write_table(pa.table({"two": texts}), path, **options)
        assert (taken(path, "two", ((7, 8),)) is not None) == is_taken
