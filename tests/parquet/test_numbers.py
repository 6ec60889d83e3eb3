"""Numbers as SQL writes them, and nothing else that Python takes."""

from __future__ import annotations

from collections.abc import Callable
from decimal import Decimal

import pytest
from hypothesis import given
from hypothesis import strategies as st

from secure_bloom.parquet.texts import exact_number, floating_number

SLIPS = ["", " 12", "12 ", "1_000", "\uff11\uff12", "\u0661", "0x10", "1e", "--1", "1,5", "."]


@pytest.mark.parametrize("text", SLIPS)
@pytest.mark.parametrize("of", [floating_number, exact_number])
def test_a_slip_is_no_number(text: str, of: Callable[[str], object]) -> None:
    with pytest.raises(ValueError, match="not a"):
        of(text)


@pytest.mark.parametrize("text", ["nan", "inf", "-Infinity"])
def test_what_is_not_finite(text: str) -> None:
    assert repr(floating_number(text)) == repr(float(text))
    with pytest.raises(ValueError, match="not a number"):
        exact_number(text)


@pytest.mark.parametrize("text", ["+5", "-0", "007", "12."])
def test_signs_and_zeros(text: str) -> None:
    assert exact_number(text) == Decimal(text)
    assert floating_number(text) == float(text)


@given(st.floats(allow_nan=False), st.decimals(allow_nan=False, allow_infinity=False))
def test_what_python_writes_is_read(real: float, exact: Decimal) -> None:
    assert floating_number(repr(real)) == real
    assert exact_number(str(exact)) == exact
