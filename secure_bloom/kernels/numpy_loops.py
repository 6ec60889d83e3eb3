"""The loops of the C extension in numpy and xxhash, for Python without the extension.

Each function returns what the C function of the same name returns. :mod:`.loops` chooses between
them.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator
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
Signed: TypeAlias = NDArray[np.int64]

DAMAGED: Final = -1
#: The answer of a filter in an unusual form, and the first byte of a usual one.
_UNUSUAL: Final = 2
_NUM_BYTES: Final = 0x15
#: More hashes than these are looked for in one filter after the other.
_FEW_HASHES: Final = 32
_STRIPE: Final = 32
#: Wider rows are hashed one by one: a step of numpy takes eight bytes of each row, however long.
_WIDEST: Final = 256
_LENGTH: Final = struct.Struct("<I")
_SALT: Final = np.array(SALT, U32)[:, None]
_PRIME64_1: Final = U64(0x9E3779B185EBCA87)
_PRIME64_2: Final = U64(0xC2B2AE3D27D4EB4F)
_PRIME64_3: Final = U64(0x165667B19E3779F9)
_PRIME64_4: Final = U64(0x85EBCA77C2B2AE63)
_PRIME64_5: Final = U64(0x27D4EB2F165667C5)
#: PRIME64_1 + PRIME64_2, PRIME64_2, 0 and -PRIME64_1: the accumulators at first, without a seed.
_SEEDS: Final = (0x60EA27EEADC0B5D6, 0xC2B2AE3D27D4EB4F, 0, 0x61C8864E7A143579)


def hash_rows(rows: Bytes, hashes: Hashes) -> None:
    """Store the hash of each row of ``rows``, an array of shape (n, width), in ``hashes``."""
    count, width = rows.shape
    # Measured: numpy takes about as long for its steps along a row as xxhash for this many rows.
    if width > _WIDEST or count < 100 + 10 * width:
        hashes[:] = np.array([xxhash.xxh64_intdigest(row) for row in rows], U64)
        return
    h = _striped(rows) if width >= _STRIPE else np.full(len(rows), _PRIME64_5)
    h = h + U64(width)
    for at in range(width - width % _STRIPE, width - 7, 8):
        h = _rotate(h ^ _round(_words(rows, at, "<u8")), 27) * _PRIME64_1 + _PRIME64_4
    if width & 4:
        word = _words(rows, width & ~7, "<u4")
        h = _rotate(h ^ word * _PRIME64_1, 23) * _PRIME64_2 + _PRIME64_3
    for at in range(width & ~3, width):
        h = _rotate(h ^ rows[:, at].astype(U64) * _PRIME64_5, 11) * _PRIME64_1
    h = (h ^ (h >> U64(33))) * _PRIME64_2
    h = (h ^ (h >> U64(29))) * _PRIME64_3
    hashes[:] = h ^ (h >> U64(32))


def _striped(rows: Bytes) -> Hashes:
    """Process the stripes of 32 bytes in four accumulators, and merge them (steps 1 to 3)."""
    accumulators = [np.full(len(rows), seed, U64) for seed in _SEEDS]
    for at in range(0, rows.shape[1] - _STRIPE + 1, _STRIPE):
        for i, v in enumerate(accumulators):
            accumulators[i] = _round(_words(rows, at + 8 * i, "<u8"), v)
    h: Hashes = np.zeros(len(rows), U64)
    for v, bits in zip(accumulators, (1, 7, 12, 18), strict=True):
        h += _rotate(v, bits)
    for v in accumulators:
        h = (h ^ _round(v)) * _PRIME64_1 + _PRIME64_4
    return h


def _round(lane: Hashes, accumulator: Hashes | None = None) -> Hashes:
    """Return the accumulator after one round. ``accumulator`` None is zero."""
    product = lane * _PRIME64_2
    return _rotate(product if accumulator is None else accumulator + product, 31) * _PRIME64_1


def _words(rows: Bytes, at: int, word: str) -> Hashes:
    """Return the little-endian number at byte ``at`` of each row."""
    columns = rows[:, at : at + np.dtype(word).itemsize]
    # Seen as numbers where they lie, and then copied: five times as fast as copied byte by byte.
    return columns.view(word)[:, 0].astype(U64)


def _rotate(x: Hashes, bits: int) -> Hashes:
    return (x << U64(bits)) | (x >> U64(64 - bits))


def hash_spans(offsets: NDArray[Any], prefix: int, data: Bytes, hashes: Hashes) -> None:
    """Hash ``data[offsets[i] + prefix:offsets[i + 1]]`` into ``hashes[i]``. Checks no offset."""
    if not len(hashes):
        return
    first, end = int(offsets[0]), int(offsets[-1])
    step = int(offsets[1]) - first
    if first + step * len(hashes) == end and (np.diff(offsets) == step).all():
        # Values of one length, such as identifiers in hexadecimal, are a table of bytes.
        hash_rows(data[first:end].reshape(len(hashes), step)[:, prefix:], hashes)
        return
    content, digest = data[first:end].tobytes(), xxhash.xxh64_intdigest
    bounds = pairwise((offsets - first).tolist())
    found = [digest(content[start + prefix : end]) for start, end in bounds]
    hashes[:] = np.array(found, U64)


def insert_hashes(blocks: Blocks, hashes: Hashes) -> None:
    """Insert every hash. ``blocks`` is (z, 8) in C order, z >= 1."""
    if not len(hashes):
        return
    index = _block_index(blocks, hashes)
    # Sorted by block, so that all masks of a block are put together before it is written once.
    # Narrow numbers are sorted digit by digit, ten times as fast.
    narrow = index.astype(np.uint16) if len(blocks) <= 1 << 16 else index
    order = narrow.argsort(kind="stable")
    index = index[order]
    starts = np.concatenate([[0], (index[1:] != index[:-1]).nonzero()[0] + 1])
    blocks[index[starts]] |= np.bitwise_or.reduceat(_masks(hashes[order]), starts, axis=1).T


def check_hashes(blocks: Blocks, hashes: Hashes, found: NDArray[np.bool_]) -> None:
    """Set ``found[i]`` to whether ``hashes[i]`` may have been inserted."""
    missing = _masks(hashes) & ~blocks[_block_index(blocks, hashes)].T
    found[:] = ~missing.any(axis=0)


def _block_index(blocks: Blocks, hashes: Hashes) -> NDArray[np.intp]:
    return ((hashes >> U64(32)) * U64(len(blocks)) >> U64(32)).astype(np.intp)


def _masks(hashes: Hashes) -> Blocks:
    """Return ``mask(x)`` of the lower half of each hash, in shape (8, n), fast in numpy."""
    masks: Blocks = hashes.astype(U32) * _SALT
    masks >>= U32(27)
    return np.left_shift(U32(1), masks, out=masks)


def ask(
    data: Any,
    base: int,
    bounds: Signed,
    is_opened: bool,
    rest: bytes,
    hashes: Hashes,
    runs: Signed,
    answers: Bytes,
) -> None:
    """Store for each filter 1 if it may have one of its hashes, else 0, or a mark if it is unusual.

    ``runs`` has the start and end of the hashes of each filter. Filter ``i`` has bounds ``2 * i``
    and ``2 * i + 1``, its start and end, counted from ``base``. A decrypted filter has three
    bounds: the start of its header, of its bitset, and of the next filter.
    """
    flat, content = (bounds.reshape(-1) - base).tolist(), memoryview(data)
    for i in range(len(answers)):
        own = flat[2 * i : 2 * i + 2 + is_opened]
        flat[2 * i] = _bitset(content, own[0], own[1] if is_opened else None, own[-1], rest)
    starts = np.array(flat[: 2 * len(answers) : 2], np.int64)
    ends = np.array(flat[1 + is_opened :: 2][: len(answers)], np.int64)
    answers[:] = np.where(starts < 0, _UNUSUAL, 0)
    every, usual = np.frombuffer(data, np.uint8), np.flatnonzero(starts >= 0)
    for i in usual[runs[usual, 1] - runs[usual, 0] > _FEW_HASHES]:
        blocks = every[starts[i] : ends[i]].copy().view("<u4").reshape(-1, 8)
        found = np.empty(runs[i, 1] - runs[i, 0], np.bool_)
        check_hashes(blocks, hashes[runs[i, 0] : runs[i, 1]], found)
        answers[i] = found.any()
        starts[i] = -1
    # One hash after the other, each of all filters together: mostly there are few.
    for step in range(_FEW_HASHES):
        usual = usual[(starts[usual] >= 0) & (runs[usual, 0] + step < runs[usual, 1])]
        if not len(usual):
            return
        answers[usual] |= _may_have(
            every, starts[usual], ends[usual], hashes[runs[usual, 0] + step]
        )


def _bitset(content: memoryview, at: int, middle: int | None, end: int, rest: bytes) -> int:
    """Return where the bitset of a filter starts, or -1 if its header is unusual."""
    if not 0 <= at < len(content) or end > len(content) or content[at] != _NUM_BYTES:
        return -1
    number, stop = _varint(content[at + 1 : at + 6], 0)
    start, size = at + 1 + stop + len(rest), number >> 1
    if stop == 0 or number & 1 or content[start - len(rest) : start] != rest:
        return -1
    bitset = start if middle is None else middle
    is_whole = start <= bitset <= end and size == end - bitset and size > 0 and size % 32 == 0
    return bitset if is_whole else -1


def _may_have(every: Bytes, starts: Signed, ends: Signed, hashes: Hashes) -> NDArray[np.bool_]:
    """Return whether each filter may have its own hash."""
    blocks = ((ends - starts) // 32).astype(U64)
    at = starts + 32 * ((hashes >> U64(32)) * blocks >> U64(32)).astype(np.int64)
    words = every[at[:, None] + np.arange(32)].view("<u4")
    found: NDArray[np.bool_] = ~(_masks(hashes).T & ~words).any(axis=1)
    return found


def byte_array_offsets(data: Bytes, offsets: NDArray[np.int64]) -> int:
    """Store the offset of each of ``len(offsets) - 1`` BYTE_ARRAYs, and the end of the last.

    Returns the end, or ``DAMAGED`` if ``data`` is too short for all values.
    """
    if (end := _equal_lengths(data, offsets)) is not None:
        return end
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


def _equal_lengths(data: Bytes, offsets: NDArray[np.int64]) -> int | None:
    """Do the work of :func:`byte_array_offsets` if all values have one length, else return None."""
    count = len(offsets) - 1
    if count < 1 or len(data) < _LENGTH.size:
        return None
    step = _LENGTH.size + int(_words(data[None, :], 0, "<u4")[0])
    end = step * count
    if len(data) < end:
        return None
    lengths = _words(data[:end].reshape(count, step), 0, "<u4")
    if (lengths != lengths[0]).any():
        return None
    offsets[:] = np.arange(0, end + 1, step)
    return end


def count_level(data: Bytes, bit_width: int, wanted: int, values: int) -> int:
    """Return how many of the first ``values`` levels equal ``wanted``, or ``DAMAGED`` if too few.

    ``data`` is runs of the hybrid encoding, ``1 <= bit_width <= 8``.
    """
    content, found, at, left = data.tobytes(), 0, 0, values
    while left > 0:
        header, at = _varint(content, at)
        if at == 0 or at >= len(content):
            return DAMAGED
        run = header >> 1
        # Arrow takes an empty run for damage too.
        if run == 0:
            return DAMAGED
        if header & 1:
            count = min(run * 8, left)
            # Arrow takes a last group for damage too of which only the wanted part is there.
            if len(content) - at < run * bit_width:
                return DAMAGED
            found += _count_packed(data[at : at + run * bit_width], bit_width, wanted, count)
            at += run * bit_width
        else:
            count = min(run, left)
            found += count if content[at] == wanted else 0
            at += 1
        left -= count
    return found


def unpack(data: Bytes, bit_width: int, limit: int, numbers: NDArray[np.uint32]) -> int:
    """Store the first ``len(numbers)`` numbers of runs of the hybrid encoding.

    Returns their number, or ``DAMAGED`` if there are too few, or one is not below ``limit``.
    """
    content, at, done, size = data.tobytes(), 0, 0, (bit_width + 7) // 8
    while done < len(numbers):
        header, at = _varint(content, at)
        run = header >> 1
        if at == 0 or run == 0:
            return DAMAGED
        if header & 1:
            count = min(run * 8, len(numbers) - done)
            if len(content) - at < run * bit_width:
                return DAMAGED
            numbers[done : done + count] = _unpacked(data[at:], bit_width, count)
            at += run * bit_width
        else:
            count = min(run, len(numbers) - done)
            if len(content) - at < size:
                return DAMAGED
            numbers[done : done + count] = int.from_bytes(content[at : at + size], "little")
            at += size
        done += count
    return DAMAGED if done and int(numbers.max()) >= limit else done


def _unpacked(packed: Bytes, bit_width: int, count: int) -> NDArray[np.uint32]:
    """Return ``count`` numbers of ``bit_width`` bits each."""
    bits = np.zeros((count, 32), np.uint8)
    if bit_width:
        found = np.unpackbits(packed, count=count * bit_width, bitorder="little")
        bits[:, :bit_width] = found.reshape(count, bit_width)
    return np.packbits(bits, axis=1, bitorder="little").view("<u4")[:, 0]


def pick_indices(
    data: Bytes, bit_width: int, limit: int, count: int, ranks: Signed, picked: Signed
) -> int:
    """Store the numbers at ascending ``ranks``, of ``count`` numbers that :func:`unpack` reads.

    Returns how many are stored, or ``DAMAGED``.
    """
    numbers = np.empty(count, U32)
    if unpack(data, bit_width, limit, numbers) == DAMAGED:
        return DAMAGED
    picked[:] = numbers[ranks]
    return len(ranks)


def pick_spans(data: Bytes, count: int, ranks: Signed, spans: Signed) -> int:
    """Store the starts and ends of some of ``count`` BYTE_ARRAYs, at ascending ``ranks``.

    Returns how many are stored, or ``DAMAGED``.
    """
    if len(data) < 4 * count:
        return DAMAGED
    offsets = np.empty(count + 1, np.int64)
    if byte_array_offsets(data, offsets) != len(data):
        return DAMAGED
    spans[::2], spans[1::2] = offsets[ranks] + 4, offsets[ranks + 1]
    return len(ranks)


def find_values(
    data: Bytes, width: int, only: bytes, hashes: Hashes, count: int, found: Signed
) -> int:
    """Store the positions of the PLAIN values that are ``only``, or have one of ``hashes``.

    Returns how many there are, one more than there is room for, or ``DAMAGED`` if the values are
    not all of the data.
    """
    content, at, wanted, done = data.tobytes(), 0, frozenset(hashes.tolist()), 0
    for position in range(count):
        length = width
        if width == 0:
            if len(content) - at < _LENGTH.size:
                return DAMAGED
            (length,) = _LENGTH.unpack_from(content, at)
            at += _LENGTH.size
        if len(content) - at < length:
            return DAMAGED
        value = content[at : at + length]
        at += length
        if value != only if only else xxhash.xxh64_intdigest(value) not in wanted:
            continue
        if done == len(found):
            return done + 1
        found[done] = position
        done += 1
    return done if at == len(content) else DAMAGED


def delta_numbers(data: Bytes, start: int, widest: int, numbers: Signed) -> int:
    """Store the DELTA_BINARY_PACKED numbers that begin at ``start``, and return where they end.

    Returns ``DAMAGED`` unless there are as many as ``numbers`` has room for.
    """
    try:
        return _delta_numbers(data, start, widest, numbers)
    except (IndexError, ValueError):
        return DAMAGED


def _delta_numbers(data: Bytes, start: int, widest: int, numbers: Signed) -> int:
    content, wanted = data.tobytes(), len(numbers)
    block, at = _long_varint(content, start)
    minis, at = _long_varint(content, at)
    total, at = _long_varint(content, at)
    first, at = _long_varint(content, at)
    if total != wanted or minis == 0 or block % minis:
        return DAMAGED
    of_mini = block // minis
    if of_mini == 0 or of_mini % 32 or of_mini >= 1 << 32:
        return DAMAGED
    deltas = np.zeros(wanted, U64)
    deltas[:1] = _unzigzag(first)
    done = min(1, wanted)
    while done < wanted:
        least, at = _long_varint(content, at)
        widths = content[at : at + minis]
        if len(widths) < minis:
            return DAMAGED
        at += minis
        for width in widths:
            if done == wanted:
                break
            size, count = of_mini // 8 * width, min(of_mini, wanted - done)
            if width > widest or size > len(content) - at:
                return DAMAGED
            bits = np.zeros((count, 64), np.uint8)
            if width:
                packed = np.unpackbits(data[at : at + size], bitorder="little")
                bits[:, :width] = packed[: count * width].reshape(count, width)
            raised = np.packbits(bits, axis=1, bitorder="little").view("<u8")[:, 0]
            deltas[done : done + count] = raised + U64(_unzigzag(least))
            done, at = done + count, at + size
    numbers[:] = np.cumsum(deltas, dtype=U64).view(np.int64)
    return at


def _long_varint(content: bytes, at: int) -> tuple[int, int]:
    """Return the varint of at most 64 bits at ``at``, and its end.

    Raises ValueError or IndexError if there is none.
    """
    number = 0
    for i in range(10):
        byte = content[at + i]
        number |= (byte & 0x7F) << 7 * i
        if byte < 0x80:
            if number >= 1 << 64:
                break
            return number, at + i + 1
    raise ValueError("a varint of more than 64 bits")


def _unzigzag(number: int) -> int:
    return (number >> 1) ^ (-(number & 1) & (1 << 64) - 1)


def join_prefixes(
    prefixes: Signed, bounds: Signed, suffixes: Bytes, ranks: Signed, ends: Signed, into: Bytes
) -> int:
    """Copy the values at ``ranks`` into ``into``, and store in ``ends`` where each of them ends.

    Value ``i`` is the first ``prefixes[i]`` bytes of the value before it, and its own suffix.
    Returns the end of the last value, or ``DAMAGED``.
    """
    content, end = suffixes.tobytes(), 0
    starts, limits = bounds[:-1].tolist(), bounds[1:].tolist()
    before = prefixes.tolist()
    for k, rank in enumerate(ranks.tolist()):
        parts, needed, i = list[bytes](), -1, rank
        while needed:
            prefix, own = before[i], content[starts[i] : limits[i]]
            if not 0 <= prefix < 1 << 31 or len(own) != limits[i] - starts[i] or starts[i] < 0:
                return DAMAGED
            needed = prefix + len(own) if needed < 0 else needed
            if needed > prefix + len(own):
                return DAMAGED
            if needed > prefix:
                parts.append(own[: needed - prefix])
                needed = prefix
            i -= 1
            if needed and i < 0:
                return DAMAGED
        value = b"".join(reversed(parts))
        if len(value) > len(into) - end:
            return DAMAGED
        into[end : end + len(value)] = np.frombuffer(value, np.uint8)
        end += len(value)
        ends[k] = end
    return end


def _varint(content: bytes | memoryview, at: int) -> tuple[int, int]:
    """Return the varint at ``at``, and its end. The end is 0 if it has more than five bytes."""
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


def paimon_hash(numbers: Signed, hashes: Signed) -> None:
    """Store Thomas Wang's hash of every number. Right shifts keep the sign."""
    k = ~numbers + (numbers << 21)
    k ^= k >> 24
    k = k + (k << 3) + (k << 8)
    k ^= k >> 14
    k = k + (k << 2) + (k << 4)
    k ^= k >> 28
    hashes[:] = k + (k << 31)


def paimon_insert(bits: Bytes, functions: int, hashes: Signed) -> None:
    """Set the bits of every hash. ``bits`` has at least one byte."""
    for position in _paimon_positions(bits, functions, hashes):
        np.bitwise_or.at(bits, position >> U32(3), U32(1) << (position & U32(7)))


def paimon_check(bits: Bytes, functions: int, hashes: Signed, found: NDArray[np.bool_]) -> None:
    """Set ``found[i]`` to whether all bits of ``hashes[i]`` are set."""
    found[:] = True
    for position in _paimon_positions(bits, functions, hashes):
        found &= (bits[position >> U32(3)] >> (position & U32(7)) & 1).astype(np.bool_)


def _paimon_positions(bits: Bytes, functions: int, hashes: Signed) -> Iterator[NDArray[U32]]:
    """Yield the first bit position of every hash, then the second of every hash, and so on."""
    step, stride = hashes.astype(U32), (hashes >> 32).astype(U32)
    for _ in range(functions):
        step = step + stride
        # A step that is negative as a signed number is inverted first.
        yield np.where(step >> U32(31), ~step, step) % U32(8 * len(bits))
