"""Words of texts that may be values of a column: in C, or in Python without the extension.

A text is folded: ASCII letters and the capitals of Latin-1 become small, other characters of UTF-8
stay, and all other bytes are gaps.  The text between two gaps is an atom. Consecutive atoms,
joined, are a word.  So ``DE44 5001-0517`` and ``de4450010517`` are one word. A word read backwards
is the same word too: both have the hash of the one that is smaller in byte order. Numbers are not
reversed here, but an index may have a number in both directions.
"""

from __future__ import annotations

import re
from string import ascii_letters, digits
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
_MULTIPLIER, _BY_LENGTH = 0x9E3779B1, 0x85EBCA6B
#: The lowest byte of a hash is left free for what is known of the word.
HASH_MASK: Final = 0xFFFF_FFFF_FFFF_FF00
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


class Found(NamedTuple):
    """The hits in a text, how many bytes of it were searched, and how many words were looked up."""

    hits: Signed
    folded: Bytes
    done: int
    asked: int


class Room:
    """The memory of :func:`find_words` for texts of up to ``size`` bytes, used again and again."""

    def __init__(self, size: int, hits: int = 1 << 13) -> None:
        self.size = size
        self.folded = np.zeros(size + 64, np.uint8)
        self.atoms = np.empty(size + 1, np.uint64)
        self.hits = np.empty((hits, HIT), np.int64)
        self.answers = np.zeros(2, np.int64)


def new_shapes() -> Bytes:
    """Return an empty table of the heads and tails of words, for :func:`fold_values` to fill."""
    return np.zeros(2 * HEADS, np.uint8)


def fold_values(
    offsets: NDArray[np.int64], data: Bytes, shapes: Bytes | None = None
) -> tuple[Bytes, Signed, Hashes, Bytes]:
    """Fold each ``data[offsets[i]:offsets[i + 1]]``, or its reverse if that is smaller.

    Returns the folded values one after the other, the end of each, their hashes, and flags of
    each. ``shapes`` gets the heads and tails of the words, forwards and backwards. Raises
    ValueError for offsets that descend or leave ``data``.
    """
    count = len(offsets) - 1
    folded = np.empty(len(data), np.uint8)
    ends, hashes = np.empty(count, np.int64), np.empty(count, np.uint64)
    kinds = np.empty(count, np.uint8)
    shapes = new_shapes() if shapes is None else shapes
    fold = _fold_values if extension.native is None else extension.native.fold_values
    size = fold(offsets, data, folded, ends, hashes, kinds, shapes)
    if size == DAMAGED:
        raise ValueError("the offsets of values descend, or lie outside the data")
    return folded[:size], ends, hashes, kinds


def find_words(
    text: Bytes, room: Room, longest: int, shapes: Bytes, blocks: Blocks, *, is_last: bool
) -> Found:
    """Look up words of a text in a filter, if they have the head and tail of some wanted word.

    ``shapes`` has the heads and tails of the wanted words. The longest wanted word has ``longest``
    bytes. A number that begins with zeros is looked up without them too. Without ``is_last``, words
    at the end are left for the next call, because they may continue in the text that follows.
    """
    find = _find_words if extension.native is None else extension.native.find_words
    arrays = (shapes, blocks, room.folded, room.atoms, room.hits, room.answers)
    found = find(text, int(is_last), longest, *arrays)
    done, asked = room.answers.tolist()
    return Found(room.hits[:found], room.folded, done, asked)


def alphabet(characters: bytes) -> Bytes:
    """Return the table of a set of characters, as :func:`find_runs` takes it."""
    return np.isin(np.arange(256), list(characters)).astype(np.uint8)


#: The characters of Base64 in mail and in URLs, which hexadecimal digits and Base32 are too.
BASE64: Final = alphabet(f"{ascii_letters}{digits}+/-_".encode())


def find_runs(text: Bytes, wanted: Bytes, least: int, spans: Signed) -> int:
    """Store start and end of each run of at least ``least`` characters of an alphabet.

    ``spans`` is (n, 2). Returns how many runs were stored, at most n.
    """
    if extension.native is not None:
        return int(extension.native.find_runs(text, wanted, least, spans))
    found = 0
    characters = re.escape(bytes(np.flatnonzero(wanted).tolist()))
    pattern = re.compile(b"[%b]{%d,}" % (characters, least))
    for found, match in zip(
        range(1, len(spans) + 1), pattern.finditer(text.tobytes()), strict=False
    ):
        spans[found - 1] = match.span()
    return found


def fold(text: bytes) -> bytes:
    """Return one value folded. It is not reversed."""
    return b"".join(map(_small, _KEPT.findall(text)))


def spelling(text: Bytes, place: int, length: int) -> bytes:
    """Return the text from ``place`` on as it is written, up to ``length`` letters and digits."""
    written = text[place : place + length * (_WIDEST_GAP + 1)].tobytes()
    left = length
    for match in _KEPT.finditer(written):
        left -= len(match[0])
        if left <= 0:
            return written[: match.end()]
    return written


def first_of_both(word: bytes) -> bytes:
    """Return the smaller one of a folded word and its reverse, in the order of bytes."""
    return min(word, _turned(word))


def _turned(word: bytes) -> bytes:
    """Return a folded word backwards.

    Numbers and words that are too long are returned unchanged.
    """
    if len(word) > LONGEST or word.isdigit():
        return word
    return b"".join(reversed(_KEPT.findall(word)))


def _shape(word: bytes) -> tuple[int, int]:
    """Return the bits of a word in the tables of heads and of tails."""
    head, tail = (int.from_bytes(it, "little") for it in (word[:4], word[-4:]))
    bits = head * _MULTIPLIER, (tail + len(word) * _BY_LENGTH) * _MULTIPLIER
    return bits[0] >> 16 & 0xFFFF, (bits[1] >> 16 & 0xFFFF) + 8 * HEADS


def _small(character: bytes) -> bytes:
    if len(character) == 1:
        return character.lower()
    is_capital = character[0] == 0xC3 and character[1] < 0x9F and character[1] != 0x97
    return bytes([0xC3, character[1] | 0x20]) if is_capital else character


def _fold_values(
    offsets: Signed,
    data: Bytes,
    folded: Bytes,
    ends: Signed,
    hashes: Hashes,
    kinds: Bytes,
    shapes: Bytes,
) -> int:
    done = 0
    if offsets[0] < 0:
        return DAMAGED
    for i in range(len(ends)):
        start, end = int(offsets[i]), int(offsets[i + 1])
        if end > len(data) or end < start:
            return DAMAGED
        value = data[start:end].tobytes()
        word = fold(value)
        kinds[i] = _kind(value, word)
        turned = _turned(word)
        for bit in (*_shape(word), *_shape(turned)) if len(word) >= 4 else ():
            shapes[bit // 8] |= 1 << bit % 8
        word = min(word, turned)
        folded[done : done + len(word)] = np.frombuffer(word, np.uint8)
        done += len(word)
        ends[i] = done
        hashes[i] = xxhash.xxh64_intdigest(word) & HASH_MASK
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


def _zeros(word: bytes, atoms: list[tuple[int, int, bool]], i: int) -> list[int]:
    """Return the numbers of leading zeros to skip at an atom.

    A number is looked up with its zeros, and without all of them. Other words are only looked up
    whole.
    """
    start, end = atoms[i][0], atoms[min(i + 1, len(atoms) - 1)][0]
    match = re.match(rb"0+(?=[1-9])", word[start:end])
    zeros = 0 if match is None else len(match[0])
    return [0, zeros] if zeros else [0]


def _find_words(
    text: Bytes,
    is_last: int,
    longest: int,
    shapes: Bytes,
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
    wanted = np.unpackbits(shapes, bitorder="little")
    found = asked = i = 0
    starts = [(i, zeros) for i in range(len(atoms)) for zeros in _zeros(word, atoms, i)]
    for i, zeros in starts:
        start, place = atoms[i][0] + zeros, atoms[i][1] + zeros
        cut = not is_last and len(word) - start <= LONGEST
        if cut or len(hits) - found < LONGEST + _WAITING or i == len(atoms) - 1:
            break
        for j in range(i, len(atoms) - 1):
            part = word[start : atoms[j + 1][0]]
            if len(part) > longest or (j > i and not atoms[j][2]):
                break
            if len(part) < 4 or not all(wanted[bit] for bit in _shape(part)):
                continue
            asked += 1
            h = xxhash.xxh64_intdigest(first_of_both(part)) & HASH_MASK
            passed = np.empty(1, np.bool_)
            check_hashes(blocks, np.array([h], np.uint64), passed)
            if passed[0]:
                hits[found] = np.uint64(h).view(np.int64), start, len(part), place
                found += 1
    answers[:] = atoms[i][1], asked
    return found
