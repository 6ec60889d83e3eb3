"""Hive partition values: the names of folders give values to all rows below them.

    table/country=it/day=2024-03-01/part-0.parquet

Names and values are percent-decoded; ``__HIVE_DEFAULT_PARTITION__`` is null.  As in pyarrow, a
column is of type int32 if every value is an integer of 32 bits, else string.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from urllib.parse import unquote

import pyarrow as pa

from secure_bloom.errors import PolicyError
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
