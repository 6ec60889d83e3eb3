"""Words of texts in C and in Python: the same atoms, words, hits and runs."""

from __future__ import annotations

import re
from collections.abc import Iterator

import numpy as np
import pytest
import xxhash
from hypothesis import given
from hypothesis import strategies as st

from secure_bloom.bloom.split_block import SplitBlockBloomFilter
from secure_bloom.kernels import extension
from secure_bloom.kernels.words import (
    BASE64,
    HAS_AT,
    HAS_PARTS,
    HASH_MASK,
    HEADS,
    HIT,
    IS_EXAMPLE,
    Found,
    Room,
    find_runs,
    find_words,
    first_of_both,
    fold,
    fold_values,
    new_shapes,
)

native = extension.native
needs_native = pytest.mark.skipif(native is None, reason="needs the C extension")

#: Texts with what is special to the kernels: marks, escapes, characters of UTF-8, cut ones.
CHARACTERS = ["\u2013", "\u3000", "\ufeff", "\U0001f600", "\u6771", "\u00dc", "\u00fc"]
PIECES = st.sampled_from(
    [
        *(b"a", b"Z", b"7", b"00", b" ", b"@", b"-", b"\\n", b"\\", b"\xc3", b"\x94", b"\0"),
        *(it.encode() for it in CHARACTERS),
        *(b"." * 30, b"abc", b"example.com"),
    ]
)
TEXTS = st.lists(PIECES, max_size=40).map(b"".join) | st.binary(max_size=60)


@pytest.fixture(autouse=True)
def restored() -> Iterator[None]:
    yield
    extension.native = native


ANY = np.full(2 * HEADS, 255, np.uint8)


def as_array(text: bytes) -> np.ndarray:
    return np.frombuffer(text, np.uint8)


def folded(values: list[bytes]) -> tuple[bytes, list[int], list[int], list[int], bytes]:
    offsets, shapes = np.cumsum([0, *map(len, values)]), new_shapes()
    data, ends, hashes, kinds = fold_values(offsets, as_array(b"".join(values)), shapes)
    return data.tobytes(), ends.tolist(), hashes.tolist(), kinds.tolist(), shapes.tobytes()


@needs_native
@given(st.lists(TEXTS, max_size=6))
def test_values_are_folded_by_both_kernels_alike(values: list[bytes]) -> None:
    extension.native = native
    one = folded(values)
    extension.native = None
    assert folded(values) == one


@given(TEXTS)
def test_a_value_and_its_reverse_are_one_word(value: bytes) -> None:
    word = fold(value)
    turned = b"".join(reversed(re.findall(rb"[\x00-\x7f]|[\xc2-\xf4][\x80-\xbf]+", word)))
    if not word.isdigit():
        assert folded([word])[:3] == folded([turned])[:3]


def found_in(
    text: bytes,
    words: list[bytes],
    *,
    is_last: bool = True,
    hits: int = 1000,
    shapes: np.ndarray = ANY,
) -> Found:
    asked = SplitBlockBloomFilter(64)
    hashes = [xxhash.xxh64_intdigest(first_of_both(word)) & HASH_MASK for word in words]
    asked.insert_hashes(np.array(hashes, np.uint64))
    longest = max(map(len, words))
    return find_words(
        as_array(text), Room(len(text), hits), longest, shapes, asked._blocks(), is_last=is_last
    )


@needs_native
@given(TEXTS, TEXTS, st.booleans())
def test_words_are_found_both_ways_alike(text: bytes, other: bytes, is_last: bool) -> None:
    words = [fold(text)[:9], fold(other)[:200], b"a7za", b"z7"]
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
    counts = [find_runs(as_array(text + other), BASE64, least, spans[0])]
    extension.native = None
    counts.append(find_runs(as_array(text + other), BASE64, least, spans[1]))
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
        ("0012345678", "12345678"),
        ("0x12,000 012345678", "12345678"),
        ("00 12345678", "12345678"),
        ("00345.50", "34550"),
    ],
)
def test_a_word_is_found_in_a_text(kernel: object, text: str, word: str) -> None:
    extension.native = kernel
    found = found_in(f"before, {text}; after".encode(), [word.encode()])
    start, length = found.hits[0].tolist()[1:3]
    assert found.folded[start : start + length].tobytes() == word.encode()


@given(st.text("abcdefghijklmnopqrstuvwxyz0123456789\u00fc\u6771", min_size=8, max_size=60))
def test_a_long_word_and_the_same_backwards_have_one_hash(word: str) -> None:
    extension.native = native
    values = [it.encode() for it in (f"x{word}", f"{word[::-1]}x")]
    offsets = np.cumsum([0, *map(len, values)])
    _, _, hashes, _ = fold_values(offsets, as_array(b"".join(values)))
    assert hashes[0] == hashes[1]


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
    kinds = folded([b"a@example.com", b"a b", b"ab"])[3]
    assert kinds[0] & HAS_AT
    assert kinds[0] & IS_EXAMPLE
    assert kinds[1] & HAS_PARTS
    assert not kinds[2] & (HAS_PARTS | HAS_AT)


@pytest.mark.parametrize("kernel", [pytest.param(native, marks=needs_native), None])
def test_only_words_with_a_known_head_and_tail_are_asked(kernel: object) -> None:
    extension.native = kernel
    shapes = new_shapes()
    fold_values(np.array([0, 4, 10]), as_array(b"annabob!bo"), shapes)
    text, words = b"anna carl annacarl carlanna ann bobbo", [b"anna", b"carl", b"bobbo"]
    found = found_in(text, words, shapes=shapes)
    hits = [found.folded[row[1] : row[1] + row[2]].tobytes() for row in found.hits]
    assert hits == [b"anna", b"bobbo"]
    assert found.asked == 2


@needs_native
def test_arguments_that_do_not_fit_are_refused() -> None:
    blocks, shapes = np.zeros(8, np.uint32), new_shapes()
    text, room = as_array(b"anna"), Room(4, 300)
    fitting = [text, 1, 9, shapes, blocks, room.folded, room.atoms, room.hits, room.answers]
    assert native.find_words(*fitting) == 0
    for place, wrong in (
        (2, 256),
        (2, -1),
        (3, shapes[:7].copy()),
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
        fold_values(np.array(offsets, np.int64), as_array(b"anna"))
