"""Check statements of a file about itself: counts, sizes, statistics, encodings, indexes, pages.

A finding here is a statement that readers believe but that cannot be true.  Values that are merely
wrong are only noticed by reading all of them.

Hadoop leaves checksums beside a file on a local disk (org.apache.hadoop.fs.ChecksumFileSystem):

    .<name>.crc:  "crc" | 0 | block size in bytes (4, BE) | the CRC32 of each block (4, BE)

If another program has written the data file since, the checksums are those of the old file, and
Spark refuses the new file.
"""

from __future__ import annotations

import zlib
from collections import Counter
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import replace
from itertools import pairwise

from secure_bloom.auditing.checks.subjects import ChunkSubject, FileSubject, Findings, FooterSubject
from secure_bloom.auditing.rules.contradiction_rules import (
    CHECKSUM_STALE,
    IMPOSSIBLE_COUNTS,
    IMPOSSIBLE_ENCODINGS,
    IMPOSSIBLE_PAGE_INDEX,
    IMPOSSIBLE_PAGES,
    IMPOSSIBLE_SIZES,
    IMPOSSIBLE_STATISTICS,
)
from secure_bloom.auditing.rules.key_rules import NOT_AUTHENTIC
from secure_bloom.errors import FormatError, IntegrityError
from secure_bloom.parquet import chunk_contradictions
from secure_bloom.parquet.dictionary_pages import DICTIONARY_ENCODINGS, read_headers
from secure_bloom.parquet.footer.chunks import Chunk
from secure_bloom.parquet.page_index import (
    OffsetAndLength,
    column_index_extent,
    decode_column_index,
    decode_offset_index,
    offset_index_extent,
    page_spans,
)
from secure_bloom.parquet.pages import Page, chunk_extent, has_dictionary_offset
from secure_bloom.parquet.schema import Leaf
from secure_bloom.parquet.structures.metadata import Encoding, PageType, Type
from secure_bloom.parquet.structures.records import known_member
from secure_bloom.parquet.value_order import OrderKey, order_of
from secure_bloom.reading.table.coalesced_reads import read_extents
from secure_bloom.storage import InputFile, is_object_uri

_DATA_PAGES = (PageType.DATA_PAGE, PageType.DATA_PAGE_V2)


def check_counts(subject: ChunkSubject) -> Findings:
    """Check that a column has a value for each row. A list has at least that many."""
    chunk = subject.chunk
    if chunk is not None:
        for what in chunk_contradictions.in_counts(chunk.leaf, chunk.meta_data, chunk.num_rows):
            yield subject.finding(IMPOSSIBLE_COUNTS, what)


def check_footer_counts(subject: FooterSubject) -> Findings:
    """Check that the row groups have the rows of the file, and that no number is negative."""
    metadata, groups = subject.footer.metadata, subject.footer.row_groups
    rows = [group.num_rows for group in groups]
    if metadata.num_rows != sum(rows) or min(rows, default=0) < 0:
        yield subject.finding(
            IMPOSSIBLE_COUNTS,
            f"FileMetaData.num_rows is {metadata.num_rows}, its row groups have {sum(rows)} rows",
        )
    if any(group.total_byte_size < 0 for group in groups):
        yield subject.finding(IMPOSSIBLE_SIZES, "RowGroup.total_byte_size is below 0")
    end = subject.of.tail.offset
    # Writers put 0 if they do not know.
    if any(not 0 <= (group.file_offset or 0) <= end for group in groups):
        yield subject.finding(IMPOSSIBLE_SIZES, "RowGroup.file_offset is outside of the data")


def check_sizes(subject: ChunkSubject) -> Findings:
    """Check that the chunk's pages are in the file's data, after its dictionary."""
    chunk = subject.chunk
    # A chunk without values may have no pages, and offsets of zero.
    if chunk is None or chunk.meta_data.num_values == 0:
        return
    try:
        start, length = chunk_extent(chunk)
    except FormatError as error:
        yield subject.finding(IMPOSSIBLE_SIZES, error.message)
        return
    meta_data, end = chunk.meta_data, subject.of.tail.offset
    dictionary = meta_data.dictionary_page_offset or 0
    if length > end - start or not dictionary <= meta_data.data_page_offset < start + length:
        yield subject.finding(IMPOSSIBLE_SIZES, "the pages are not where the file has its data")
    if dictionary < 0 or meta_data.total_uncompressed_size <= 0:
        yield subject.finding(IMPOSSIBLE_SIZES, "an offset or a size is none")


def check_overlaps(subject: FooterSubject) -> Findings:
    """Check that no two column chunks share bytes."""
    found = []
    for one in subject.chunks:
        # A chunk without values may have no pages, and offsets that mean nothing.
        if one.chunk is not None and one.chunk.meta_data.num_values > 0:
            meta_data = one.chunk.meta_data
            start = meta_data.data_page_offset
            if has_dictionary_offset(one.chunk):
                start = min(start, meta_data.dictionary_page_offset or 0)
            found.append((start, start + meta_data.total_compressed_size, one))
    # Sorted by places alone, because subjects have no order.
    found.sort(key=lambda extent: extent[:2])
    for (_, end, _), (start, _, one) in pairwise(found):
        if start < end:
            yield one.finding(IMPOSSIBLE_SIZES, "its pages are those of another column chunk")


def check_statistics(subject: ChunkSubject) -> Findings:
    """Check that the statistics do not contradict the column."""
    chunk = subject.chunk
    if chunk is None:
        return
    for what in _in_statistics(chunk):
        yield subject.finding(IMPOSSIBLE_STATISTICS, what)


def _in_statistics(chunk: Chunk) -> Iterator[str]:
    leaf, meta_data, statistics = chunk.leaf, chunk.meta_data, chunk.meta_data.statistics
    if statistics is None:
        return
    yield from chunk_contradictions.in_null_count(leaf, meta_data)
    order = _order_of(leaf)
    for low, high in (
        (statistics.min_value, statistics.max_value),
        (statistics.min, statistics.max),
    ):
        # Few writers fill the older pair.
        if low is not None:
            yield from chunk_contradictions.in_bounds(order, low, high)
    for name in ("nan_count", "distinct_count"):
        count = getattr(statistics, name)
        if count is not None and not 0 <= count <= meta_data.num_values:
            yield f"Statistics.{name} is {count}, of {meta_data.num_values} values"


def _order_of(leaf: Leaf) -> OrderKey | None:
    """Return the order that bounds must have.

    Return None for INT96, for which older writers used many orders.
    """
    return None if leaf.type is Type.INT96 else order_of(leaf)


def check_encodings(subject: ChunkSubject) -> Findings:
    """Check that the type is the schema's, and that no encoding has a negative number of pages."""
    if subject.chunk is None:
        return
    wanted = subject.leaf.type
    number = subject.chunk.meta_data.type
    if number != wanted:
        said = known_member(Type, number, "ColumnMetaData.type")
        yield subject.finding(
            IMPOSSIBLE_ENCODINGS,
            f"ColumnMetaData.type is {said.name}, the schema has {wanted.name}",
        )
    stats = subject.chunk.meta_data.encoding_stats
    if stats and min([stat.count for stat in stats]) < 0:
        yield subject.finding(IMPOSSIBLE_ENCODINGS, "PageEncodingStats.count is below 0")


def check_page_indexes(subject: FooterSubject) -> Findings:
    """Check that the page indexes do not contradict their chunks. They are read in few requests."""
    file = subject.of.file
    extents: dict[tuple[int, str], OffsetAndLength] = {}
    for number, one in enumerate(subject.chunks):
        if one.chunk is not None:
            column, offset = (
                column_index_extent(one.chunk, file.size),
                offset_index_extent(one.chunk, file.size),
            )
            extents |= {(number, "column"): column} if column is not None else {}
            extents |= {(number, "offset"): offset} if offset is not None else {}
    content = read_extents(file, extents)
    for number, one in enumerate(subject.chunks):
        found = content.get((number, "column")), content.get((number, "offset"))
        try:
            for what in _in_indexes(one, *found):
                yield one.finding(IMPOSSIBLE_PAGE_INDEX, what)
        except FormatError as error:
            yield one.finding(IMPOSSIBLE_PAGE_INDEX, error.message)
        except IntegrityError as error:
            yield one.finding(NOT_AUTHENTIC, error.message)


def _in_indexes(
    subject: ChunkSubject, column: memoryview | None, offset: memoryview | None
) -> Iterator[str]:
    if subject.chunk is None:
        return
    listed = subject.column_chunk
    if column is None and listed.column_index_offset is not None:
        yield "the column index is outside the file"
    if offset is None and listed.offset_index_offset is not None:
        yield "the offset index is outside the file"
    if offset is not None:
        yield from _in_page_index(subject.chunk, column, offset)
    elif column is not None:
        # Without an offset index nobody asks for its bounds: only that it was altered matters.
        with suppress(FormatError):
            decode_column_index(subject.chunk, column)


def _in_page_index(chunk: Chunk, column: memoryview | None, offset: memoryview) -> Iterator[str]:
    locations = decode_offset_index(chunk, offset)
    found = list(chunk_contradictions.in_offset_index(chunk, locations))
    yield from found
    # Without rows that can be true, nothing else of the index can be judged.
    if found:
        return
    starts = [page.first_row_index for page in locations.page_locations]
    rows = [end - start for start, end in pairwise([*starts, chunk.num_rows])]
    if column is not None:
        index = decode_column_index(chunk, column)
        yield from chunk_contradictions.in_column_index(chunk, index, rows, _order_of(chunk.leaf))
    counted = _data_pages(chunk)
    if counted is not None and counted != len(rows):
        yield f"encoding_stats count {counted} data pages, OffsetIndex has {len(rows)}"


def _data_pages(chunk: Chunk) -> int | None:
    stats = chunk.meta_data.encoding_stats
    if stats is None:
        return None
    return sum(stat.count for stat in stats if stat.page_type in _DATA_PAGES)


def check_pages(subject: ChunkSubject) -> Findings:
    """With ``check_values``, check that page headers agree with the footer and the page index.

    Each page of an encrypted chunk is decrypted: IntegrityError is raised if one was altered.
    """
    chunk = subject.chunk
    if chunk is None or not subject.of.request.check_values or chunk.meta_data.num_values <= 0:
        return
    try:
        pages = list(_authentic_pages(subject.of.file, chunk))
    except FormatError as error:
        yield subject.finding(IMPOSSIBLE_PAGES, error.message)
        return
    # A dictionary that holds more than it counts hides values from whoever builds filters by it.
    if not all(_has_its_entries(chunk, page) for page in pages if page.is_dictionary):
        yield subject.finding(
            IMPOSSIBLE_PAGES,
            "the number of entries in the dictionary page differs from that in its header",
        )
    data = [page for page in pages if not page.is_dictionary]
    for what in _in_version_2(chunk, data):
        yield subject.finding(IMPOSSIBLE_PAGES, what)
    if not _counts_its_encodings(chunk, data):
        yield subject.finding(
            IMPOSSIBLE_ENCODINGS, "encoding_stats are not those of the pages' headers"
        )
    yield from _check_rows(subject, chunk, data)


def _authentic_pages(file: InputFile, chunk: Chunk) -> Iterator[Page]:
    """Yield the chunk's pages. The body of each data page was authenticated, and is left out."""
    if chunk.cipher is None or chunk.cipher.uses_ctr:
        # AES_GCM_CTR_V1 has no tags for bodies (Encryption.md 4.2.2): reading them shows nothing.
        yield from read_headers(file, chunk)
        return
    for page in read_headers(file, chunk, with_bodies=True):
        page.body()
        yield page if page.is_dictionary else replace(page, stored=memoryview(b""))


def _counts_its_encodings(chunk: Chunk, data: list[Page]) -> bool:
    """Return whether ``encoding_stats``, if present, count the data pages by encoding."""
    stats = chunk.meta_data.encoding_stats
    if stats is None:
        return True
    said: Counter[Encoding] = Counter()
    for stat in stats:
        if stat.page_type in _DATA_PAGES and stat.count > 0:
            said[_plain_name(stat.encoding)] += stat.count
    return said == Counter(_plain_name(page.encoding) for page in data)


def _in_version_2(chunk: Chunk, data: list[Page]) -> Iterator[str]:
    """Yield contradictions about rows, nulls and levels in headers of version 2."""
    headers = [detail for page in data if (detail := page.header.data_page_header_v2) is not None]
    # A value of a flat column is a row, so the two counts of a header must be equal.
    if len(headers) < len(data) or not headers or chunk.leaf.is_repeated:
        return
    if any(it.num_rows != it.num_values for it in headers):
        yield "DataPageHeaderV2.num_rows differs from num_values in a flat column"
    if any((it.definition_levels_byte_length == 0) is not chunk.leaf.is_required for it in headers):
        yield "DataPageHeaderV2: a required column has definition levels, or an optional one none"
    nulls, statistics = [it.num_nulls for it in headers], chunk.meta_data.statistics
    known = None if statistics is None else statistics.null_count
    if min(nulls) < 0 or known not in (None, sum(nulls)) or (chunk.leaf.is_required and any(nulls)):
        yield f"DataPageHeaderV2.num_nulls are {sum(nulls)}, Statistics.null_count is {known}"


def _has_its_entries(chunk: Chunk, page: Page) -> bool:
    # Imported here: the other checks need no pyarrow.
    from secure_bloom.parquet.plain_pages import plain_entries, plain_values

    if page.encoding not in (Encoding.PLAIN, Encoding.PLAIN_DICTIONARY):
        return False
    codec = chunk.meta_data.codec
    # Pages that cannot be decompressed are damaged; that is another finding.
    is_known = plain_values(chunk.leaf, codec, page) is not None
    return not is_known or plain_entries(chunk.leaf, codec, page) is not None


def _plain_name(encoding: Encoding) -> Encoding:
    return Encoding.RLE_DICTIONARY if encoding in DICTIONARY_ENCODINGS else encoding


def _check_rows(subject: ChunkSubject, chunk: Chunk, data: list[Page]) -> Findings:
    """Check that the pages of a flat column have the rows that the offset index says."""
    extent = offset_index_extent(chunk, subject.of.file.size)
    if extent is None or chunk.leaf.is_repeated:
        return
    spans = page_spans(chunk, subject.of.file.read_at(*extent))
    if spans is not None and [span.end - span.start for span in spans] != [
        page.num_values for page in data
    ]:
        yield subject.finding(
            IMPOSSIBLE_PAGE_INDEX, "the pages have other rows than OffsetIndex says"
        )


_MAGIC = b"crc\0"
_SIZE = 4
_HEADER_SIZE = len(_MAGIC) + _SIZE
#: Hadoop has a checksum for every 512 bytes; a larger block than this is not read.
_LARGEST_BLOCK = 1 << 20


def check_checksums(subject: FileSubject) -> Findings:
    """Check that every block has a checksum, and that the first and last checksums are right."""
    file = subject.file
    if is_object_uri(file.path):
        return
    try:
        stored = file.read_sibling(f".{file.name}.crc", limit=_HEADER_SIZE + file.size)
    except FormatError:
        # The checksums are larger than the file itself.
        stored = b""
    if stored is not None and not _are_right(file, stored):
        yield subject.finding(CHECKSUM_STALE, "the .crc file beside it is of other bytes")


def _are_right(file: InputFile, stored: bytes) -> bool:
    block = int.from_bytes(stored[len(_MAGIC) : _HEADER_SIZE], "big")
    if not stored.startswith(_MAGIC) or not 0 < block <= _LARGEST_BLOCK:
        return False
    blocks = -(-file.size // block)
    if len(stored) != _HEADER_SIZE + _SIZE * blocks:
        return False
    return all(_is_right(file, stored, block, ordinal) for ordinal in {0, blocks - 1})


def _is_right(file: InputFile, stored: bytes, block: int, ordinal: int) -> bool:
    start, place = ordinal * block, _HEADER_SIZE + ordinal * _SIZE
    content = file.read_at(start, min(block, file.size - start))
    return zlib.crc32(content) == int.from_bytes(stored[place : place + _SIZE], "big")
