"""Words of texts in C and in Python: the same atoms, words, hits and runs."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pytest
import xxhash
from hypothesis import given
from hypothesis import strategies as st

from secure_bloom.bloom.split_block import SplitBlockBloomFilter
from secure_bloom.kernels import extension
from secure_bloom.kernels.words import (
    HAS_AT,
    HAS_PARTS,
    HEADS,
    HIT,
    IS_EXAMPLE,
    Found,
    Room,
    add_heads,
    find_runs,
    find_words,
    fold,
    fold_values,
)

native = extension.native
needs_native = pytest.mark.skipif(native is None, reason="needs the C extension")

#: Texts with what is special to the kernels: marks, escapes, characters of UTF-8, cut ones.
CHARACTERS = ["\u2013", "\u3000", "\ufeff", "\U0001f600", "\u6771", "\u00dc", "\u00fc"]
PIECES = st.sampled_from(
    [
        *(b"a", b"Z", b"7", b" ", b"@", b"-", b"\\n", b"\\", b"\xc3", b"\x94", b"\0"),
        *(it.encode() for it in CHARACTERS),
        *(b"." * 30, b"abc", b"example.com"),
    ]
)
TEXTS = st.lists(PIECES, max_size=40).map(b"".join) | st.binary(max_size=60)


@pytest.fixture(autouse=True)
def restored() -> Iterator[None]:
    yield
    extension.native = native


ANY_HEAD = np.full(HEADS, 255, np.uint8)


def as_array(text: bytes) -> np.ndarray:
    return np.frombuffer(text, np.uint8)


def folded(
    values: list[bytes], *, backwards: bool
) -> tuple[bytes, list[int], list[int], list[int]]:
    offsets = np.cumsum([0, *map(len, values)])
    data, ends, hashes, kinds = fold_values(
        offsets, 0, as_array(b"".join(values)), backwards=backwards
    )
    return data.tobytes(), ends.tolist(), hashes.tolist(), kinds.tolist()


@needs_native
@given(st.lists(TEXTS, max_size=6), st.booleans())
def test_values_are_folded_both_ways_alike(values: list[bytes], backwards: bool) -> None:
    extension.native = native
    one = folded(values, backwards=backwards)
    extension.native = None
    assert folded(values, backwards=backwards) == one


def found_in(
    text: bytes,
    words: list[bytes],
    *,
    is_last: bool = True,
    hits: int = 1000,
    heads: np.ndarray = ANY_HEAD,
) -> Found:
    asked = SplitBlockBloomFilter(64)
    hashes = [xxhash.xxh64_intdigest(word) for word in words]
    asked.insert_hashes(np.array(hashes, np.uint64))
    bits = np.zeros(256, np.uint8)
    bits[[len(word) for word in words]] = 1
    lengths = np.packbits(bits, bitorder="little")
    return find_words(
        as_array(text), Room(len(text), hits), lengths, heads, asked._blocks(), is_last=is_last
    )


@needs_native
@given(TEXTS, TEXTS, st.booleans())
def test_words_are_found_both_ways_alike(text: bytes, other: bytes, is_last: bool) -> None:
    words = [fold(text)[:9], fold(other)[:200], b"a", b"z7"]
    extension.native = native
    one = found_in(text + other + text, words, is_last=is_last)
    hits = one.hits.tolist()
    extension.native = None
    two = found_in(text + other + text, words, is_last=is_last)
    assert (two.hits.tolist(), two.done, two.asked) == (hits, one.done, one.asked)


@needs_native
@given(TEXTS, TEXTS, st.integers(1, 20))
def test_runs_are_found_both_ways_alike(text: bytes, other: bytes, least: int) -> None:
    spans = [np.zeros((3, 2), np.int64), np.zeros((3, 2), np.int64)]
    extension.native = native
    counts = [find_runs(as_array(text + other), least, spans[0])]
    extension.native = None
    counts.append(find_runs(as_array(text + other), least, spans[1]))
    assert counts[0] == counts[1]
    assert spans[0].tolist() == spans[1].tolist()


@pytest.mark.parametrize("kernel", [pytest.param(native, marks=needs_native), None])
@pytest.mark.parametrize(
    ("text", "word"),
    [
        ("Anna.Smith@Example.com", "annasmithexamplecom"),
        ("DE44 5001-0517 5407", "de44500105175407"),
        ("JÜRGEN  MÜLLER", "jürgenmüller"),
        ("\\nanna", "anna"),
        ("x\x94anna", "anna"),
    ],
)
def test_a_word_is_found_in_a_text(kernel: object, text: str, word: str) -> None:
    extension.native = kernel
    found = found_in(f"before, {text}; after".encode(), [word.encode()])
    start, length = found.hits[0].tolist()[1:3]
    assert found.folded[start : start + length].tobytes() == word.encode()


@pytest.mark.parametrize("kernel", [pytest.param(native, marks=needs_native), None])
def test_atoms_far_from_each_other_are_no_word(kernel: object) -> None:
    extension.native = kernel
    assert len(found_in(b"anna" + b" " * 24 + b"smith", [b"annasmith"]).hits) == 1
    assert len(found_in(b"anna" + b" " * 25 + b"smith", [b"annasmith"]).hits) == 0


@pytest.mark.parametrize("kernel", [pytest.param(native, marks=needs_native), None])
def test_hits_without_room_are_left_for_the_next_call(kernel: object) -> None:
    extension.native = kernel
    text, start, total = b"anna " * 1000, 0, 0
    while start < len(text):
        found = found_in(text[start:], [b"anna"], hits=300)
        total += len(found.hits)
        start += found.done
    assert total == 1000


def test_what_is_known_of_a_value() -> None:
    kinds = folded([b"a@example.com", b"a b", b"ab"], backwards=False)[3]
    assert kinds[0] & HAS_AT
    assert kinds[0] & IS_EXAMPLE
    assert kinds[1] & HAS_PARTS
    assert not kinds[2] & (HAS_PARTS | HAS_AT)


@pytest.mark.parametrize("kernel", [pytest.param(native, marks=needs_native), None])
def test_only_words_with_a_known_head_are_asked(kernel: object) -> None:
    extension.native = kernel
    heads = np.zeros(HEADS, np.uint8)
    add_heads(heads, as_array(b"xxannabob!"), np.array([2, 6]))
    words = [b"anna", b"carl", b"bob!"]
    found = found_in(b"anna carl ann", words, heads=heads)
    assert [found.folded[row[1] : row[1] + row[2]].tobytes() for row in found.hits] == [b"anna"]
    assert found.asked == 1


@needs_native
def test_arguments_that_do_not_fit_are_refused() -> None:
    blocks, lengths = np.zeros(8, np.uint32), np.zeros(32, np.uint8)
    text, room = as_array(b"anna"), Room(4, 300)
    heads = np.zeros(HEADS, np.uint8)
    fitting = [text, 1, lengths, heads, blocks, room.folded, room.atoms, room.hits, room.answers]
    assert native.find_words(*fitting) == 0
    for place, wrong in (
        (2, lengths[:31].copy()),
        (3, heads[:7].copy()),
        (4, blocks[:7].copy()),
        (5, room.folded[:4].copy()),
        (6, room.atoms[:4].copy()),
        (7, np.zeros((200, HIT), np.int64)),
        (8, room.answers[:1].copy()),
    ):
        with pytest.raises(ValueError, match="do not fit"):
            native.find_words(*[wrong if i == place else it for i, it in enumerate(fitting)])


@pytest.mark.parametrize("offsets", [[0, 9], [3, 1], [-1, 2]])
def test_offsets_that_leave_the_data_are_refused(offsets: list[int]) -> None:
    with pytest.raises(ValueError, match="offsets"):
        fold_values(np.array(offsets, np.int64), 0, as_array(b"anna"))
