"""Hive partition values: the names of folders give values to all rows below them.

    table/country=it/day=2024-03-01/part-0.parquet

Names and values are percent-decoded; ``__HIVE_DEFAULT_PARTITION__`` is null.  As in pyarrow, a
column is of type int32 if every value is an integer of 32 bits, else string.

For Spark, the type is the first of INT, BIGINT, DOUBLE and DATE that fits every value, else STRING.
Spark's own reader also has DECIMAL, TIME and TIMESTAMP. TIMESTAMP is in the session's time zone,
which a Python data source does not know.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from datetime import date
from urllib.parse import unquote

import pyarrow as pa

from secure_bloom.errors import FormatError, PolicyError
from secure_bloom.lakes.delta.arrow_types import partition_value
from secure_bloom.storage import below, local_path

_NULL = "__HIVE_DEFAULT_PARTITION__"
_INT32 = re.compile(r"-?[0-9]{1,10}")
_LIMIT = 2**31

Values = Mapping[str, str | None]


def partition_values(file: str, paths: Iterable[str]) -> Values:
    """Return the values of one file, from the folders below the path that led to it.

    If several paths led to it, the shortest counts.  If the file itself or a pattern was given, the
    names of all its folders count.
    """
    bases = [place for path in paths if (place := below(file, local_path(path))) is not None]
    folders = max(bases, key=len, default=file).split("/")[:-1]
    pairs = (folder.split("=", 1) for folder in folders if "=" in folder)
    values = {unquote(name): _value(value) for name, value in pairs if name}
    if not all(map(_is_text, (*values, *values.values()))):
        raise PolicyError(
            "the name of a folder is not UTF-8 text, and cannot be a value", path=file
        )
    return values


def _is_text(text: str | None) -> bool:
    # A byte of a path that is no UTF-8 is a lone surrogate (PEP 383).
    return text is None or not any("\ud800" <= char <= "\udfff" for char in text)


def _value(text: str) -> str | None:
    return None if text == _NULL else unquote(text)


def partition_fields(values: Sequence[Values]) -> list[pa.Field]:
    """Return the columns of all files' values, in the order of their first occurrence."""
    names = dict.fromkeys(name for found in values for name in found)
    return [pa.field(name, _type([v[name] for v in values if name in v])) for name in names]


def _type(texts: Iterable[str | None]) -> pa.DataType:
    present = [text for text in texts if text is not None]
    numbers = present and all(
        _INT32.fullmatch(text) and -_LIMIT <= int(text) < _LIMIT for text in present
    )
    return pa.int32() if numbers else pa.string()


def partition_scalar(field: pa.Field, values: Values) -> pa.Scalar:
    """Return the value of a partition column in one file, or null if the file has none."""
    text = values.get(field.name)
    if text is None:
        return pa.scalar(None, field.type)
    return pa.scalar(text) if pa.types.is_string(field.type) else partition_value(text, field.type)


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
