"""The loops that build filters, as functions of C: what :mod:`.machine_code` calls.

An array is the address of its first element, and how many elements it has.  Nothing is checked.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Final, TypeAlias

import numpy as np
from numba import carray, cfunc, types

from secure_bloom.kernels import plain, sbbf, xxh64

#: What an array is inside of an entry point.
_Pointer: TypeAlias = Any
#: A function, and the signature that it is compiled for.
_Typed: TypeAlias = tuple[Any, Callable[..., Any]]

_INT: Final = types.int64
_BYTES: Final = types.CPointer(types.uint8)
_HASHES: Final = types.CPointer(types.uint64)
_WORDS: Final = types.CPointer(types.uint32)
U64 = np.uint64


def entry_point(name: str) -> Any:
    """The function compiled: its address, its native name and its LLVM instructions.

    ``name`` is one of :data:`.machine_code.PROTOTYPES`, which tells the arguments once more.
    """
    signature, function = _FUNCTIONS[name]
    return cfunc(signature)(function)


def _hash_words(loop: Callable[..., None], word: Any, words: int) -> _Typed:
    """The loop over values of so many words each."""

    def entry(values: _Pointer, hashes: _Pointer, count: int) -> None:
        loop(carray(values, (count, words)), carray(hashes, (count,)))

    return types.void(types.CPointer(word), _HASHES, _INT), entry


def _hash_spans(
    offsets: _Pointer, prefix: int, data: _Pointer, size: int, hashes: _Pointer, count: int
) -> None:
    of_data, of_hashes = carray(data, (size,)), carray(hashes, (count,))
    xxh64.hash_spans(carray(offsets, (count + 1,)), prefix, of_data, of_hashes)


def _hash_rows(rows: _Pointer, width: int, hashes: _Pointer, count: int) -> None:
    data, found = carray(rows, (count * width,)), carray(hashes, (count,))
    for i in range(count):
        found[i] = xxh64.hash_span(data, U64(i * width), U64((i + 1) * width))


def _insert_hashes(blocks: _Pointer, z: int, hashes: _Pointer, count: int) -> None:
    sbbf.insert_hashes(carray(blocks, (z, 8)), carray(hashes, (count,)))


def _check_hashes(blocks: _Pointer, z: int, hashes: _Pointer, found: _Pointer, count: int) -> None:
    answers = carray(found, (count,))
    sbbf.check_hashes(carray(blocks, (z, 8)), carray(hashes, (count,)), answers)


def _byte_array_offsets(data: _Pointer, size: int, offsets: _Pointer, count: int) -> Any:
    return plain.byte_array_offsets(carray(data, (size,)), carray(offsets, (count,)))


def _count_level(data: _Pointer, size: int, bit_width: int, wanted: int, values: int) -> Any:
    return plain.count_level(carray(data, (size,)), bit_width, wanted, values)


def _spans_from(offset: Any) -> Any:
    return types.void(types.CPointer(offset), _INT, _BYTES, _INT, _HASHES, _INT)


_FUNCTIONS: Final[Mapping[str, _Typed]] = {
    "hash_4": _hash_words(xxh64.hash_4, types.uint32, 1),
    "hash_8": _hash_words(xxh64.hash_8, types.uint64, 1),
    "hash_12": _hash_words(xxh64.hash_12, types.uint32, 3),
    "hash_16": _hash_words(xxh64.hash_16, types.uint64, 2),
    "hash_rows": (types.void(_BYTES, _INT, _HASHES, _INT), _hash_rows),
    "hash_spans_int32": (_spans_from(types.int32), _hash_spans),
    "hash_spans_int64": (_spans_from(types.int64), _hash_spans),
    "insert_hashes": (types.void(_WORDS, _INT, _HASHES, _INT), _insert_hashes),
    "check_hashes": (
        types.void(_WORDS, _INT, _HASHES, types.CPointer(types.boolean), _INT),
        _check_hashes,
    ),
    "byte_array_offsets": (_INT(_BYTES, _INT, types.CPointer(_INT), _INT), _byte_array_offsets),
    "count_level": (_INT(_BYTES, _INT, _INT, _INT, _INT), _count_level),
}
