"""Each value of a file counts once, however it is written there."""

from __future__ import annotations

import datetime
import decimal
import random
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from secure_bloom.tracing.index import WordIndex
from secure_bloom.tracing.lake import occurrences
from secure_bloom.tracing.search import confirm, trace_text
from secure_bloom.tracing.subjects import SearchedColumn

_random = random.Random(5)
DAYS = [
    datetime.date(1950, 1, 1) + datetime.timedelta(days=n)
    for n in _random.sample(range(8_000), 1_300)
]
NUMBERS = _random.sample(range(10**8, 10**9), 70)
DECIMALS = [decimal.Decimal(n) / 100 for n in NUMBERS]
PADDED = [f"00{n}" for n in NUMBERS]


def counts(values: Sequence[object], text: str) -> list[tuple[int, int, int]]:
    """Return how many values passed, were compared and were confirmed."""

    def arrays() -> Iterator[pa.Array]:
        yield pa.array(values)

    index = WordIndex.build([SearchedColumn(name="x", values=arrays)], 1 << 24)
    trace = trace_text("x", "", text.encode(), index)
    confirm([trace], index)
    found = [it for part in trace.parts for it in occurrences(part, index)]
    return [(it.passed, it.compared, it.confirmed) for it in found]


@pytest.mark.parametrize("mark", ["\n", "\r\n", "\t", ",", ";", '","', "|", "', '"])
@pytest.mark.parametrize("form", ["%d.%m.%Y", "%m/%d/%Y", "%d %b %Y", "%d-%m-%Y", "%Y-%m-%d"])
def test_two_dates_in_a_row_are_no_third(form: str, mark: str) -> None:
    written = mark.join(it.strftime(form) for it in DAYS[:1_100])
    assert counts(DAYS, written) == [(1_100, 1_000, 1_000)]


def test_dates_without_zeros_count_once_if_their_digits_are_of_one_date() -> None:
    """``1.11.1950`` and ``11.1.1950`` have the same digits."""
    written = [f"{it.day}.{it.month}.{it.year}" for it in DAYS[:1_100]]
    [(passed, compared, confirmed)] = counts(DAYS, "\n".join(written))
    assert 1_050 <= passed <= len({it.replace(".", "") for it in written}) == 1_096
    assert 950 <= compared == confirmed


#: Values, and two notations of each.
PAIRS: dict[str, tuple[Sequence[Any], Callable[[Any], str], Callable[[Any], str]]] = {
    "decimals of numbers": (NUMBERS, str, lambda it: f"{it}.00"),
    "doubles of numbers": (NUMBERS, lambda it: f"{it:,}", lambda it: f"{it}.0"),
    "two that are no values": (NUMBERS, lambda it: f"{it}.0", lambda it: f"{it}.00"),
    "exponents": (NUMBERS, str, lambda it: f"{it:.8e}"),
    "exponents with all digits": (
        [10 * it for it in NUMBERS],
        str,
        lambda it: f"{it:.9E}",
    ),
    "padded numbers": (NUMBERS, str, lambda it: f"{it:012}"),
    "padded texts": (PADDED, str, lambda it: it.lstrip("0")),
    "padded further": (PADDED, lambda it: f"0000{it}", lambda it: it.lstrip("0")),
    "floats": (list(map(float, NUMBERS)), lambda it: f"{it:.1f}", lambda it: f"{it:.2f}"),
    "floats with one place": ([it / 10 for it in NUMBERS], str, lambda it: f"{it:.2f}"),
    "decimals": (DECIMALS, lambda it: f"{it:.2f}", lambda it: f"{it.normalize():f}"),
    "capitals": ([f"anna{n}@post.fi" for n in NUMBERS], str, str.upper),
}


@pytest.mark.parametrize("what", PAIRS)
def test_a_value_in_two_notations_counts_once(what: str) -> None:
    values, *writers = PAIRS[what]
    text = "".join(f"{write(value)}\n" for write in writers for value in values)
    assert counts(values, text) == [(70, 70, 70)]


@pytest.mark.parametrize("form", ["%d.%m.%Y", "%d %B %Y", "%y%m%d", "%Y-%j", "%Y-%m-%d 00:00:00"])
def test_a_date_in_two_notations_counts_once(form: str) -> None:
    some = DAYS[:1_200]
    text = "".join(f"{it}\n{it.strftime(form)}\n" for it in some)
    [(passed, compared, confirmed)] = counts(DAYS, text)
    assert passed == 1_200
    # Of the first thousand words each two are one value, if both are long enough.
    assert 500 <= compared == confirmed < 550


@pytest.mark.parametrize(
    "write",
    [
        lambda it: f"{it:012}",
        lambda it: f'{{"id": "{it:020}"}}',
        lambda it: f"0000,{it:010}",
        lambda it: f"000{it}.00",
        lambda it: f"No.000{it}",
        lambda it: np.base_repr(it, 10, 3),
        lambda it: f"{it:012}".encode().hex(),
    ],
    ids=["padded", "JSON", "after a zero", "decimal", "after a dot", "numpy", "hexadecimal"],
)
def test_numbers_with_zeros_before_them_are_found(write: Callable[[int], str]) -> None:
    text = "\n".join(map(write, NUMBERS))
    assert counts(NUMBERS, text) == [(70, 70, 70)]
    assert counts([f"000{it}" for it in NUMBERS], text) == [(70, 70, 70)]


def test_values_in_a_row_that_overlap_count_as_the_longest() -> None:
    values = ["anna.huber@post.fi", "huber@post.fi", *(f"bob{n}@post.fi" for n in range(9))]
    assert counts(values, "anna.huber@post.fi bob1@post.fi") == [(2, 2, 2)]
