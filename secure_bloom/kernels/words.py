"""Words of texts that may be values of a column: in C, or in Python without the extension.

A text is folded: ASCII letters and the capitals of Latin-1 become small, other characters of UTF-8
stay, and all other bytes are gaps.  What is between two gaps is an atom, and some atoms in a row,
joined, are a word.  So ``DE44 5001-0517`` and ``de4450010517`` are one word.
"""

from __future__ import annotations

import re
from typing import Final, NamedTuple

import numpy as np
import xxhash
from numpy.typing import NDArray

from secure_bloom.kernels import extension
from secure_bloom.kernels.numpy_loops import DAMAGED, Blocks, Bytes, Hashes, Signed, check_hashes

#: Longer words are not asked; atoms with more bytes between them are not joined.
LONGEST: Final = 255
_WIDEST_GAP: Final = 24
#: Words of C that wait to be asked: as many hits more must have room.
_WAITING: Final = 32
#: The bytes of a table with a bit for each of 65,536 heads, and what spreads heads over it.
HEADS: Final = 8192
_MULTIPLIER: Final = 0x9E3779B1
#: What is known of a folded value, as bits.
HAS_LETTER: Final = 1
HAS_DIGIT: Final = 2
HAS_AT: Final = 4
HAS_PARTS: Final = 8
IS_EXAMPLE: Final = 16
#: The numbers of a hit: hash, start and length in the folded text, place in the text.
HIT: Final = 4
#: Domains that documents use in addresses (RFC 2606), folded.
_EXAMPLES: Final = (
    *(b"example" + end for end in (b"com", b"org", b"net", b"edu", b"")),
    b"test",
    b"invalid",
    b"localhost",
)
#: A character that is kept.  U+0080 to U+00BF, U+2000 to U+206F, U+3000 to U+303F, the byte order
#: mark and the last ones of the plane are marks and spaces.
_KEPT: Final = re.compile(
    rb"[0-9A-Za-z]|[\xc3-\xdf][\x80-\xbf]|\xe2[\x82-\xbf][\x80-\xbf]|\xe3[\x81-\xbf][\x80-\xbf]"
    rb"|\xef(?:\xbb[\x80-\xbe]|\xbf[\x80-\xaf]|[\x80-\xba\xbc-\xbe][\x80-\xbf])"
    rb"|[\xe0\xe1\xe4-\xee][\x80-\xbf]{2}|[\xf0-\xf4][\x80-\xbf]{3}"
)
_ENCODED: Final = b"[A-Za-z0-9+/_-]"


class Found(NamedTuple):
    """The hits in a text, how many bytes of it are done, and how many words were asked."""

    hits: Signed
    folded: Bytes
    done: int
    asked: int


class Room:
    """The memory of :func:`find_words` for texts of up to ``size`` bytes, used again and again."""

    def __init__(self, size: int, hits: int = 1 << 13) -> None:
        self.size = size
        self.folded = np.zeros(size + 4, np.uint8)
        self.atoms = np.empty(size + 1, np.uint64)
        self.hits = np.empty((hits, HIT), np.int64)
        self.answers = np.zeros(2, np.int64)


def fold_values(
    offsets: NDArray[np.int64], prefix: int, data: Bytes, *, backwards: bool = False
) -> tuple[Bytes, Signed, Hashes, Bytes]:
    """Fold each ``data[offsets[i] + prefix:offsets[i + 1]]``.

    Returns the folded values one after the other, the end of each, their hashes, and what is known
    of each.  ``backwards`` reverses the characters of each.  Raises ValueError for offsets that
    fall or leave ``data``.
    """
    count = len(offsets) - 1
    folded = np.empty(len(data), np.uint8)
    ends, hashes = np.empty(count, np.int64), np.empty(count, np.uint64)
    kinds = np.empty(count, np.uint8)
    fold = _fold_values if extension.native is None else extension.native.fold_values
    size = fold(offsets, prefix, data, int(backwards), folded, ends, hashes, kinds)
    if size == DAMAGED:
        raise ValueError("the offsets of values fall, or leave the data")
    return folded[:size], ends, hashes, kinds


def find_words(
    text: Bytes, room: Room, lengths: Bytes, heads: Bytes, blocks: Blocks, *, is_last: bool
) -> Found:
    """Ask a filter all words of a text that have one of some lengths, and of some heads.

    ``lengths`` has a bit for each length from 0 to 255, and ``heads`` for the first four bytes of
    words (:func:`add_heads`).  Without ``is_last`` the words at the end,
    which may go on after the text, are not done.
    """
    find = _find_words if extension.native is None else extension.native.find_words
    arrays = (lengths, heads, blocks, room.folded, room.atoms, room.hits, room.answers)
    found = find(text, int(is_last), *arrays)
    done, asked = room.answers.tolist()
    return Found(room.hits[:found], room.folded, done, asked)


def add_heads(heads: Bytes, folded: Bytes, starts: Signed) -> None:
    """Set the bits of the first four bytes of the folded words at ``starts``, which are as long."""
    first = folded[starts[:, None] + np.arange(4)].astype(np.uint32)
    head = first @ np.array([1, 1 << 8, 1 << 16, 1 << 24], np.uint32)
    bits = np.unique((head * np.uint32(_MULTIPLIER)) >> np.uint32(16))
    np.bitwise_or.at(heads, bits >> 3, np.left_shift(1, bits & 7).astype(np.uint8))


def find_runs(text: Bytes, least: int, spans: Signed) -> int:
    """Store start and end of each run of at least ``least`` characters of Base64.

    ``spans`` is (n, 2). Returns how many runs were stored, at most n.
    """
    if extension.native is not None:
        return int(extension.native.find_runs(text, least, spans))
    found = 0
    pattern = re.compile(_ENCODED + b"{%d,}" % least)
    for found, match in zip(
        range(1, len(spans) + 1), pattern.finditer(text.tobytes()), strict=False
    ):
        spans[found - 1] = match.span()
    return found


def fold(text: bytes) -> bytes:
    """Return one value folded."""
    return b"".join(map(_small, _KEPT.findall(text)))


def _small(character: bytes) -> bytes:
    if len(character) == 1:
        return character.lower()
    is_capital = character[0] == 0xC3 and character[1] < 0x9F and character[1] != 0x97
    return bytes([0xC3, character[1] | 0x20]) if is_capital else character


def _fold_values(
    offsets: Signed,
    prefix: int,
    data: Bytes,
    backwards: int,
    folded: Bytes,
    ends: Signed,
    hashes: Hashes,
    kinds: Bytes,
) -> int:
    done = 0
    if offsets[0] < 0:
        return DAMAGED
    for i in range(len(ends)):
        start, end = int(offsets[i]), int(offsets[i + 1])
        if end > len(data) or end < start or end - start < prefix:
            return DAMAGED
        value = data[start + prefix : end].tobytes()
        word = fold(value)
        kinds[i] = _kind(value, word)
        if backwards:
            word = b"".join(reversed(_KEPT.findall(word)))
        folded[done : done + len(word)] = np.frombuffer(word, np.uint8)
        done += len(word)
        ends[i] = done
        hashes[i] = xxhash.xxh64_intdigest(word)
    return done


def _kind(value: bytes, word: bytes) -> int:
    kind = (HAS_AT if b"@" in value else 0) | (HAS_DIGIT if re.search(rb"[0-9]", word) else 0)
    kind |= HAS_LETTER if re.search(rb"[^0-9]", word) else 0
    kind |= HAS_PARTS if len(_atoms(value, escapes=False)) > 1 else 0
    return kind | (IS_EXAMPLE if kind & HAS_AT and word.endswith(_EXAMPLES) else 0)


def _atoms(text: bytes, *, escapes: bool = True) -> list[tuple[int, int, bool]]:
    """Return for each atom its start in the folded text, its place, and whether it is joined."""
    found: list[tuple[int, int, bool]] = []
    done, end = 0, None
    for match in _KEPT.finditer(text):
        at = match.start()
        is_escaped = escapes and at >= 2 and re.match(rb"\\[A-Za-z]", text[at - 2 : at])
        if at != end or is_escaped:
            found.append((done, at, end is not None and at - end <= _WIDEST_GAP))
        end = match.end()
        done += end - at
    return found


def _find_words(
    text: Bytes,
    is_last: int,
    lengths: Bytes,
    heads: Bytes,
    blocks: Blocks,
    folded: Bytes,
    _: Hashes,
    hits: Signed,
    answers: Signed,
) -> int:
    plain = text.tobytes()
    word = fold(plain)
    folded[: len(word)] = np.frombuffer(word, np.uint8)
    folded[len(word) : len(word) + 4] = 0
    atoms = [*_atoms(plain), (len(word), len(plain), False)]
    wanted = np.unpackbits(lengths, bitorder="little")
    found = asked = i = 0
    for i, (start, place, _joined) in enumerate(atoms):
        cut = not is_last and len(word) - start <= LONGEST
        if cut or len(hits) - found < LONGEST + _WAITING or i == len(atoms) - 1:
            break
        bit = int.from_bytes(folded[start : start + 4].tobytes(), "little") * _MULTIPLIER >> 16
        if not heads[(bit & 0xFFFF) // 8] >> (bit % 8) & 1:
            continue
        for j in range(i, len(atoms) - 1):
            length = atoms[j + 1][0] - start
            if length > LONGEST or (j > i and not atoms[j][2]):
                break
            if wanted[length]:
                asked += 1
                h = xxhash.xxh64_intdigest(word[start : start + length])
                passed = np.empty(1, np.bool_)
                check_hashes(blocks, np.array([h], np.uint64), passed)
                if passed[0]:
                    hits[found] = np.uint64(h).view(np.int64), start, length, place
                    found += 1
    answers[:] = atoms[i][1], asked
    return found
