"""Decode pages of one column into Arrow arrays of physical leaf values, by pyarrow.

The pages are put into a Parquet file in memory that has this one column and only physical types, so
that no logical type changes a value.  This one way serves every encoding and codec that pyarrow
decodes, for encrypted files too.  INT96 is declared as FIXED_LEN_BYTE_ARRAY(12), the same bytes.
"""

from __future__ import annotations

import functools
from collections.abc import Iterator, Sequence

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from secure_bloom.errors import FormatError, UnsupportedFeatureError
from secure_bloom.parquet.memory_files import MemoryColumn, StoredPage, StoredPages, memory_file
from secure_bloom.parquet.pages import Page
from secure_bloom.parquet.schema import Leaf
from secure_bloom.parquet.structures.metadata import (
    CompressionCodec,
    DataPageHeader,
    Encoding,
    FieldRepetitionType,
    PageHeader,
    PageType,
    SchemaElement,
    Type,
)
from secure_bloom.parquet.structures.records import known_member
from secure_bloom.parquet.structures.splices import encoded

#: Bytes of the length before each BYTE_ARRAY.
_LENGTH_SIZE = 4
#: Bytes of a row in a dictionary array.
_INDEX_SIZE = 4
#: Values decoded at a time: enough to keep pyarrow busy, few enough to stay in the cache.
_BATCH_ROWS = 256 * 1024
#: Bytes decoded at a time, if each value may be as long as its page.
_BATCH_BYTES = 64 * 1024 * 1024
#: pyarrow does not decode these; our error names them, pyarrow's would not.
_UNDECODED_CODECS = {CompressionCodec.LZO}
_UNDECODED_ENCODINGS = {Encoding.BIT_PACKED, Encoding.ALP}


def decode_dictionary(leaf: Leaf, codec: CompressionCodec, page: Page) -> Iterator[pa.Array]:
    """Yield the entries of a dictionary page, decoded as a data page of a required column.

    Raises FormatError if the page holds more entries than its header counts.
    """
    # Entries of a dictionary are PLAIN, by its new name or its old one (Encodings.md, "Dictionary
    # Encoding").
    if page.encoding not in (Encoding.PLAIN, Encoding.PLAIN_DICTIONARY):
        raise UnsupportedFeatureError(f"dictionary page has encoding {page.encoding.name}")
    # A version 1 data page of a required column is its values and nothing else.  The body of the
    # dictionary page is one of these as it is, and only needs another header.
    body = page.body()
    header = _data_page_header(page, len(body))
    # Entries of a dictionary have no levels, as values of a required column have none.
    required, count = (FieldRepetitionType.REQUIRED,), page.num_values
    found, size = 0, page.uncompressed_size
    # pyarrow takes a page without values for the end of the chunk.
    if count > 0:
        for entries in _decode(leaf, codec, required, [(header, body)], rows=count, values=count):
            found += _plain_size(leaf, entries)
            yield entries
    # An entry that the header does not count would be missing in the filter, and rows be lost.
    if found != size:
        raise FormatError(
            f"the dictionary page has {size} bytes, the {count} entries in its header take {found}"
        )


def _data_page_header(dictionary: Page, stored_size: int) -> bytes:
    """Return the header under which a dictionary page's body is decoded as a data page.

    The column is declared required, so the body has no levels.
    """
    return encoded(
        PageHeader,
        type=PageType.DATA_PAGE,
        uncompressed_page_size=dictionary.uncompressed_size,
        compressed_page_size=stored_size,
        data_page_header=encoded(
            DataPageHeader,
            num_values=dictionary.num_values,
            # PLAIN_DICTIONARY on a dictionary page is the old name of PLAIN; on a data page it
            # means numbers of entries.
            encoding=Encoding.PLAIN,
            definition_level_encoding=Encoding.RLE,
            repetition_level_encoding=Encoding.RLE,
        ),
    )


def _plain_size(leaf: Leaf, entries: pa.Array) -> int:
    """Return the number of bytes of values in PLAIN encoding."""
    if leaf.width is not None:
        return len(entries) * leaf.width
    # pyarrow's sum of nothing is null.
    return len(entries) * _LENGTH_SIZE + (pc.sum(pc.binary_length(entries)).as_py() or 0)


def decode_stored(
    leaf: Leaf, codec: CompressionCodec, pages: StoredPages, *, rows: int, has_dictionary: bool
) -> Iterator[pa.Array]:
    """Yield the values of decrypted data pages, without nulls, in order.

    ``pages`` must hold exactly ``rows`` whole rows.
    """
    for items in _decode_stored(leaf, codec, pages, rows=rows, has_dictionary=has_dictionary):
        yield items.drop_null()


def decode_items(
    leaf: Leaf,
    codec: CompressionCodec,
    pages: Sequence[Page],
    *,
    rows: int,
    has_dictionary: bool,
    kept_dictionary: int | None = None,
) -> Iterator[pa.Array]:
    """Yield the items of data pages in order, with nulls.

    So the keys and the values of a map stay pairs.  If ``kept_dictionary`` has the bytes of the
    dictionary, the items of texts stay dictionary arrays.
    """
    stored = StoredPages.of(pages)
    return _decode_stored(
        leaf, codec, stored, rows=rows, has_dictionary=has_dictionary, kept=kept_dictionary
    )


def _decode_stored(
    leaf: Leaf,
    codec: CompressionCodec,
    pages: StoredPages,
    *,
    rows: int,
    has_dictionary: bool,
    kept: int | None = None,
) -> Iterator[pa.Array]:
    for number in pages.encodings:
        encoding = known_member(Encoding, number, "PageHeader: encoding")
        if encoding in _UNDECODED_ENCODINGS:
            raise UnsupportedFeatureError(f"encoding {encoding.name} is not decoded here")
    yield from _decode(
        leaf,
        codec,
        leaf.repetitions,
        pages.pages,
        rows=rows,
        values=pages.values,
        dictionary=has_dictionary,
        # Each batch has a copy of the dictionary, so it has as many bytes of rows.
        batch=_batch_rows(pages) if kept is None else max(_BATCH_ROWS, kept // _INDEX_SIZE),
        keeps_dictionary=kept is not None,
    )


def _decode(
    leaf: Leaf,
    codec: CompressionCodec,
    repetitions: tuple[FieldRepetitionType, ...],
    parts: Sequence[StoredPage],
    *,
    rows: int,
    values: int,
    dictionary: bool = False,
    batch: int = _BATCH_ROWS,
    keeps_dictionary: bool = False,
) -> Iterator[pa.Array]:
    if codec in _UNDECODED_CODECS:
        raise UnsupportedFeatureError(f"codec {codec.name} is not decoded here")
    # The names of the file are left out: pyarrow would take a list apart by them (LogicalTypes.md,
    # "Lists"), and only its values matter here.
    path = [str(depth) for depth in range(len(repetitions))]
    column = MemoryColumn(
        path=path,
        type=_physical_type(leaf),
        codec=codec,
        values=values,
        pages=parts,
        has_dictionary=dictionary,
    )
    file = memory_file(_schema(leaf, repetitions), [column], rows)
    yield from _read(file, rows, batch, [".".join(path)] if keeps_dictionary else [])


def _batch_rows(pages: StoredPages) -> int:
    """Return the number of rows to decode at a time.

    In DELTA_BYTE_ARRAY a few bytes make a value repeat a prefix of the value before it. So each
    value of a small page may be as long as the page.
    """
    if Encoding.DELTA_BYTE_ARRAY not in pages.encodings:
        return _BATCH_ROWS
    return max(1, min(_BATCH_ROWS, _BATCH_BYTES // max(1, pages.largest)))


def _physical_type(leaf: Leaf) -> Type:
    return Type.FIXED_LEN_BYTE_ARRAY if leaf.type is Type.INT96 else leaf.type


def _schema(leaf: Leaf, repetitions: tuple[FieldRepetitionType, ...]) -> list[bytes]:
    """Return encoded schema nodes with the given repetitions and one physical type at the end."""
    node = functools.partial(encoded, SchemaElement)
    *above, own = enumerate(repetitions)
    return [
        node(name="schema", num_children=1),
        *(node(name=str(i), repetition_type=it, num_children=1) for i, it in above),
        node(
            name=str(own[0]),
            repetition_type=own[1],
            type=_physical_type(leaf),
            type_length=leaf.width,
        ),
    ]


def _read(
    file: bytes, rows: int, batch_rows: int, dictionaries: Sequence[str]
) -> Iterator[pa.Array]:
    seen = 0
    try:
        # The file is in memory: reading ahead would copy it.  Several of these run at a time, so
        # threads of pyarrow's own would only compete.
        source = pq.ParquetFile(
            pa.BufferReader(file), read_dictionary=dictionaries, pre_buffer=False
        )
        for batch in source.iter_batches(batch_size=batch_rows, use_threads=False):
            seen += batch.num_rows
            yield _leaf_items(batch.column(0))
    except (pa.ArrowException, OSError):
        # The cause is left out: its text may quote a value.
        raise FormatError(
            "pyarrow cannot decode the column's pages",
            hint="if other readers can read the file, please report its writer and version",
        ) from None
    # pyarrow may stop early without an error.  A filter of the values so far would lack the others,
    # and queries would lose rows.
    if seen != rows:
        raise FormatError(f"the column's pages hold {seen} rows, wanted {rows}")


def _leaf_items(array: pa.Array) -> pa.Array:
    """Return the leaf's items of a nested array. An empty or null list has no items."""
    while not isinstance(array, pa.Array) or pa.types.is_nested(array.type):
        # Not `values`: that would give the items of rows that a slice left out, too.
        array = array.flatten()[0] if pa.types.is_struct(array.type) else array.flatten()
    return array
