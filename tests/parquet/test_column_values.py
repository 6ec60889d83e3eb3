"""The values read from a chunk are those that pyarrow says the leaf holds."""

from __future__ import annotations

import itertools
import struct
import tempfile
from collections import Counter
from collections.abc import Iterable, Iterator
from decimal import Decimal
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st

from secure_bloom.errors import FormatError, IntegrityError, UnsupportedFeatureError
from secure_bloom.parquet.column_values import read_entries
from secure_bloom.parquet.footer.chunks import Chunk
from secure_bloom.parquet.structures.metadata import CompressionCodec, Encoding, PageType, Type
from secure_bloom.parquet.value_arrays import Binary, Entries, as_entries
from secure_bloom.storage import CountedFile
from testing.live_footer import encode_footer
from testing.quick_cases import examples
from testing.surgery import Opened, edit_column, opened
from testing.tables import Mode, customers, write
from testing.thrift.metadata import (
    ColumnMetaData,
    DataPageHeader,
    DataPageHeaderV2,
    PageEncodingStats,
    PageHeader,
)
from tests.parquet.arrow_values import ChunkValues, read_values

CODECS = ["none", "snappy", "gzip", "brotli", "lz4", "zstd"]
#: Types whose values pyarrow shows just as they are stored.  Not BOOLEAN, which has no filters and
#: which pyarrow 26 writes unreadably into tiny pages of version 2.
PHYSICAL = {
    pa.int32(): st.integers(-(2**31), 2**31 - 1),
    pa.int64(): st.integers(-(2**63), 2**63 - 1),
    pa.float32(): st.floats(width=32),
    pa.float64(): st.floats(),
    pa.binary(): st.binary(max_size=12),
    pa.binary(5): st.binary(min_size=5, max_size=5),
}


def _key(value: Any) -> Any:
    """Floats by their bits: NaN equals itself, and the zeros differ."""
    return struct.pack("<d", value) if isinstance(value, float) else value


def _leaf_values(value: Any) -> Iterator[Any]:
    """What stands at the leaves of a value as pyarrow shows it; a map is a list of pairs."""
    if isinstance(value, dict):
        value = list(value.values())
    if isinstance(value, list | tuple):
        for part in value:
            yield from _leaf_values(part)
    elif value is not None:
        yield _key(value)


def _all_values(it: Opened) -> tuple[set[Any], set[Any]]:
    found, sources = set(), set()
    for row_group, leaf in itertools.product(range(len(it.footer.row_groups)), it.footer.leaves):
        chunk = it.chunk(row_group, leaf.name)
        values = read_values(it.file, chunk)
        arrays = list(values.arrays)
        got = [_key(v) for array in arrays for v in array.to_pylist()]
        if leaf.type is not Type.BOOLEAN:
            assert _hashable(it, chunk) == _as_bytes(as_entries(leaf, array) for array in arrays)
        assert None not in got
        assert len(set(got)) <= len(got) <= values.upper_bound
        found.update(got)
        sources.add(values.source)
    return found, sources


def _hashable(it: Opened, chunk: Chunk) -> Counter[bytes]:
    """The same values as they go into a filter, some of them decoded without pyarrow."""
    values = read_entries(it.file, chunk)
    found = _as_bytes(values.entries)
    assert found.total() <= values.upper_bound
    return found


def _as_bytes(every: Iterable[Entries]) -> Counter[bytes]:
    return Counter(value for entries in every for value in _each(entries))


def _each(entries: Entries) -> Iterator[bytes]:
    if not isinstance(entries, Binary):
        yield from (value.tobytes() for value in entries)
        return
    for start, end in itertools.pairwise(entries.offsets):
        yield entries.data[start + entries.prefix : end].tobytes()


def _wanted(table: pa.Table) -> set[Any]:
    return set(_leaf_values(table.to_pylist()))


@st.composite
def columns(draw: st.DrawFn) -> pa.Array:
    """Values of a physical type in up to three levels of lists, structs and maps."""
    kind, values = draw(st.sampled_from(list(PHYSICAL.items())))
    rows: st.SearchStrategy[Any] = st.none() | values
    for level in draw(st.lists(st.sampled_from(["list", "struct", "map"]), max_size=3)):
        if level == "list":
            kind, rows = pa.list_(kind), st.none() | st.lists(rows, max_size=3)
        elif level == "struct":
            kind = pa.struct([("a", kind)])
            rows = st.none() | st.fixed_dictionaries({"a": rows})
        else:
            kind = pa.map_(pa.int32(), kind)
            rows = st.none() | st.lists(st.tuples(st.integers(0, 9), rows), max_size=3)
    return pa.array(draw(st.lists(rows, max_size=40)), kind)


@examples(20)
@given(
    column=columns(),
    mode=st.sampled_from([Mode.PLAIN, Mode.UNIFORM]),
    options=st.fixed_dictionaries(
        {
            "compression": st.sampled_from(CODECS),
            "data_page_version": st.sampled_from(["1.0", "2.0"]),
            "use_dictionary": st.booleans(),
            "dictionary_pagesize_limit": st.sampled_from([16, 1 << 20]),
            "data_page_size": st.sampled_from([16, 1 << 20]),
            "write_batch_size": st.sampled_from([1, 5, 1024]),
            "row_group_size": st.sampled_from([1, 7, 1000]),
        }
    ),
)
def test_the_values_are_those_that_pyarrow_reads(
    column: pa.Array, mode: Mode, options: dict[str, Any]
) -> None:
    table = pa.table({"x": column})
    with tempfile.TemporaryDirectory() as folder:
        path = write(Path(folder) / "x.parquet", table, mode, **options)
        with opened(path) as it:
            found, _ = _all_values(it)
    assert found == _wanted(table)


ENCODINGS = {
    pa.int64(): ["PLAIN", "DELTA_BINARY_PACKED", "BYTE_STREAM_SPLIT"],
    pa.float64(): ["PLAIN", "BYTE_STREAM_SPLIT"],
    pa.binary(): ["PLAIN", "DELTA_LENGTH_BYTE_ARRAY", "DELTA_BYTE_ARRAY"],
    pa.binary(3): ["PLAIN", "BYTE_STREAM_SPLIT", "DELTA_BYTE_ARRAY"],
}


@pytest.mark.parametrize(
    ("kind", "encoding"), [(kind, e) for kind, found in ENCODINGS.items() for e in found]
)
@pytest.mark.parametrize("version", ["1.0", "2.0"])
def test_every_encoding_of_pyarrow_is_read(
    tmp_path: Path, kind: pa.DataType, encoding: str, version: str
) -> None:
    texts = [f"{i:03}".encode() for i in range(500)]
    numbers = pa.types.is_integer(kind) or pa.types.is_floating(kind)
    table = pa.table({"x": pa.array(range(500) if numbers else texts, kind)})
    path = tmp_path / "x.parquet"
    pq.write_table(
        table, path, use_dictionary=False, column_encoding=encoding, data_page_version=version
    )
    with opened(path) as it:
        assert _all_values(it) == (_wanted(table), {"pages"})


@pytest.mark.parametrize("mode", Mode, ids=lambda mode: mode.name)
@pytest.mark.parametrize(
    ("options", "source"),
    [
        ({}, "dictionary"),
        ({"use_dictionary": False}, "pages"),
        (
            {"dictionary_pagesize_limit": 512, "data_page_size": 512, "write_batch_size": 32},
            "pages",
        ),
    ],
    ids=["dictionary", "plain", "fallback"],
)
def test_where_the_values_come_from(
    tmp_path: Path, mode: Mode, options: dict[str, Any], source: str
) -> None:
    table = customers(1500).select(["email", "iban", "id"])
    path = write(tmp_path / "x.parquet", table, mode, **options)
    with opened(path) as it:
        assert _all_values(it) == (
            {v.encode() if isinstance(v, str) else v for v in _wanted(table)},
            {source},
        )


@pytest.mark.parametrize("algorithm", ["AES_GCM_V1", "AES_GCM_CTR_V1"])
@pytest.mark.parametrize("bits", [128, 192, 256])
@pytest.mark.parametrize("double_wrapping", [True, False])
def test_every_key_length_algorithm_and_wrapping_is_read(
    tmp_path: Path, algorithm: str, bits: int, double_wrapping: bool
) -> None:
    table = customers(100).select(["email", "iban"])
    encryption = {
        "encryption_algorithm": algorithm,
        "data_key_length_bits": bits,
        "double_wrapping": double_wrapping,
    }
    for options in ({}, {"use_dictionary": False}):
        path = write(
            tmp_path / "x.parquet", table, Mode.ENCRYPTED, encryption=encryption, **options
        )
        with opened(path) as it:
            cipher = it.chunk(0, "email").cipher
            assert cipher is not None
            assert (len(cipher.key.key) * 8, cipher.uses_ctr) == (bits, "CTR" in algorithm)
            assert _all_values(it)[0] == {v.encode() for v in _wanted(table)}


@pytest.mark.parametrize("mode", Mode, ids=lambda mode: mode.name)
def test_of_a_dictionary_encoded_chunk_little_but_the_dictionary_is_read(
    tmp_path: Path, mode: Mode
) -> None:
    rows = 2_000_000
    indices = pa.array(np.arange(rows, dtype=np.int32) % 7 % 2)
    emails = pa.DictionaryArray.from_arrays(indices, ["a@example.com", "b@example.com"])
    table = pa.table({"email": emails, "iban": pa.nulls(rows, pa.string())})
    options = {"row_group_size": rows, "data_page_size": 1 << 20, "max_rows_per_page": rows}
    path = write(tmp_path / "x.parquet", table, mode, compression="NONE", **options)
    with opened(path) as it:
        chunk, spy = it.chunk(0, "email"), CountedFile(it.file)
        values = read_values(spy, chunk)
        assert [array.to_pylist() for array in values.arrays] == [
            [b"a@example.com", b"b@example.com"]
        ]
        assert spy.bytes_read < chunk.meta_data.total_compressed_size / 2


def test_a_decimal_and_an_int96_are_read_as_their_bytes(tmp_path: Path) -> None:
    table = pa.table(
        {
            "d": pa.array([Decimal("12.50")], pa.decimal128(20, 2)),
            "t": pa.array([86_400 * 10**9], pa.timestamp("ns")),
        }
    )
    path = write(tmp_path / "x.parquet", table, use_deprecated_int96_timestamps=True)
    with opened(path) as it:
        found, _ = _all_values(it)
    assert found == {(1250).to_bytes(9, "big"), struct.pack("<qi", 0, 2_440_589)}


@pytest.mark.parametrize("mode", [Mode.PLAIN, Mode.UNIFORM], ids=lambda mode: mode.name)
@pytest.mark.parametrize("dictionary", [True, False])
@pytest.mark.parametrize("version", ["1.0", "2.0"])
def test_chunks_of_nulls_and_row_groups_of_nothing_have_no_values(
    tmp_path: Path, mode: Mode, dictionary: bool, version: str
) -> None:
    kinds = [pa.string(), pa.int32(), pa.list_(pa.float64()), pa.binary(4)]
    table = pa.table({str(kind): pa.nulls(50, kind) for kind in kinds})
    options = {"use_dictionary": dictionary, "data_page_version": version}
    for part in (table, table.slice(0, 0)):
        path = write(tmp_path / "x.parquet", part, mode, **options)
        with opened(path) as it:
            assert _all_values(it)[0] == set()


def test_a_written_row_group_without_rows_has_no_values(tmp_path: Path) -> None:
    path = tmp_path / "x.parquet"
    table = customers(3)
    with pq.ParquetWriter(path, table.schema) as writer:
        writer.write_table(table.slice(0, 0))
        writer.write_table(table)
    with opened(path) as it:
        assert [group.num_rows for group in it.footer.row_groups][-1] == 3
        assert b"user2@example.com" in _all_values(it)[0]


def _read(it: Opened, name: str = "email") -> ChunkValues:
    values = read_values(it.file, it.chunk(0, name))
    list(values.arrays)
    return values


@pytest.mark.parametrize("mode", [Mode.PLAIN, Mode.UNIFORM], ids=lambda mode: mode.name)
def test_rows_that_go_over_many_pages_and_out_of_the_dictionary(tmp_path: Path, mode: Mode) -> None:
    """Version 1 pages may start inside a row."""
    numbers = list(range(3000))
    table = pa.table({"x": [numbers[:1700], None, [], [None], numbers[1700:]]})
    options = {"dictionary_pagesize_limit": 2048, "data_page_size": 256, "write_batch_size": 64}
    path = write(tmp_path / "x.parquet", table, mode, data_page_version="1.0", **options)
    with opened(path) as it:
        assert _all_values(it) == (set(numbers), {"pages"})


def test_without_statistics_the_page_headers_tell_of_the_dictionary(tmp_path: Path) -> None:
    path = write(tmp_path / "x.parquet", customers(50))
    edit_column(path, 0, "email", lambda meta_data: delattr(meta_data, "encoding_stats"))
    with opened(path) as it:
        values = read_values(it.file, it.chunk(0, "email"))
        assert values.source == "dictionary"
        assert len(next(values.arrays)) == 50


def test_pages_that_refer_to_a_dictionary_which_is_not_there_are_an_error(tmp_path: Path) -> None:
    """An empty filter would answer "absent" for every value of the chunk."""
    path = write(tmp_path / "x.parquet", customers(50))

    def lose(meta_data) -> None:
        behind = meta_data.data_page_offset - meta_data.dictionary_page_offset
        meta_data.total_compressed_size -= behind
        del meta_data.dictionary_page_offset

    edit_column(path, 0, "email", lose)
    with opened(path) as it, pytest.raises(FormatError) as caught:
        _read(it)
    assert (caught.value.row_group, caught.value.column) == (0, "email")


def test_encoding_stats_without_data_pages_are_not_believed(tmp_path: Path) -> None:
    path = write(tmp_path / "x.parquet", customers(50), use_dictionary=False)
    only = PageEncodingStats.of(
        page_type=PageType.DICTIONARY_PAGE, encoding=Encoding.PLAIN, count=1
    )
    edit_column(path, 0, "email", lambda meta_data: setattr(meta_data, "encoding_stats", [only]))
    with opened(path) as it:
        assert _read(it).source == "pages"


@pytest.mark.parametrize("options", [{}, {"use_dictionary": False}], ids=["dictionary", "pages"])
def test_what_is_not_decoded_is_refused_by_name_and_place(
    tmp_path: Path, options: dict[str, Any]
) -> None:
    path = write(tmp_path / "x.parquet", customers(50), **options)
    edit_column(path, 0, "email", lambda m: setattr(m, "codec", CompressionCodec.LZO))
    with opened(path) as it, pytest.raises(UnsupportedFeatureError, match="LZO") as caught:
        _read(it)
    assert (caught.value.row_group, caught.value.column) == (0, "email")


@pytest.mark.parametrize("options", [{}, {"use_dictionary": False}], ids=["dictionary", "pages"])
def test_pages_that_pyarrow_cannot_decode_are_an_error_without_their_content(
    tmp_path: Path, options: dict[str, Any]
) -> None:
    path = write(tmp_path / "x.parquet", customers(50), compression="none", **options)
    content = path.read_bytes()
    # The length before a value: 19 bytes long becomes 2 GiB long.
    place = content.index(b"user1@example.com") - 4
    path.write_bytes(content[:place] + b"\xff\xff\xff\x7f" + content[place + 4 :])
    with opened(path) as it, pytest.raises(FormatError, match="cannot decode") as caught:
        _read(it)
    assert "example.com" not in str(caught.value)
    assert caught.value.__cause__ is None


def _empty_page(version: str) -> bytes:
    """Header and body of a data page of an optional column without any value."""
    if version == "1.0":
        detail = DataPageHeader.of(
            num_values=0,
            encoding=Encoding.PLAIN,
            definition_level_encoding=Encoding.RLE,
            repetition_level_encoding=Encoding.RLE,
        )
        fields, body = {"type": PageType.DATA_PAGE, "data_page_header": detail}, bytes(4)
    else:
        lengths = {"definition_levels_byte_length": 0, "repetition_levels_byte_length": 0}
        detail = DataPageHeaderV2.of(
            num_values=0, num_nulls=0, num_rows=0, encoding=Encoding.PLAIN, **lengths
        )
        fields, body = {"type": PageType.DATA_PAGE_V2, "data_page_header_v2": detail}, b""
    size = {"uncompressed_page_size": len(body), "compressed_page_size": len(body)}
    return PageHeader.of(**fields, **size).encode() + body


@pytest.mark.parametrize("version", ["1.0", "2.0"])
def test_empty_pages_are_passed_over(tmp_path: Path, version: str) -> None:
    options = {"use_dictionary": False, "compression": "none", "data_page_version": version}
    path = write(tmp_path / "x.parquet", customers(50), **options)
    with opened(path) as it:
        meta_data, end = it.chunk(0, "email").meta_data, it.footer.tail.offset
        stored = it.file.read_at(meta_data.data_page_offset, meta_data.total_compressed_size)
    empty = _empty_page(version)
    pages = empty + empty + stored + empty
    content = path.read_bytes()
    path.write_bytes(content[:end] + pages + content[end:])

    def point_at_them(meta_data: ColumnMetaData) -> None:
        meta_data.data_page_offset = end
        meta_data.total_compressed_size = len(pages)

    edit_column(path, 0, "email", point_at_them)
    with opened(path) as it:
        arrays = read_values(it.file, it.chunk(0, "email")).arrays
        values = [value for array in arrays for value in array.to_pylist()]
    assert values == [email.encode() for email in customers(50)["email"].to_pylist()]


@pytest.mark.parametrize("num_values", [0, 49])
@pytest.mark.parametrize("dictionary", [True, False])
def test_fewer_values_than_rows_are_an_error(
    tmp_path: Path, num_values: int, dictionary: bool
) -> None:
    path = write(tmp_path / "x.parquet", customers(50), use_dictionary=dictionary)
    edit_column(path, 0, "email", lambda meta_data: setattr(meta_data, "num_values", num_values))
    with opened(path) as it, pytest.raises(FormatError, match="has 50 rows") as caught:
        _read(it)
    assert (caught.value.row_group, caught.value.column) == (0, "email")


def test_an_empty_page_at_which_pyarrow_itself_stops_is_passed_over(tmp_path: Path) -> None:
    """pyarrow 26 starts BOOLEAN leaves with an empty page when it writes tiny ones of version 2."""
    kind = pa.struct([("a", pa.map_(pa.int32(), pa.bool_()))])
    table = pa.table({"x": pa.array([{"a": [(0, True)]}], kind)})
    options = {"data_page_version": "2.0", "data_page_size": 16, "write_batch_size": 1}
    path = write(tmp_path / "x.parquet", table, **options)
    with opened(path) as it:
        assert _all_values(it)[0] == {0, True}


def test_a_list_that_is_cut_short_is_an_error(tmp_path: Path) -> None:
    """Fewer rows than the row group has would be values that the filter lacks."""
    table = pa.table({"x": [[i, i + 1] for i in range(50)]})
    path = write(tmp_path / "x.parquet", table, use_dictionary=False)
    with opened(path) as it:
        it.footer.row_groups[0].num_rows = 60
        it.footer.metadata.num_rows = 60
        path.write_bytes(it.file.read_at(0, it.footer.tail.offset) + encode_footer(it.footer))
    with opened(path) as it, pytest.raises(FormatError, match="hold 50 rows, wanted 60"):
        _read(it, "x.list.element")


def test_an_altered_dictionary_page_of_an_encrypted_column_is_an_error(tmp_path: Path) -> None:
    path = write(tmp_path / "x.parquet", customers(50), Mode.ENCRYPTED)
    with opened(path) as it:
        place = it.chunk(0, "email").meta_data.data_page_offset - 20
    content = bytearray(path.read_bytes())
    content[place] ^= 1
    path.write_bytes(content)
    with opened(path) as it, pytest.raises(IntegrityError) as caught:
        _read(it)
    assert (caught.value.row_group, caught.value.column) == (0, "email")
