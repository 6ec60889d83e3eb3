"""Partition columns: give the values in folders' names the types that Spark gives them.

    table/day=2024-03-01/part-0.parquet    a DATE

The type is the first of INT, BIGINT, DOUBLE and DATE that fits every value, else STRING.  Spark's
own reader also has DECIMAL, TIME and TIMESTAMP. TIMESTAMP is in the session's time zone, which a
Python data source does not know.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from datetime import date

import pyarrow as pa

from secure_bloom.errors import FormatError

_INTEGER = re.compile(r"[+-]?[0-9]{1,19}")
#: Java's spelling of a double, of NaN and of the infinities.
_FRACTION = re.compile(r"[+-]?([0-9]*\.[0-9]+([eE][+-]?[0-9]+)?|NaN|Infinity)")
_DATE = re.compile(r"[0-9]{4}-[0-9]{2}-[0-9]{2}")


def folder_type(texts: Iterable[str | None]) -> pa.DataType:
    """Return the type of a column with these values. None is null."""
    present = {text for text in texts if text is not None}
    for accepts, found in _TYPES:
        if present and all(map(accepts, present)):
            return found
    return pa.string()


def folder_values(name: str, texts: Iterable[str | None], wanted: pa.DataType) -> pa.Array:
    """Return the values of partition column ``name``.

    Raises FormatError for a text that is not of its type.
    """
    if pa.types.is_integer(wanted) or pa.types.is_floating(wanted):
        # pyarrow takes no other sign.
        texts = [None if text is None else text.removeprefix("+") for text in texts]
    try:
        return pa.array(texts, pa.string()).cast(wanted)
    except pa.ArrowException:
        raise FormatError(
            f"the name of a folder is not a {wanted}, the type of the partition column",
            hint="if the folder is new, load the table again; else give a schema with the column "
            "as STRING, and CAST it",
            column=name,
        ) from None


def _is_integer(bits: int) -> Callable[[str], bool]:
    limit = 1 << (bits - 1)
    return lambda text: bool(_INTEGER.fullmatch(text)) and -limit <= int(text) < limit


def _is_double(text: str) -> bool:
    return bool(_FRACTION.fullmatch(text)) or _is_integer(64)(text)


def _is_date(text: str) -> bool:
    if not _DATE.fullmatch(text):
        return False
    try:
        date.fromisoformat(text)
    except ValueError:
        return False
    return True


_TYPES: list[tuple[Callable[[str], bool], pa.DataType]] = [
    (_is_integer(32), pa.int32()),
    (_is_integer(64), pa.int64()),
    (_is_double, pa.float64()),
    (_is_date, pa.date32()),
]
