"""Every lie that a file can tell of a column chunk: one field, wrong in one way.

A lie is of what a reader could believe: statistics, indexes, counts, offsets, sizes, encodings.
``seen``: the file contradicts itself where an audit looks, so that the lie is a finding.
``is_lost``: the file does not have the honest values any more.  ``is_trusted``: nothing at hand
contradicts it, and readers believe it; docs/reading/skipped.md tells of these.
``may_be_overlooked``: only who reads more than the rows need can tell, and the rows as they were
written are as good an answer as what pyarrow makes of the lie.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from thrift.protocol.TProtocol import TType

from secure_bloom.parquet.structures.metadata import Encoding, PageType, Type
from testing.thrift.metadata import PageEncodingStats
from testing.thrift.views import View, tree_of
from tests.lying.editing import EditedPage, Inapplicable, Place

Change = Callable[[Place], object]
ALL = ("number", "optional", "word", "few", "mixed", "real", "items")
FLAT = ALL[:-1]
DICTIONARY = ("word", "few", "mixed")


@dataclass(frozen=True, slots=True, kw_only=True)
class Lie:
    """``columns`` are those that it is told of, the first where only one is."""

    change: Change
    columns: tuple[str, ...]
    seen: bool
    is_lost: bool = False
    is_trusted: bool = False
    may_be_overlooked: bool = False


LIES: dict[str, Lie] = {}


def lie(
    name: str,
    columns: tuple[str, ...] = ("number", "optional", "word"),
    *,
    seen: bool = True,
    **marks: bool,
) -> Callable[[Change], Change]:
    """Enter the function as a lie."""

    def enter(change: Change) -> Change:
        assert name not in LIES
        LIES[name] = Lie(change=change, columns=columns, seen=seen, **marks)
        return change

    return enter


def lies(
    name: str,
    values: dict[str, Any],
    columns: tuple[str, ...] = ("number", "optional", "word"),
    *,
    seen: bool = True,
    **marks: bool,
) -> Callable[[Callable[[Place, Any], object]], Callable[[Place, Any], object]]:
    """Enter the function as a lie for each of the values, which it is given."""

    def enter(change: Callable[[Place, Any], object]) -> Callable[[Place, Any], object]:
        for said, value in values.items():
            lie(f"{name}: {said}", columns, seen=seen, **marks)(
                lambda place, value=value: change(place, value)  # type: ignore[misc]
            )
        return change

    return enter


def raw(view: View, field: int, ttype: int, value: object) -> None:
    """Set a field that our views do not have, or to what they refuse."""
    view.tree.fields[field] = (ttype, value)
    view.tree.fields = dict(sorted(view.tree.fields.items()))


def swapped(items: list[Any], i: int, j: int) -> list[Any]:
    items = list(items)
    items[i], items[j] = items[j], items[i]
    return items


# Statistics of a chunk.


@lies(
    "Statistics.null_count",
    {
        "negative": lambda _: -1,
        "above": lambda n: n + 1,
        "all": lambda n: n,
        "huge": lambda _: 2**60,
    },
    FLAT,
)
def null_count(place: Place, of: Callable[[int], int]) -> None:
    place.statistics.null_count = of(place.meta_data.num_values)


@lie("Statistics.null_count: none", ("optional", "few"))
def no_nulls(place: Place) -> None:
    place.statistics.null_count = 0


@lie("Statistics.null_count: one in a required column", ("number", "word"))
def one_null(place: Place) -> None:
    place.statistics.null_count = 1


@lie("Statistics: all null without bounds", FLAT)
def all_null(place: Place) -> None:
    statistics = place.statistics
    del statistics.min_value, statistics.max_value, statistics.min, statistics.max
    statistics.null_count = place.meta_data.num_values


@lie("Statistics: min above max", FLAT)
def min_above_max(place: Place) -> None:
    statistics = place.statistics
    low, high = statistics.min_value, statistics.max_value
    if low is None or high is None:
        raise Inapplicable
    statistics.min_value, statistics.max_value = high, low
    if statistics.min is not None and statistics.max is not None:
        statistics.min, statistics.max = high, low


@lies(
    "Statistics bounds",
    {
        "cut": lambda bound: bound[:-1],
        "longer": lambda bound: bound + b"\0",
        "empty": lambda _: b"",
        "four bytes": lambda _: b"\1\0\0\0",
    },
    ("number", "real", "few"),
)
def width(place: Place, of: Callable[[bytes], bytes]) -> None:
    statistics = place.statistics
    low, high = statistics.min_value, statistics.max_value
    if low is None or high is None:
        raise Inapplicable
    statistics.min_value, statistics.max_value = of(low), of(high)


@lies(
    "Statistics older bounds", {"above": (b"\xff", b"\0"), "cut": (b"\0", b"\1")}, ("number", "few")
)
def older_bounds(place: Place, of: tuple[bytes, bytes]) -> None:
    statistics = place.statistics
    low, high = statistics.min_value, statistics.max_value
    if low is None or high is None:
        raise Inapplicable
    del statistics.min_value, statistics.max_value
    if of[0] == b"\xff":
        statistics.min, statistics.max = high, low
    else:
        statistics.min, statistics.max = low[:1], high[:1]


@lies("Statistics.nan_count", {"negative": -1, "above": 10**6}, ("real",))
def nan_count(place: Place, count: int) -> None:
    place.statistics.nan_count = count


@lies("Statistics.distinct_count", {"negative": -1, "above": 10**6})
def distinct_count(place: Place, count: int) -> None:
    raw(place.statistics, 4, TType.I64, count)


@lie("SizeStatistics.definition_level_histogram: says none is null", ("optional", "few"))
def histogram(place: Place) -> None:
    sizes = place.meta_data.size_statistics
    if sizes is None or 3 not in tree_of(sizes).fields:
        raise Inapplicable
    tree_of(sizes).fields[3][1].items[:] = [0, place.meta_data.num_values]


# The column index.


@lies(
    "ColumnIndex.null_pages",
    {"all": lambda n: [True] * n, "first": lambda n: [True] + [False] * (n - 1)},
    FLAT,
)
def null_pages(place: Place, of: Callable[[int], list[bool]]) -> None:
    with place.column_index() as index:
        index.null_pages = of(len(index.null_pages))


@lie("ColumnIndex.null_pages: all, with counts of -1 and without bounds", FLAT)
def null_pages_without_bounds(place: Place) -> None:
    with place.column_index() as index:
        count = len(index.null_pages)
        index.null_pages = [True] * count
        index.null_counts = [-1] * count
        index.min_values = index.max_values = [b""] * count


@lie("ColumnIndex: all pages null, their counts as well", FLAT)
def null_pages_and_counts(place: Place) -> None:
    with place.column_index() as index, place.offset_index() as offsets:
        count = len(index.null_pages)
        starts = [location.first_row_index for location in offsets.page_locations]
        ends = [*starts[1:], place.row_group.num_rows]
        index.null_pages = [True] * count
        index.null_counts = [b - a for a, b in zip(starts, ends, strict=True)]
        index.min_values = index.max_values = [b""] * count


@lies(
    "ColumnIndex.null_counts",
    {
        "negative": lambda counts: [-1] * len(counts),
        "one negative": lambda counts: [-1, *counts[1:]],
        "above": lambda counts: [counts[0] + 1000, *counts[1:]],
        "all null, and the page is none": lambda counts: [20, *counts[1:]],
        "none": lambda counts: [0] * len(counts),
        "of another page": lambda counts: [*counts[1:], counts[0] + 1],
        "too few": lambda counts: counts[1:],
        "too many": lambda counts: [0, *counts],
    },
    FLAT,
)
def page_null_counts(place: Place, of: Callable[[list[int]], list[int]]) -> None:
    with place.column_index() as index:
        if index.null_counts is None:
            raise Inapplicable
        before = list(index.null_counts)
        if of(before) == before:
            raise Inapplicable
        index.null_counts = of(before)


@lie("ColumnIndex: min above max", FLAT)
def page_min_above_max(place: Place) -> None:
    with place.column_index() as index:
        if index.min_values == index.max_values:
            raise Inapplicable
        index.min_values, index.max_values = index.max_values, index.min_values


@lies(
    "ColumnIndex bounds",
    {
        "cut": lambda bound: bound[:-1],
        "longer": lambda bound: bound + b"\0",
        "empty": lambda _: b"",
        "two bytes": lambda _: b"\1\0",
    },
    ("number", "real", "optional"),
)
def page_width(place: Place, of: Callable[[bytes], bytes]) -> None:
    with place.column_index() as index:
        index.min_values = [of(bound) for bound in index.min_values]
        index.max_values = [of(bound) for bound in index.max_values]


@lie("ColumnIndex bounds: in another order than it says")
def page_order(place: Place) -> None:
    with place.column_index() as index:
        index.min_values = index.min_values[::-1]
        index.max_values = index.max_values[::-1]


@lie("ColumnIndex bounds: two pages exchanged")
def page_exchanged(place: Place) -> None:
    with place.column_index() as index:
        index.min_values = swapped(index.min_values, 0, 3)
        index.max_values = swapped(index.max_values, 0, 3)


@lie("ColumnIndex bounds: those of the last page everywhere", ("number", "word", "few"))
def page_narrow(place: Place) -> None:
    with place.column_index() as index:
        index.min_values = [index.min_values[-1]] * len(index.min_values)
        index.max_values = [index.max_values[-1]] * len(index.max_values)


@lie("ColumnIndex bounds: those of another row group", ("number", "word"))
def page_of_other_group(place: Place) -> None:
    with (
        place.column_index() as index,
        place.other(place.column, 1 - place.chunk.row_group).column_index() as other,
    ):
        index.min_values, index.max_values = other.min_values, other.max_values


@lies("ColumnIndex.boundary_order", {"other": 2, "unknown": 7}, ("number", "word"))
def boundary_order(place: Place, order: int) -> None:
    with place.column_index() as index:
        raw(index, 4, TType.I32, order)


@lies(
    "ColumnIndex lists",
    {
        "without the first": lambda items: items[1:],
        "without the last": lambda items: items[:-1],
        "one more": lambda items: [*items, items[-1]],
        "none": lambda _: [],
    },
)
def lists(place: Place, of: Callable[[list[Any]], list[Any]]) -> None:
    with place.column_index() as index:
        _cut_lists(index, of)


def _cut_lists(index: Any, of: Callable[[list[Any]], list[Any]]) -> None:
    index.null_pages, index.min_values = of(index.null_pages), of(index.min_values)
    index.max_values = of(index.max_values)
    if index.null_counts is not None:
        index.null_counts = of(index.null_counts)
    for histograms in (6, 7):
        index.tree.fields.pop(histograms, None)


# The offset index.


def _without(ordinal: int) -> Callable[[list[Any]], list[Any]]:
    return lambda items: [item for i, item in enumerate(items) if i != ordinal % len(items)]


@lies(
    "OffsetIndex and ColumnIndex leave out a page",
    {"first": _without(0), "second": _without(1), "last": _without(-1)},
    ALL,
)
def left_out(place: Place, of: Callable[[list[Any]], list[Any]]) -> None:
    with place.column_index() as index, place.offset_index() as offsets:
        _cut_lists(index, of)
        kept = of(offsets.page_locations)
        kept[0].first_row_index = 0
        offsets.page_locations = kept
        raw_unencoded = offsets.tree.fields.pop(2, None)
        assert raw_unencoded is None or raw_unencoded


@lies(
    "OffsetIndex leaves out a page",
    {"first": _without(0), "second": _without(1), "last": _without(-1)},
    ALL,
)
def left_out_of_offsets(place: Place, of: Callable[[list[Any]], list[Any]]) -> None:
    with place.offset_index() as offsets:
        kept = of(offsets.page_locations)
        kept[0].first_row_index = 0
        offsets.page_locations = kept


@lie("OffsetIndex: two pages are one", ALL)
def two_in_one(place: Place) -> None:
    with place.column_index() as index, place.offset_index() as offsets:
        _cut_lists(index, _without(2))
        first, second = offsets.page_locations[1:3]
        first.compressed_page_size += second.compressed_page_size
        offsets.page_locations = _without(2)(offsets.page_locations)


@lie("OffsetIndex: a page twice", ALL)
def twice(place: Place) -> None:
    with place.offset_index() as offsets:
        locations = offsets.page_locations
        locations[2].offset = locations[1].offset
        locations[2].compressed_page_size = locations[1].compressed_page_size


@lie("OffsetIndex: two pages exchanged", ALL)
def exchanged(place: Place) -> None:
    with place.offset_index() as offsets:
        a, b = offsets.page_locations[1], offsets.page_locations[3]
        a.offset, b.offset = b.offset, a.offset
        a.compressed_page_size, b.compressed_page_size = (
            b.compressed_page_size,
            a.compressed_page_size,
        )


@lies("OffsetIndex.offset", {"negative": -1, "nought": 0, "beyond the file": 2**40}, ALL)
def page_offset(place: Place, offset: int) -> None:
    with place.offset_index() as offsets:
        offsets.page_locations[1].offset = offset


@lies("OffsetIndex.offset", {"one more": 1, "one less": -1}, ALL)
def page_offset_shifted(place: Place, by: int) -> None:
    with place.offset_index() as offsets:
        for location in offsets.page_locations:
            location.offset += by


@lie("OffsetIndex: the pages of the row group beside it", ALL)
def pages_of_other_group(place: Place) -> None:
    with (
        place.offset_index() as offsets,
        place.other(place.column, 1 - place.chunk.row_group).offset_index() as other,
    ):
        for location, elsewhere in zip(offsets.page_locations, other.page_locations, strict=False):
            location.offset = elsewhere.offset
            location.compressed_page_size = elsewhere.compressed_page_size


@lie("OffsetIndex: the pages of another column", ("number", "few", "word", "mixed"))
def pages_of_other_column(place: Place) -> None:
    twin = {"number": "few", "few": "number", "word": "mixed", "mixed": "word"}[place.column]
    with place.offset_index() as offsets, place.other(twin).offset_index() as other:
        offsets.page_locations = other.page_locations


@lie("OffsetIndex: one page of another column", ("number", "few", "word", "mixed"))
def page_of_other_column(place: Place) -> None:
    twin = {"number": "few", "few": "number", "word": "mixed", "mixed": "word"}[place.column]
    with place.offset_index() as offsets, place.other(twin).offset_index() as other:
        offsets.page_locations[2].offset = other.page_locations[2].offset
        offsets.page_locations[2].compressed_page_size = other.page_locations[
            2
        ].compressed_page_size


@lies(
    "OffsetIndex.compressed_page_size",
    {
        "nought": lambda _: 0,
        "negative": lambda _: -5,
        "less": lambda n: n - 1,
        "more": lambda n: n + 1,
        "huge": lambda _: 2**31 - 1,
    },
    ALL,
)
def page_size(place: Place, of: Callable[[int], int]) -> None:
    with place.offset_index() as offsets:
        for location in offsets.page_locations:
            location.compressed_page_size = of(location.compressed_page_size)


@lies(
    "OffsetIndex.first_row_index",
    {
        "starts at 1": lambda rows: [1, *rows[1:]],
        "negative": lambda rows: [-1, *rows[1:]],
        "descends": lambda rows: swapped(rows, 1, 2),
        "beyond": lambda rows: [*rows[:-1], rows[-1] + 1000],
        "all 0": lambda rows: [0] * len(rows),
        "a page without rows": lambda rows: [rows[0], rows[2], *rows[2:]],
    },
    ALL,
)
def first_rows(place: Place, of: Callable[[list[int]], list[int]]) -> None:
    with place.offset_index() as offsets:
        rows = of([location.first_row_index for location in offsets.page_locations])
        for location, row in zip(offsets.page_locations, rows, strict=True):
            location.first_row_index = row


@lies(
    "OffsetIndex.first_row_index of one page",
    {"one more": (1, 1), "five less": (1, -5), "the last, one more": (-1, 1)},
    FLAT,
)
def other_rows(place: Place, change: tuple[int, int]) -> None:
    with place.offset_index() as offsets:
        page, by = change
        offsets.page_locations[page].first_row_index += by


@lie("OffsetIndex.first_row_index: shifted", ("number",), is_trusted=True)
def shifted_rows(place: Place) -> None:
    with place.offset_index() as offsets:
        for location in offsets.page_locations[1:]:
            location.first_row_index += 1


@lie("Statistics bounds: too narrow", ("number",), seen=False, is_trusted=True)
def narrow_bounds(place: Place) -> None:
    with place.column_index() as index:
        place.statistics.min_value = index.min_values[2]


@lie("ColumnIndex bounds: too narrow", ("number",), seen=False, is_trusted=True)
def narrow_page_bounds(place: Place) -> None:
    with place.column_index() as index:
        mins = index.min_values
        mins[3] = index.max_values[3]
        index.min_values = mins


@lies(
    "ColumnChunk.offset_index_offset",
    {"that of another column": 0, "beyond": 2**40, "negative": -1},
    ALL,
)
def offset_index_offset(place: Place, offset: int) -> None:
    chunk, other = (
        place.chunk.column_chunk,
        place.other("optional" if place.column != "optional" else "number").chunk.column_chunk,
    )
    if chunk.offset_index_offset is None or other.offset_index_offset is None:
        raise Inapplicable
    chunk.offset_index_offset = offset or other.offset_index_offset
    chunk.offset_index_length = chunk.offset_index_length if offset else other.offset_index_length


@lies(
    "ColumnChunk.column_index_offset",
    {"that of another column": 0, "beyond": 2**40, "negative": -1},
    ALL,
)
def column_index_offset(place: Place, offset: int) -> None:
    chunk, other = (
        place.chunk.column_chunk,
        place.other("optional" if place.column != "optional" else "few").chunk.column_chunk,
    )
    if chunk.column_index_offset is None or other.column_index_offset is None:
        raise Inapplicable
    chunk.column_index_offset = offset or other.column_index_offset
    chunk.column_index_length = chunk.column_index_length if offset else other.column_index_length


@lies(
    "ColumnChunk.column_index_length",
    {"nought": 0, "negative": -1, "short": 3, "huge": 2**31 - 1},
    ALL,
)
def column_index_length(place: Place, length: int) -> None:
    if place.chunk.column_chunk.column_index_length is None:
        raise Inapplicable
    place.chunk.column_chunk.column_index_length = length


# Encodings.


def _stats(page_type: PageType, encoding: Encoding, count: int) -> PageEncodingStats:
    return PageEncodingStats.of(page_type=page_type, encoding=encoding, count=count)


@lie("encoding_stats: plain pages are left out", ("mixed",))
def plain_left_out(place: Place) -> None:
    stats = place.meta_data.encoding_stats or []
    kept = [
        s
        for s in stats
        if s.page_type is PageType.DICTIONARY_PAGE or s.encoding is not Encoding.PLAIN
    ]
    if len(kept) == len(stats):
        raise Inapplicable
    place.meta_data.encoding_stats = kept


@lie("encoding_stats: plain pages are called dictionary-encoded", ("mixed",))
def plain_called_dictionary(place: Place) -> None:
    for stats in place.meta_data.encoding_stats or []:
        if stats.page_type is not PageType.DICTIONARY_PAGE:
            stats.encoding = Encoding.RLE_DICTIONARY


@lie("encoding_stats: plain pages have a count of 0", ("mixed",))
def plain_not_counted(place: Place) -> None:
    for stats in place.meta_data.encoding_stats or []:
        if stats.page_type is not PageType.DICTIONARY_PAGE and stats.encoding is Encoding.PLAIN:
            stats.count = 0


@lie("encoding_stats: a negative count", ("mixed", "number"))
def plain_negative(place: Place) -> None:
    for stats in place.meta_data.encoding_stats or []:
        if stats.page_type is not PageType.DICTIONARY_PAGE and stats.encoding is Encoding.PLAIN:
            stats.count = -1


@lie("encoding_stats: one dictionary-encoded page of a plain column", ("number", "optional"))
def dictionary_claimed(place: Place) -> None:
    place.meta_data.encoding_stats = [_stats(PageType.DATA_PAGE, Encoding.RLE_DICTIONARY, 1)]


@lie(
    "encoding_stats: dictionary-encoded, in a plain column with a dictionary's offset", ("number",)
)
def dictionary_claimed_with_offset(place: Place) -> None:
    twin = place.other("few").meta_data
    place.meta_data.encoding_stats = [_stats(PageType.DATA_PAGE, Encoding.RLE_DICTIONARY, 6)]
    place.meta_data.dictionary_page_offset = twin.dictionary_page_offset


@lie("encoding_stats: all of another number", DICTIONARY)
def other_counts(place: Place) -> None:
    for stats in place.meta_data.encoding_stats or []:
        stats.count += 1


@lie("encodings: none", ALL, seen=False)
def no_encodings(place: Place) -> None:
    place.meta_data.encodings = []


# Headers of pages.


def _dictionary(pages: list[EditedPage]) -> EditedPage:
    if not pages[0].is_dictionary:
        raise Inapplicable
    return pages[0]


@lies(
    "DictionaryPageHeader.num_values",
    {
        "one less": lambda n: n - 1,
        "half": lambda n: n // 2,
        "one": lambda _: 1,
        "none": lambda _: 0,
        "one more": lambda n: n + 1,
        "negative": lambda _: -1,
        "huge": lambda _: 2**31 - 1,
    },
    DICTIONARY,
)
def dictionary_entries(place: Place, of: Callable[[int], int]) -> None:
    with place.pages() as pages:
        header = _dictionary(pages).header.dictionary_page_header
        assert header is not None
        header.num_values = of(header.num_values)


@lies("DictionaryPageHeader.encoding", {"DELTA_BYTE_ARRAY": 7, "RLE": 3, "unknown": 77}, DICTIONARY)
def dictionary_encoding(place: Place, encoding: int) -> None:
    with place.pages() as pages:
        header = _dictionary(pages).header.dictionary_page_header
        assert header is not None
        raw(header, 2, TType.I32, encoding)


@lie("the dictionary page of another column", ("mixed", "word"), seen=False, is_lost=True)
def other_dictionary(place: Place) -> None:
    with (
        place.pages() as pages,
        place.other("word" if place.column == "mixed" else "mixed").pages() as other,
    ):
        _dictionary(pages)
        pages[0] = _dictionary(other)


@lie("the dictionary page twice", DICTIONARY)
def dictionary_twice(place: Place) -> None:
    with place.pages() as pages:
        pages.insert(1, _dictionary(pages))


def _data(pages: list[EditedPage], ordinal: int) -> Any:
    page = [page for page in pages if not page.is_dictionary][ordinal]
    return page.header.data_page_header or page.header.data_page_header_v2


@lies(
    "DataPageHeader.num_values",
    {"one less": -1, "one more": 1, "none": -20, "negative": -21, "many more": 1000},
    ALL,
    may_be_overlooked=True,
)
def page_values(place: Place, by: int) -> None:
    with place.pages() as pages:
        header = _data(pages, 1)
        # The count of a list's page is another one.
        header.num_values = max(header.num_values + by, -1) if by >= -20 else -1
    place.meta_data.num_values = place.meta_data.num_values


@lies("DataPageHeader.num_values of two pages", {"one": 1, "all": 20}, ALL)
def page_values_moved(place: Place, by: int) -> None:
    with place.pages() as pages:
        _data(pages, 1).num_values -= min(by, _data(pages, 1).num_values)
        _data(pages, 2).num_values += by


@lies("DataPageHeader.encoding", {"PLAIN": 0, "RLE_DICTIONARY": 8, "RLE": 3, "unknown": 77}, FLAT)
def page_encoding(place: Place, encoding: int) -> None:
    with place.pages() as pages:
        header = _data(pages, 1)
        field = 4 if hasattr(header, "num_rows") else 2
        if header.tree.fields[field][1] == encoding:
            raise Inapplicable
        raw(header, field, TType.I32, encoding)


@lies("PageHeader.type", {"INDEX_PAGE": 1, "DICTIONARY_PAGE": 2, "unknown": 9}, ALL)
def page_type(place: Place, kind: int) -> None:
    with place.pages() as pages:
        data = [page for page in pages if not page.is_dictionary]
        raw(data[1].header, 1, TType.I32, kind)


@lie("a data page is left out", ALL, is_lost=True)
def page_gone(place: Place) -> None:
    with place.pages() as pages:
        del pages[-2]


@lie("a data page stands twice", ALL)
def page_again(place: Place) -> None:
    with place.pages() as pages:
        pages.append(pages[-1])


@lies(
    "PageHeader.uncompressed_page_size", {"less": -1, "more": 1, "none": -(10**9)}, ALL, seen=False
)
def uncompressed(place: Place, by: int) -> None:
    with place.pages() as pages:
        header = [page for page in pages if not page.is_dictionary][1].header
        header.uncompressed_page_size = max(header.uncompressed_page_size + by, 0)


@lies("PageHeader.compressed_page_size", {"less": -1, "more": 1, "negative": -(10**9)}, ALL)
def compressed(place: Place, by: int) -> None:
    if place.chunk.cipher is not None:
        raise Inapplicable
    with place.pages() as pages:
        header = [page for page in pages if not page.is_dictionary][1].header
        header.compressed_page_size = max(header.compressed_page_size + by, -1)


@lies("DataPageHeaderV2.num_nulls", {"none": 0, "all": 20, "negative": -1, "above": 1000}, ALL)
def v2_nulls(place: Place, count: int) -> None:
    with place.pages() as pages:
        header = pages[-2].header.data_page_header_v2
        if header is None or header.num_nulls == count:
            raise Inapplicable
        header.num_nulls = count


@lies("DataPageHeaderV2.num_rows", {"none": 0, "one more": 21, "negative": -1}, ALL)
def v2_rows(place: Place, count: int) -> None:
    with place.pages() as pages:
        header = pages[-2].header.data_page_header_v2
        if header is None:
            raise Inapplicable
        header.num_rows = count


@lies(
    "DataPageHeaderV2.definition_levels_byte_length",
    {"none": 0, "one more": 1, "huge": 2**30},
    ALL,
    seen=False,
)
def v2_levels(place: Place, by: int) -> None:
    with place.pages() as pages:
        header = pages[-2].header.data_page_header_v2
        if header is None or (by == 0 and header.definition_levels_byte_length == 0):
            raise Inapplicable
        header.definition_levels_byte_length = (header.definition_levels_byte_length + by) * (
            by > 0
        )


@lie("DataPageHeaderV2.is_compressed: not", ALL)
def v2_compressed(place: Place) -> None:
    with place.pages() as pages:
        header = pages[-2].header.data_page_header_v2
        if header is None:
            raise Inapplicable
        header.is_compressed = not (header.is_compressed is not False)


# The chunk's own metadata.


@lies(
    "ColumnMetaData.num_values",
    {
        "one less": lambda n: n - 1,
        "one more": lambda n: n + 1,
        "half": lambda n: n // 2,
        "none": lambda _: 0,
        "negative": lambda _: -1,
        "huge": lambda _: 2**60,
        "the first page's": lambda _: 20,
    },
    ALL,
)
def num_values(place: Place, of: Callable[[int], int]) -> None:
    place.meta_data.num_values = of(place.meta_data.num_values)


@lies(
    "ColumnMetaData.total_compressed_size",
    {
        "one less": lambda n: n - 1,
        "one more": lambda n: n + 1,
        "half": lambda n: n // 2,
        "nought": lambda _: 0,
        "negative": lambda _: -1,
        "huge": lambda _: 2**60,
    },
    ALL,
)
def chunk_size(place: Place, of: Callable[[int], int]) -> None:
    place.meta_data.total_compressed_size = of(place.meta_data.total_compressed_size)


@lies(
    "ColumnMetaData.total_uncompressed_size",
    {"nought": 0, "negative": -1, "huge": 2**60},
    ALL,
    seen=False,
)
def uncompressed_size(place: Place, size: int) -> None:
    place.meta_data.total_uncompressed_size = size


@lies("ColumnMetaData.data_page_offset", {"negative": -1, "nought": 0, "beyond": 2**40}, ALL)
def data_page_offset(place: Place, offset: int) -> None:
    place.meta_data.data_page_offset = offset


@lie("ColumnMetaData.data_page_offset: the second page", ALL, may_be_overlooked=True)
def second_page(place: Place) -> None:
    with place.offset_index() as offsets:
        place.meta_data.data_page_offset = offsets.page_locations[1].offset


@lie("ColumnMetaData.data_page_offset: the dictionary's", DICTIONARY, seen=False)
def data_at_dictionary(place: Place) -> None:
    place.meta_data.data_page_offset = place.meta_data.dictionary_page_offset or 0


@lies("ColumnMetaData.dictionary_page_offset", {"none": None, "nought": 0}, DICTIONARY, seen=False)
def no_dictionary_offset(place: Place, offset: int | None) -> None:
    """As some writers have it: the dictionary stands at the offset of the data."""
    if place.meta_data.dictionary_page_offset is None:
        raise Inapplicable
    place.meta_data.data_page_offset = place.meta_data.dictionary_page_offset
    if offset is None:
        del place.meta_data.dictionary_page_offset
    else:
        place.meta_data.dictionary_page_offset = offset


@lies("ColumnMetaData.dictionary_page_offset", {"negative": -1, "beyond": 2**40}, DICTIONARY)
def dictionary_offset(place: Place, offset: int) -> None:
    place.meta_data.dictionary_page_offset = offset


@lie("ColumnMetaData.dictionary_page_offset: is missing", DICTIONARY)
def dictionary_offset_missing(place: Place) -> None:
    del place.meta_data.dictionary_page_offset


@lie("ColumnMetaData.dictionary_page_offset: another column's", ("mixed", "word"))
def dictionary_of_other(place: Place) -> None:
    other = place.other("word" if place.column == "mixed" else "mixed").meta_data
    place.meta_data.dictionary_page_offset = other.dictionary_page_offset


@lie("total_compressed_size: leaves out the dictionary's header", DICTIONARY, seen=False)
def without_dictionary_header(place: Place) -> None:
    with place.pages() as pages:
        length = len(_dictionary(pages).header.encode())
    place.meta_data.total_compressed_size -= length


@lies(
    "ColumnMetaData.codec", {"UNCOMPRESSED": 0, "GZIP": 2, "LZO": 3, "unknown": 44}, ALL, seen=False
)
def codec(place: Place, number: int) -> None:
    raw(place.meta_data, 4, TType.I32, number)


@lie("ColumnMetaData.type: another", ALL)
def physical_type(place: Place) -> None:
    place.meta_data.type = Type.INT32 if place.meta_data.type is not Type.INT32 else Type.DOUBLE


@lie("ColumnMetaData.path_in_schema: another column's", ALL)
def path_in_schema(place: Place) -> None:
    place.meta_data.path_in_schema = ["other"]


# The row group and the file.


@lies(
    "RowGroup.num_rows",
    {
        "one less": lambda n: n - 1,
        "one more": lambda n: n + 1,
        "none": lambda _: 0,
        "negative": lambda _: -1,
        "half": lambda n: n // 2,
        "huge": lambda _: 2**50,
    },
    ("number", "items"),
)
def num_rows(place: Place, of: Callable[[int], int]) -> None:
    place.row_group.num_rows = of(place.row_group.num_rows)


@lies(
    "RowGroup.total_byte_size",
    {"nought": 0, "negative": -1, "huge": 2**60},
    ("number",),
    seen=False,
)
def total_byte_size(place: Place, size: int) -> None:
    place.row_group.total_byte_size = size


@lies("RowGroup.file_offset", {"negative": -1, "beyond": 2**40}, ("number",))
def file_offset(place: Place, offset: int) -> None:
    place.row_group.file_offset = offset


@lies(
    "RowGroup.sorting_columns",
    {"descending": True, "unordered column": False},
    ("number",),
    seen=False,
)
def sorting_columns(place: Place, descending: bool) -> None:
    from testing.thrift import trees

    column = trees.Struct(
        {
            1: (TType.I32, 0 if descending else 3),
            2: (TType.BOOL, descending),
            3: (TType.BOOL, False),
        }
    )
    raw(place.row_group, 4, TType.LIST, trees.Sequence(TType.STRUCT, [column]))


@lies("FileMetaData.num_rows", {"none": 0, "negative": -1, "one more": 241}, ("number",))
def file_rows(place: Place, rows: int) -> None:
    place.file.num_rows = rows


# The Bloom filter's place.


@lies(
    "ColumnMetaData.bloom_filter_offset",
    {"negative": -1, "beyond": 2**40, "inside the data": 60},
    ("number", "word", "few"),
)
def bloom_filter_offset(place: Place, offset: int) -> None:
    if place.meta_data.bloom_filter_offset is None:
        raise Inapplicable
    place.meta_data.bloom_filter_offset = offset


@lies(
    "ColumnMetaData.bloom_filter_length",
    {"nought": 0, "negative": -1, "short": 20, "long": 4096, "huge": 2**31 - 1},
    ("number", "word", "few"),
)
def bloom_filter_length(place: Place, length: int) -> None:
    if place.meta_data.bloom_filter_offset is None:
        raise Inapplicable
    place.meta_data.bloom_filter_length = length


@lies(
    "RowGroup.num_rows and ColumnMetaData.num_values",
    {"one less": lambda n: n - 1, "half": lambda n: n // 2, "none": lambda _: 0},
    ("number", "word", "items"),
)
def rows_and_values(place: Place, of: Callable[[int], int]) -> None:
    rows = of(place.row_group.num_rows)
    place.row_group.num_rows = rows
    for name in FLAT:
        place.other(name).meta_data.num_values = rows
