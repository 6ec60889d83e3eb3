"""A value between two of a type, below all, above all: every comparison as mathematics has it."""

from __future__ import annotations

import math
from decimal import Decimal
from fractions import Fraction
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from secure_bloom.errors import PolicyError
from secure_bloom.predicates.coercion import Coerced, coerced_values

_DOUBLES = st.floats(allow_nan=False)
_NUMBERS = st.one_of(
    _DOUBLES,
    st.floats(width=32, allow_nan=False),
    st.integers(-(2**70), 2**70),
    st.integers(-300, 300),
    st.decimals(allow_nan=False, places=3, min_value=-1000, max_value=1000),
)


def place_of(of: pa.DataType, value: Any) -> Coerced:
    (place,) = coerced_values("x", of, [value])
    return place


def _number(value: Any) -> Any:
    """What Python compares exactly; infinities stay what they are."""
    return value if isinstance(value, float) and math.isinf(value) else Fraction(value)


def _is_placed(of: pa.DataType, stored: Any, value: Any) -> None:
    """That the place says of ``stored`` what the exact comparison says."""
    place = place_of(of, value)
    floor = None if place.floor is None else _number(place.floor.as_py())
    assert place.is_exact == (floor == _number(value))
    is_less = _number(stored) < _number(value)
    assert is_less == (
        floor is not None
        and (_number(stored) < floor if place.is_exact else _number(stored) <= floor)
    )


@given(st.sampled_from([8, 16, 32, 64]), st.booleans(), st.data())
def test_numbers_find_their_place_among_integers(
    bits: int, signed: bool, data: st.DataObject
) -> None:
    low = -(2 ** (bits - 1)) if signed else 0
    stored = data.draw(st.integers(low, low + 2**bits - 1))
    near = st.sampled_from([stored, stored + 0.5, stored - Fraction(1, 4), stored + 1])
    value = data.draw(st.one_of(_NUMBERS, near.map(lambda n: Decimal(float(n)))))
    _is_placed(getattr(pa, f"{'' if signed else 'u'}int{bits}")(), stored, value)


@given(st.sampled_from([16, 32, 64]), st.data())
def test_floats_against_doubles(width: Any, data: st.DataObject) -> None:
    stored = data.draw(st.floats(width=width, allow_nan=False))
    near = st.sampled_from([stored, math.nextafter(stored, math.inf), math.nextafter(stored, -5)])
    _is_placed(getattr(pa, f"float{width}")(), stored, data.draw(st.one_of(_DOUBLES, near)))


@given(st.sampled_from([(5, 2), (38, 0), (76, 76), (9, -3)]), st.data())
def test_numbers_find_their_place_among_decimals(
    digits: tuple[int, int], data: st.DataObject
) -> None:
    precision, scale = digits
    unscaled = data.draw(st.integers(-(10**precision) + 1, 10**precision - 1))
    stored = Fraction(unscaled) / Fraction(10) ** scale
    of = pa.decimal256(precision, scale)
    _is_placed(of, stored, data.draw(st.integers(-(10**80), 10**80)))
    value = data.draw(st.decimals(allow_nan=False, allow_infinity=False))
    _is_placed(of, stored, value)


def test_the_bounds_of_a_wide_decimal_are_exact() -> None:
    """Python's own minus rounds to 28 digits: -1 counted as one of a type that ends above it."""
    below = place_of(pa.decimal256(76, 76), -1)
    assert below.floor is None


@given(st.binary(min_size=3, max_size=3), st.binary(max_size=5))
def test_bytes_of_another_length(stored: bytes, value: bytes) -> None:
    place = place_of(pa.binary(3), value)
    floor = None if place.floor is None else place.floor.as_py()
    assert place.is_exact == (len(value) == 3)
    assert (stored <= value) == (floor is not None and stored <= floor)


@pytest.mark.parametrize("of", [pa.int8(), pa.uint64(), pa.decimal128(5, 2), pa.float32()], ids=str)
@pytest.mark.parametrize(
    "value", [float("nan"), "nan", Decimal("nan"), np.float32("nan")], ids=repr
)
def test_a_nan_has_no_place(of: pa.DataType, value: Any) -> None:
    assert place_of(of, value).is_nan


@pytest.mark.parametrize(
    "of", [pa.int8(), pa.decimal128(5, 2), pa.float16(), pa.float64()], ids=str
)
@pytest.mark.parametrize("text", ["1e999999999", "-1e999999999", "1e-999999999", "9" * 5000])
def test_a_number_of_any_size_takes_no_time(of: pa.DataType, text: str) -> None:
    place = place_of(of, text)
    assert not place.is_exact or place.floor.as_py() == 0


@pytest.mark.parametrize("kind", [Fraction, np.longdouble])
def test_a_whole_number_that_is_no_double_is_not_rounded(kind: Any) -> None:
    place = place_of(pa.int64(), kind(2**53 + 1))
    assert place.floor is not None
    assert (place.floor.as_py(), place.is_exact) == (2**53 + 1, True)


@pytest.mark.parametrize(
    ("of", "value"),
    [
        (pa.int64(), "1_000"),
        (pa.int64(), "x"),
        (pa.int64(), True),
        (pa.int64(), b"5"),
        (pa.int64(), np.complex64(5 + 3j)),
        (pa.float64(), np.array(5)),
        (pa.float64(), "secret"),
        (pa.decimal128(5, 2), "1,5"),
        (pa.decimal128(5, 2), Decimal("sNaN")),
        (pa.timestamp("us"), 5),
        (pa.timestamp("us"), "2024-03-01T00:00:00Z"),
        (pa.time64("us"), "24:00:01"),
        (pa.duration("us"), 5),
        (pa.date32(), 5),
        (pa.string(), b"x"),
    ],
    ids=str,
)
def test_a_value_of_another_kind_is_refused_without_it(of: pa.DataType, value: Any) -> None:
    with pytest.raises(PolicyError, match="column x: the value is not one that") as caught:
        place_of(of, value)
    assert "secret" not in str(caught.value)


@pytest.mark.parametrize("kind", [pa.date32(), pa.timestamp("us"), pa.timestamp("us", "UTC")])
def test_a_month_without_a_day_is_told_how_to_ask_for_a_month(kind: pa.DataType) -> None:
    with pytest.raises(PolicyError) as caught:
        coerced_values("at", kind, ["2024-05"])
    assert "a month is >= its first day and < that of the next month" in str(caught.value.hint)
    assert "2024-05" not in f"{caught.value} {caught.value.hint}"
