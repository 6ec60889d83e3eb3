"""The words of columns: what is looked for, what is left out, and how memory bounds it."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pyarrow as pa
import pytest
import xxhash
from hypothesis import given
from hypothesis import strategies as st

from secure_bloom.errors import PolicyError
from secure_bloom.kernels.words import HASH_MASK, first_of_both
from secure_bloom.tracing.forms import digests, moments, other_notations, plain_texts
from secure_bloom.tracing.index import WordIndex
from secure_bloom.tracing.report import TraceReport
from secure_bloom.tracing.runs import in_runs
from secure_bloom.tracing.search import trace_text
from secure_bloom.tracing.subjects import SearchedColumn


def of(array: pa.Array, *parts: str) -> SearchedColumn:
    def values() -> Iterator[pa.Array]:
        yield array

    return SearchedColumn(name="x", values=values, parts=parts)


def hashes(word: str) -> np.ndarray:
    first = first_of_both(word.encode())
    return np.array([xxhash.xxh64_intdigest(first) & HASH_MASK], np.uint64)


def has(index: WordIndex, word: str) -> bool:
    return any(True for _ in index.matches(hashes(word)))


def test_values_are_indexed_folded_and_backwards() -> None:
    index = WordIndex.build([of(pa.array(["Anna@X.io", None, "yes"]))], 1 << 20)
    assert has(index, "annaxio")
    assert has(index, "oixanna")
    # Three letters are in every text.
    assert not has(index, "yes")
    assert index.columns[0].values == 1


@given(st.lists(st.text(min_size=6), max_size=20))
def test_every_value_is_found_in_a_text_of_it(values: list[str]) -> None:
    texts = [value for value in values if value.isascii() and sum(map(str.isalnum, value)) > 5]
    index = WordIndex.build([of(pa.array(texts, pa.string()))], 1 << 20)
    for value in texts:
        trace = trace_text("x", "", value.upper().encode(), index)
        gaps = "".join(it if it.isalnum() else " " for it in value).strip()
        if "  " * 12 not in gaps and not value.replace(".", "").isdigit():
            assert trace.parts


def test_dense_numbers_and_dates_are_left_out_and_counted() -> None:
    dense = WordIndex.build([of(pa.array(range(10_000_000, 10_001_000)))], 1 << 20)
    assert (dense.columns[0].values, dense.columns[0].left_out) == (1_000, 1_000)
    sparse = WordIndex.build([of(pa.array(range(10**9, 10**10, 10**7)))], 1 << 20)
    assert sparse.columns[0].left_out == 0


def test_dates_at_even_steps_are_searched_for_unless_they_are_dense() -> None:
    def days(step: int, count: int, kind: pa.DataType) -> pa.Array:
        return pa.array(range(0, step * count, step), pa.date32()).cast(kind)

    for kind in (pa.date32(), pa.date64()):
        for step in (7, 200):
            index = WordIndex.build([of(days(step, 100, kind))], 1 << 20)
            assert (index.columns[0].left_out, index.columns[0].not_searched) == (0, None)
            assert has(index, "19700101")
        dense = WordIndex.build([of(days(2, 100, kind))], 1 << 20).columns[0]
        assert dense.left_out == 100


@pytest.mark.parametrize(
    ("array", "why"),
    [
        (pa.array(["de", "fi"]), "fewer than 4 letters"),
        (pa.array([True, None]), "booleans"),
        (pa.array([7, 1234]), "fewer than 5 digits"),
        (pa.array(range(100), pa.date32()), "so dense"),
    ],
)
def test_a_column_of_which_no_value_is_searched_for_is_not_clean(array: pa.Array, why: str) -> None:
    index = WordIndex.build([of(array)], 1 << 20)
    assert why in str(index.columns[0].not_searched)
    assert not TraceReport(columns=tuple(index.columns)).is_clean


def test_a_column_without_values_leaves_nothing_unsearched() -> None:
    index = WordIndex.build([of(pa.array([None, None], pa.string()))], 1 << 20)
    assert TraceReport(columns=tuple(index.columns)).is_clean


def test_memory_bounds_the_values_and_the_report_says_so() -> None:
    texts = pa.array([f"person{n}@post.fi" for n in range(20_000)])
    index = WordIndex.build([of(texts)], 40 * 10_000)
    assert not index.columns[0].is_whole
    assert not TraceReport(columns=tuple(index.columns)).is_clean
    assert WordIndex.build([of(texts)], 1 << 30).columns[0].is_whole


def test_parts_of_values_count_as_values() -> None:
    texts = pa.array(["anna.smith77@post.fi"])
    assert has(WordIndex.build([of(texts, "local")], 1 << 20), "annasmith77")
    assert not has(WordIndex.build([of(texts)], 1 << 20), "annasmith77")
    with pytest.raises(PolicyError, match="not a part of a value"):
        of(texts, "middle")


def test_fewer_than_one_absent_word_in_a_million_passes() -> None:
    index = WordIndex.build([of(pa.array([f"person{n}@post.fi" for n in range(20_000)]))], 1 << 25)
    absent = np.random.default_rng(1).integers(0, 1 << 63, 2_000_000).astype(np.uint64)
    passed = sum(len(at) for _, at, _ in index.matches(absent & np.uint64(HASH_MASK)))
    assert passed < 2


def test_columns_share_an_index() -> None:
    index = WordIndex.build([of(pa.array(["anna@x.io"])), of(pa.array(["anna@x.io"]))], 1 << 20)
    assert [owner for owner, _, _ in index.matches(hashes("annaxio"))] == [0, 1]


def test_notations_of_numbers_and_dates() -> None:
    def notations(array: pa.Array) -> set[bytes]:
        return {it for _, texts in other_notations(array) for it in texts.to_pylist()}

    assert {b"12345678.00".replace(b".", b""), b"12345678e7"} <= notations(pa.array([12_345_678]))
    day = pa.array([6999], pa.date32())
    assert {b"01031989", b"19890301", b"march011989", b"131989", b"311989"} <= notations(day)
    assert [it.to_pylist() for it in moments(day)] == [[6999]]
    assert [it.to_pylist() for it in plain_texts(day)] == [[b"1989-03-01"]]


def test_digests_by_their_size() -> None:
    assert len(set(digests([b"Anna"], {16}))) == 3
    assert {len(it) for it in digests([b"anna"], {32, 64})} == {32, 64}


def test_texts_inside_a_text() -> None:
    found: list[bytes] = []
    inner = list(in_runs(b"x=YW5uYS5zbWl0aEBwb3N0LmZp y", found.append))
    assert inner == [b"anna.smith@post.fi"]
    assert found == []
