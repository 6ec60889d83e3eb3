"""Turn a column's physical values into an Arrow array of what they mean. LogicalTypes.md."""

from __future__ import annotations

from collections.abc import Callable
from decimal import Decimal
from typing import Any, Final

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from secure_bloom.parquet.logical_types import JULIAN_EPOCH, Kind, Logical
from secure_bloom.parquet.schema import Leaf
from secure_bloom.parquet.value_arrays import Binary, Entries

_UNITS: Final = {1_000_000: "ms", 1_000: "us", 1: "ns"}
_MICROS_A_DAY: Final = 86_400_000_000
_MOST_DIGITS: Final = 38


def logical_array(leaf: Leaf, entries: Entries) -> pa.Array:
    """Return physical values of ``leaf`` as an Arrow array.

    Texts and bytes come as large_binary. The nanoseconds of an INT96 are cut off.
    """
    logical = leaf.logical
    if isinstance(entries, Binary):
        array = _binary(entries)
        return _decimals(array, logical.scale) if logical.kind is Kind.DECIMAL else array
    if entries.dtype.kind == "V":
        return _fixed(entries, logical)
    return _NUMBERS.get(logical.kind, _plain)(entries, logical)


def _binary(entries: Binary) -> pa.Array:
    offsets = np.asarray(entries.offsets, np.int64)
    data = entries.data[offsets[0] : offsets[-1]]
    offsets = offsets - offsets[0]
    if entries.prefix:
        # Values of PLAIN pages follow their lengths.
        kept = np.ones(len(data), np.bool_)
        for byte in range(entries.prefix):
            kept[offsets[:-1] + byte] = False
        data = data[kept]
        offsets = offsets - entries.prefix * np.arange(len(offsets))
    buffers = [None, pa.py_buffer(offsets), pa.py_buffer(np.ascontiguousarray(data))]
    return pa.Array.from_buffers(pa.large_binary(), len(offsets) - 1, buffers)


def _fixed(entries: NDArray[Any], logical: Logical) -> pa.Array:
    content = np.ascontiguousarray(entries)
    if logical.kind is Kind.INT96:
        words = content.view("<u4").reshape(-1, 3).astype(np.int64)
        nanoseconds = words[:, 0] + (words[:, 1] << 32)
        days = words[:, 2] - JULIAN_EPOCH
        return pa.array(days * _MICROS_A_DAY + nanoseconds // 1_000).cast(pa.timestamp("us"))
    kind = pa.binary(entries.dtype.itemsize)
    array = pa.Array.from_buffers(kind, len(entries), [None, pa.py_buffer(content)])
    return _decimals(array, logical.scale) if logical.kind is Kind.DECIMAL else array


def _decimals(array: pa.Array, scale: int) -> pa.Array:
    """Return the distinct numbers of a big-endian array as decimals."""
    numbers = [int.from_bytes(it, "big", signed=True) for it in array.unique().to_pylist()]
    fitting = [it for it in numbers if abs(it) < 10**_MOST_DIGITS]
    values = [Decimal(it).scaleb(-scale) for it in fitting]
    return pa.array(values, pa.decimal128(_MOST_DIGITS, scale)) if scale <= _MOST_DIGITS else array


def _number_decimals(entries: NDArray[Any], logical: Logical) -> pa.Array:
    low = entries.astype(np.int64)
    # The upper half of 128 bits repeats the sign.
    whole = np.stack([low, low >> 63], axis=1)
    kind = pa.decimal128(_MOST_DIGITS, min(logical.scale, _MOST_DIGITS))
    return pa.Array.from_buffers(kind, len(entries), [None, pa.py_buffer(whole)])


def _dates(entries: NDArray[Any], _: Logical) -> pa.Array:
    return pa.array(entries.astype(np.int32)).cast(pa.date32())


def _timestamps(entries: NDArray[Any], logical: Logical) -> pa.Array:
    return pa.array(entries.astype(np.int64)).cast(pa.timestamp(_UNITS[logical.unit]))


def _integers(entries: NDArray[Any], logical: Logical) -> pa.Array:
    signed = "i" if logical.signed else "u"
    return pa.array(np.ascontiguousarray(entries).view(f"{signed}{entries.dtype.itemsize}"))


def _plain(entries: NDArray[Any], _: Logical) -> pa.Array:
    is_half = entries.dtype.itemsize == 2
    return pa.array(entries.astype(np.float32) if is_half else np.ascontiguousarray(entries))


_NUMBERS: Final[dict[Kind, Callable[[NDArray[Any], Logical], pa.Array]]] = {
    Kind.DECIMAL: _number_decimals,
    Kind.DATE: _dates,
    Kind.TIMESTAMP: _timestamps,
    Kind.INTEGER: _integers,
}
