"""Files whose bounds are in one of the newer column orders, as a writer of that order has them.

pyarrow writes the pages; bounds, counts and page indexes are computed here from the stored bytes,
by the rules of parquet.thrift (ColumnOrder, Statistics, ColumnIndex).
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from testing.surgery import Opened, edit_footer
from testing.thrift.metadata import ColumnIndex, ColumnOrder, Statistics
from testing.thrift.views import Empty

#: Rows of a page, pages of a row group.
PAGE, PAGES = 2, 3
GROUP = PAGE * PAGES
#: A stored value; None for a null.
Stored = bytes | None


@dataclass(frozen=True, kw_only=True)
class Order:
    """A column order: ``rank`` sorts stored values as it does; ``is_nan`` names those apart."""

    name: str
    rank: Callable[[bytes], Any]
    is_nan: Callable[[bytes], bool] = lambda _stored: False

    def bounds(self, stored: Sequence[Stored]) -> tuple[bytes, bytes] | None:
        """The least and greatest that are no NaN; of NaNs alone the least and greatest NaN."""
        some = [value for value in stored if value is not None]
        found = [value for value in some if not self.is_nan(value)] or some
        return (min(found, key=self.rank), max(found, key=self.rank)) if found else None

    def nans(self, stored: Sequence[Stored]) -> int:
        return sum(value is not None and self.is_nan(value) for value in stored)


def _total_rank(width: int) -> Callable[[bytes], int]:
    """The bits of a float as a number that grows in totalOrder (IEEE 754-2008, 5.10)."""
    sign = 1 << (8 * width - 1)

    def rank(stored: bytes) -> int:
        bits = int.from_bytes(stored, "little")
        return sign - 1 - (bits & ~sign) if bits & sign else sign + bits

    return rank


def _is_nan(form: str) -> Callable[[bytes], bool]:
    def is_nan(stored: bytes) -> bool:
        (value,) = struct.unpack(form, stored)
        return bool(value != value)

    return is_nan


def _int96_rank(stored: bytes) -> tuple[int, int]:
    nanos, day = struct.unpack("<qi", stored)
    return day, nanos


TOTAL = {
    form: Order(
        name="IEEE_754_TOTAL_ORDER", rank=_total_rank(struct.calcsize(form)), is_nan=_is_nan(form)
    )
    for form in ("<e", "<f", "<d")
}
INT96 = Order(name="INT96_TIMESTAMP_ORDER", rank=_int96_rank)


def write_ordered(
    path: Path,
    column: pa.Array,
    stored: Sequence[Stored],
    order: Order,
    *,
    with_nan_counts: bool,
    **options: Any,
) -> Path:
    """Write ``column``, whose values are stored as ``stored``, with bounds in ``order``."""
    pq.write_table(
        pa.table({"x": column}),
        path,
        row_group_size=GROUP,
        use_dictionary=False,
        write_page_index=True,
        write_batch_size=PAGE,
        data_page_size=1,
        **options,
    )

    def change(it: Opened) -> bytes:
        it.footer.metadata.column_orders = [ColumnOrder.of(**{order.name: Empty()})]
        more = b""
        for number in range(len(it.footer.row_groups)):
            chunk = it.chunk(number, "x")
            rows = stored[number * GROUP : (number + 1) * GROUP]
            chunk.meta_data.statistics = _statistics(rows, order, with_nan_counts)
            index = _index(rows, order, with_nan_counts).encode()
            chunk.column_chunk.column_index_offset = it.footer.tail.offset + len(more)
            chunk.column_chunk.column_index_length = len(index)
            more += index
        return more

    edit_footer(path, change)
    return path


def _statistics(rows: Sequence[Stored], order: Order, with_nan_counts: bool) -> Statistics:
    bounds = order.bounds(rows)
    fields: dict[str, Any] = {"null_count": rows.count(None)}
    if bounds is not None:
        fields |= {"min_value": bounds[0], "max_value": bounds[1]}
    if with_nan_counts:
        fields["nan_count"] = order.nans(rows)
    return Statistics.of(**fields)


def _index(rows: Sequence[Stored], order: Order, with_nan_counts: bool) -> ColumnIndex:
    pages = [rows[start : start + PAGE] for start in range(0, len(rows), PAGE)]
    bounds = [order.bounds(page) for page in pages]
    fields: dict[str, Any] = {
        "null_pages": [bound is None for bound in bounds],
        "min_values": [b"" if bound is None else bound[0] for bound in bounds],
        "max_values": [b"" if bound is None else bound[1] for bound in bounds],
        "boundary_order": 0,
        "null_counts": [page.count(None) for page in pages],
    }
    if with_nan_counts:
        fields["nan_counts"] = [order.nans(page) for page in pages]
    return ColumnIndex.of(**fields)
