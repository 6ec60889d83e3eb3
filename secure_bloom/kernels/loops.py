"""The loops of building a filter, compiled where that pays.

To load compiled code takes as long as all else that is done to a small file, or longer.  Each
function here adds up what it would have saved, and calls the loop of ``uncompiled`` until then.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

import numpy as np
from numpy.typing import NDArray

from secure_bloom.kernels import extension, uncompiled
from secure_bloom.kernels.loading import building_code
from secure_bloom.kernels.uncompiled import DAMAGED, Blocks, Bytes, Hashes

if TYPE_CHECKING:
    from types import ModuleType

    from secure_bloom.kernels.machine_code import CompiledLoops

__all__ = [
    "DAMAGED",
    "byte_array_offsets",
    "check_hashes",
    "count_level",
    "expect_values",
    "hash_rows",
    "hash_spans",
    "insert_hashes",
]

# Seconds that compiled code saves, measured; for levels at the worst, a run in every two bytes.
_A_NUMBER: Final = 1e-8
_A_SPAN: Final = 1.2e-7
_AN_OFFSET: Final = 8e-8
_A_HASH: Final = 2e-8
#: A filter that the nearest cache does not hold: most hashes of a page set a block of their own.
_A_HASH_OF_A_LARGE_FILTER: Final = 5e-8
_LARGE_FILTER: Final = 32 * 1024
#: Values of one length are done by numpy, a table at a time.
_A_SPAN_OF_ONE_LENGTH: Final = 3e-8
_AN_OFFSET_OF_ONE_LENGTH: Final = 5e-9
_A_BYTE_OF_LEVELS: Final = 5e-7
_WIDTH_OF_NUMBERS: Final = 8


def expect_values(numbers: int, byte_arrays: int) -> None:
    """Count on so many values to come.

    Nothing else is known yet: filters are taken for large, byte arrays for values of one length.
    """
    saved_by_array = _AN_OFFSET_OF_ONE_LENGTH + _A_SPAN_OF_ONE_LENGTH
    saved = numbers * _A_NUMBER + byte_arrays * saved_by_array
    building_code.expect(saved + (numbers + byte_arrays) * _A_HASH_OF_A_LARGE_FILTER)


def hash_rows(rows: Bytes, hashes: Hashes) -> None:
    """Hash the rows of ``rows``, which is (n, width)."""
    if extension.native is not None:
        extension.native.hash_rows(np.ascontiguousarray(rows), rows.shape[1], hashes)
        return
    cost = _A_NUMBER if rows.shape[1] == _WIDTH_OF_NUMBERS else _A_SPAN_OF_ONE_LENGTH
    _loops(cost * len(rows)).hash_rows(rows, hashes)


def hash_spans(offsets: NDArray[Any], prefix: int, data: Bytes, hashes: Hashes) -> None:
    """Hash ``data[offsets[i] + prefix:offsets[i + 1]]`` into ``hashes[i]``; checked before."""
    # A guess: whether all have the length of the first takes a look at every one.
    guess = len(hashes) > 0 and (offsets[1] - offsets[0]) * len(hashes) == offsets[-1] - offsets[0]
    cost = _A_SPAN_OF_ONE_LENGTH if guess else _A_SPAN
    _loops(cost * len(hashes)).hash_spans(offsets, prefix, data, hashes)


def insert_hashes(blocks: Blocks, hashes: Hashes) -> None:
    """Insert every hash; ``blocks`` is (z, 8) in C order, z >= 1."""
    if extension.native is not None:
        extension.native.insert_hashes(blocks, hashes)
        return
    cost = _A_HASH if blocks.nbytes <= _LARGE_FILTER else _A_HASH_OF_A_LARGE_FILTER
    _loops(cost * len(hashes)).insert_hashes(blocks, hashes)


def check_hashes(blocks: Blocks, hashes: Hashes, found: NDArray[np.bool_]) -> None:
    """Set ``found[i]`` to whether ``hashes[i]`` may have been inserted."""
    if extension.native is not None:
        extension.native.check_hashes(blocks, hashes, found)
        return
    _loops(_A_HASH * len(hashes)).check_hashes(blocks, hashes, found)


def byte_array_offsets(data: Bytes, offsets: NDArray[np.int64]) -> int:
    """Enter the offset of each of ``len(offsets) - 1`` BYTE_ARRAYs, and the end of the last.

    An offset is that of the length before the bytes.  Returns the end, or ``DAMAGED`` if they do
    not all fit ``data``.
    """
    step, rest = divmod(len(data), max(1, len(offsets) - 1))
    guess = rest == 0 and int.from_bytes(data[:4].tobytes(), "little") + 4 == step
    cost = _AN_OFFSET_OF_ONE_LENGTH if guess else _AN_OFFSET
    return _loops(cost * len(offsets)).byte_array_offsets(data, offsets)


def count_level(data: Bytes, bit_width: int, wanted: int, values: int) -> int:
    """How many of the first ``values`` levels in ``data`` are ``wanted``; ``DAMAGED`` if too few.

    ``data`` is runs of the hybrid encoding, ``1 <= bit_width <= 8``.
    """
    return _loops(_A_BYTE_OF_LEVELS * len(data)).count_level(data, bit_width, wanted, values)


def _loops(saved: float) -> CompiledLoops | ModuleType:
    """Those to use: compiled ones, which save so many seconds here, or those of numpy."""
    if not building_code.is_worth(saved):
        return uncompiled
    from secure_bloom.kernels.machine_code import compiled_loops

    return compiled_loops
