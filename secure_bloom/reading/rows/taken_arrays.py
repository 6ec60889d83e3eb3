"""Make Arrow arrays of the values that were taken out of pages, as pyarrow would decode them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from secure_bloom.parquet.members import members_of
from secure_bloom.parquet.page_values import Taken
from secure_bloom.parquet.schema import Leaf
from secure_bloom.parquet.structures.metadata import Type
from secure_bloom.parquet.value_arrays import Binary

Mask = NDArray[np.bool_]

#: Nanoseconds of a unit -> its name in Arrow.
_UNITS = {1: "ns", 1_000: "us", 1_000_000: "ms"}
#: Arrow type -> the physical type whose bytes it has.
_SAME_BYTES = {
    pa.int32(): Type.INT32,
    pa.uint32(): Type.INT32,
    pa.date32(): Type.INT32,
    pa.int64(): Type.INT64,
    pa.uint64(): Type.INT64,
    pa.float32(): Type.FLOAT,
    pa.float64(): Type.DOUBLE,
    pa.float16(): Type.FIXED_LEN_BYTE_ARRAY,
}
#: Arrow type -> numpy's; the stored numbers of 32 bits are cut to it.
_NARROW: dict[pa.DataType, Any] = {
    pa.int8(): np.int8,
    pa.int16(): np.int16,
    pa.uint8(): np.uint8,
    pa.uint16(): np.uint16,
}
#: Arrow type -> the type of its offsets.
_OFFSETS: dict[pa.DataType, Any] = {
    pa.string(): np.int32,
    pa.binary(): np.int32,
    pa.large_string(): np.int64,
    pa.large_binary(): np.int64,
}
#: Makes an array of a leaf's values that have been taken.
ArrayMaker = Callable[[Taken], pa.Array]


def array_maker(leaf: Leaf, type_: pa.DataType) -> ArrayMaker | None:
    """Return a function that makes arrays of ``type_``, the leaf's type in Arrow.

    Return None for a type that is left to pyarrow.
    """
    physical = leaf.type
    if type_ in _OFFSETS:
        return _texts(type_, _OFFSETS[type_]) if physical is Type.BYTE_ARRAY else None
    if type_ in _NARROW:
        return _narrow(type_, _NARROW[type_]) if physical is Type.INT32 else None
    if pa.types.is_boolean(type_):
        return _booleans if physical is Type.BOOLEAN else None
    if pa.types.is_decimal128(type_):
        return _decimals(type_) if physical in _DECIMALS and (leaf.width or 0) <= 16 else None
    return _same_bytes(type_) if _has_same_bytes(leaf, type_) else None


def _has_same_bytes(leaf: Leaf, type_: pa.DataType) -> bool:
    if (physical := _SAME_BYTES.get(type_)) is not None:
        return leaf.type is physical
    if pa.types.is_timestamp(type_) or pa.types.is_time64(type_):
        return leaf.type is Type.INT64 and _UNITS.get(leaf.logical.unit) == type_.unit
    if pa.types.is_time32(type_):
        return leaf.type is Type.INT32 and _UNITS.get(leaf.logical.unit) == type_.unit
    is_fixed = pa.types.is_fixed_size_binary(type_) and not isinstance(type_, pa.BaseExtensionType)
    is_bytes = is_fixed and leaf.type is Type.FIXED_LEN_BYTE_ARRAY
    return is_bytes and type_.byte_width == leaf.width


def _same_bytes(type_: pa.DataType) -> ArrayMaker:
    return lambda taken: _array(type_, taken, _spread(taken))


def _narrow(type_: pa.DataType, dtype: Any) -> ArrayMaker:
    return lambda taken: _array(type_, taken, _spread(taken).astype(dtype, casting="unsafe"))


def _booleans(taken: Taken) -> pa.Array:
    return _array(pa.bool_(), taken, np.packbits(_spread(taken), bitorder="little"))


def _texts(type_: pa.DataType, dtype: Any) -> ArrayMaker:
    def made(taken: Taken) -> pa.Array:
        texts = taken.entries
        if not isinstance(texts, Binary):
            raise TypeError("values of a BYTE_ARRAY have offsets")
        offsets = texts.offsets
        if taken.is_valid is not None:
            # A null ends where the value before it does.
            offsets = offsets[np.concatenate([[0], np.cumsum(taken.is_valid)])]
        return _array(type_, taken, offsets.astype(dtype), texts.data)

    return made


#: Physical types of decimals that have one width.
_DECIMALS = (Type.INT32, Type.INT64, Type.FIXED_LEN_BYTE_ARRAY)


def _decimals(type_: pa.DataType) -> ArrayMaker:
    def made(taken: Taken) -> pa.Array:
        numbers = _spread(taken)
        if numbers.dtype.kind == "V":
            # Big-endian, with as many bytes as the digits need.
            width = numbers.dtype.itemsize
            stored = np.frombuffer(numbers.tobytes(), np.uint8).reshape(-1, width)[:, ::-1]
            wide = np.where(stored[:, -1:] >= 128, np.uint8(255), np.uint8(0))
            sixteen = np.repeat(wide, 16, axis=1)
            sixteen[:, :width] = stored
            return _array(type_, taken, np.ascontiguousarray(sixteen))
        low = numbers.astype(np.int64)
        return _array(type_, taken, np.column_stack([low, low >> 63]))

    return made


def _spread(taken: Taken) -> NDArray[Any]:
    """Return the values of one width, with a zero for each null."""
    entries = taken.entries
    if isinstance(entries, Binary):
        raise TypeError("values of one width have no offsets")
    if taken.is_valid is None:
        return entries
    spread = np.zeros(len(taken.is_valid), entries.dtype)
    spread[taken.is_valid] = entries
    return spread


def _array(type_: pa.DataType, taken: Taken, *buffers: NDArray[Any]) -> pa.Array:
    count = len(taken.entries) if taken.is_valid is None else len(taken.is_valid)
    validity = None
    if taken.is_valid is not None and not taken.is_valid.all():
        validity = pa.py_buffer(np.packbits(taken.is_valid, bitorder="little"))
    return pa.Array.from_buffers(type_, count, [validity, *map(pa.py_buffer, buffers)])


def united(column: pa.Field, parts: Sequence[pa.Array]) -> pa.Array | None:
    """Return a column of the parts that pyarrow decoded, each of which has one leaf of it.

    Return None if parts differ in the lists and nulls that they share, and for unusual types.
    """
    of = column.type
    if not parts or len(members_of(column)) != len(parts):
        return None
    whole = parts[0]
    if len(parts) == 1:
        return whole if whole.type == of else None
    if pa.types.is_struct(of):
        if not all(pa.types.is_struct(part.type) for part in parts):
            return None
        offsets, shared, left = [], [part.is_valid() for part in parts], list(parts)
        children = list[pa.Array | None]()
        for field in of:
            count = len(members_of(field))
            children.append(united(field, [part.field(0) for part in left[:count]]))
            del left[:count]
    elif pa.types.is_list(of) or pa.types.is_large_list(of) or pa.types.is_map(of):
        # pyarrow decodes one leaf of a map as a list.
        if not all(pa.types.is_list(it.type) or pa.types.is_large_list(it.type) for it in parts):
            return None
        shared = [part.value_lengths() for part in parts]
        ends = np.cumsum(shared[0].fill_null(0).to_numpy(zero_copy_only=False))
        dtype = np.int64 if pa.types.is_large_list(of) else np.int32
        offsets = [pa.py_buffer(np.concatenate([[0], ends]).astype(dtype))]
        children = [united(of.field(0), [part.flatten() for part in parts])]
    else:
        return None
    if any(child is None for child in children) or not all(it.equals(shared[0]) for it in shared):
        return None
    validity = whole.is_valid().buffers()[1] if whole.null_count else None
    return pa.Array.from_buffers(of, len(whole), [validity, *offsets], children=children)
