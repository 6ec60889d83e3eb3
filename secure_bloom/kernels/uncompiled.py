"""The loops of building a filter by numpy and xxhash: to load compiled ones takes half a second.

Each does what the compiled one of its name does, with the same result; ``loops`` chooses.
"""

from __future__ import annotations

import struct
from itertools import pairwise
from typing import Any, Final, TypeAlias

import numpy as np
import xxhash
from numpy.typing import NDArray

from secure_bloom.kernels.salt import SALT

U32: TypeAlias = np.uint32
U64: TypeAlias = np.uint64
Bytes: TypeAlias = NDArray[np.uint8]
Blocks: TypeAlias = NDArray[np.uint32]
Hashes: TypeAlias = NDArray[np.uint64]

DAMAGED: Final = -1
_LENGTH: Final = struct.Struct("<I")
_SALT: Final = np.array(SALT, U32)
_PRIME64_1: Final = U64(0x9E3779B185EBCA87)
_PRIME64_2: Final = U64(0xC2B2AE3D27D4EB4F)
_PRIME64_3: Final = U64(0x165667B19E3779F9)
_PRIME64_4: Final = U64(0x85EBCA77C2B2AE63)
_PRIME64_5: Final = U64(0x27D4EB2F165667C5)


def hash_rows(rows: Bytes, hashes: Hashes) -> None:
    """Hash the rows of ``rows``, which is (n, width)."""
    width = rows.shape[1]
    if width == 8:
        hashes[:] = _hash_8(rows.view("<u8")[:, 0])
        return
    every = np.arange(len(rows) + 1, dtype=np.int64) * width
    hash_spans(every, 0, rows.reshape(-1), hashes)


def hash_spans(offsets: NDArray[Any], prefix: int, data: Bytes, hashes: Hashes) -> None:
    """Hash ``data[offsets[i] + prefix:offsets[i + 1]]`` into ``hashes[i]``; checked before."""
    first = int(offsets[0])
    content, digest = data[first : int(offsets[-1])].tobytes(), xxhash.xxh64_intdigest
    bounds = pairwise((offsets - first).tolist())
    found = [digest(content[start + prefix : end]) for start, end in bounds]
    hashes[:] = np.array(found, U64)


def _hash_8(words: NDArray[np.uint64]) -> Hashes:
    """XXH64 of values of eight bytes: their one lane (step 5), and the avalanche (step 6)."""
    lane = _rotate(words * _PRIME64_2, 31) * _PRIME64_1
    h = _rotate((_PRIME64_5 + U64(8)) ^ lane, 27) * _PRIME64_1 + _PRIME64_4
    h = (h ^ (h >> U64(33))) * _PRIME64_2
    h = (h ^ (h >> U64(29))) * _PRIME64_3
    return h ^ (h >> U64(32))


def _rotate(x: Hashes, bits: int) -> Hashes:
    return (x << U64(bits)) | (x >> U64(64 - bits))


def insert_hashes(blocks: Blocks, hashes: Hashes) -> None:
    """Insert every hash; ``blocks`` is (z, 8) in C order, z >= 1."""
    if not len(hashes):
        return
    index = _block_index(blocks, hashes)
    # Sorted by block, so that all masks of a block are put together before it is written once.
    order = np.argsort(index, kind="stable")
    index = index[order]
    starts = np.flatnonzero(np.concatenate([[True], index[1:] != index[:-1]]))
    blocks[index[starts]] |= np.bitwise_or.reduceat(_masks(hashes[order]), starts, axis=0)


def check_hashes(blocks: Blocks, hashes: Hashes, found: NDArray[np.bool_]) -> None:
    """Set ``found[i]`` to whether ``hashes[i]`` may have been inserted."""
    missing = _masks(hashes) & ~blocks[_block_index(blocks, hashes)]
    found[:] = ~missing.any(axis=1)


def _block_index(blocks: Blocks, hashes: Hashes) -> NDArray[np.intp]:
    return ((hashes >> U64(32)) * U64(len(blocks)) >> U64(32)).astype(np.intp)


def _masks(hashes: Hashes) -> Blocks:
    """``mask(x)`` of the lower half of each hash, shape (n, 8)."""
    x = hashes.astype(U32)[:, None]
    masks: Blocks = U32(1) << ((x * _SALT) >> U32(27))
    return masks


def byte_array_offsets(data: Bytes, offsets: NDArray[np.int64]) -> int:
    """Enter the offset of each of ``len(offsets) - 1`` BYTE_ARRAYs, and the end of the last.

    Returns the end, or ``DAMAGED`` if they do not all fit ``data``.
    """
    content, at, read = data.tobytes(), 0, _LENGTH.unpack_from
    found = [0]
    try:
        for _ in range(len(offsets) - 1):
            at += 4 + read(content, at)[0]
            found.append(at)
    except struct.error:  # no room for a length
        return DAMAGED
    if at > len(content):
        return DAMAGED
    offsets[:] = found
    return at


def count_level(data: Bytes, bit_width: int, wanted: int, values: int) -> int:
    """How many of the first ``values`` levels in ``data`` are ``wanted``; ``DAMAGED`` if too few.

    ``data`` is runs of the hybrid encoding, ``1 <= bit_width <= 8``.
    """
    content, found, at, left = data.tobytes(), 0, 0, values
    while left > 0:
        header, at = _varint(content, at)
        if at == 0 or at >= len(content):
            return DAMAGED
        run = header >> 1
        if header & 1:
            count = min(run * 8, left)
            size = (count * bit_width + 7) // 8
            if len(content) - at < size:
                return DAMAGED
            found += _count_packed(data[at : at + size], bit_width, wanted, count)
            at = min(at + run * bit_width, len(content))
        else:
            count = min(run, left)
            found += count if content[at] == wanted else 0
            at += 1
        left -= count
    return found


def _varint(content: bytes, at: int) -> tuple[int, int]:
    """The varint of at most five bytes at ``at``, and its end: 0 if it is longer."""
    number = 0
    for i, byte in enumerate(content[at : at + 5]):
        number |= (byte & 0x7F) << 7 * i
        if byte < 0x80:
            return number, at + i + 1
    return number, 0


def _count_packed(packed: Bytes, bit_width: int, wanted: int, count: int) -> int:
    bits = np.unpackbits(packed, count=count * bit_width, bitorder="little")
    if bit_width == 1:
        ones = int(np.count_nonzero(bits))
        return (count - ones, ones)[wanted] if wanted < 2 else 0
    levels = np.packbits(bits.reshape(count, bit_width), axis=1, bitorder="little")
    return int(np.count_nonzero(levels == wanted))
