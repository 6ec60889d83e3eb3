"""Days of any year, as texts and as numbers."""

from __future__ import annotations

from datetime import date

import pytest
from hypothesis import given
from hypothesis import strategies as st

from secure_bloom.parquet.texts import day_number, day_text


@given(st.integers(-(2**31), 2**31 - 1))
def test_every_day_of_a_column_has_a_text_of_its_own(days: int) -> None:
    assert day_number(day_text(days)) == days


@given(st.dates())
def test_days_that_python_has_are_those_of_python(day: date) -> None:
    number = (day - date(1970, 1, 1)).days
    assert day_text(number) == day.isoformat()
    assert day_number(day.isoformat()) == number


@pytest.mark.parametrize(
    "text",
    ["", "2024-3-01", "2024-02-30", "024-01-01", "+2024-01-01", "2024-01-01T00", "20240101", "a"],
)
def test_other_texts_are_no_days(text: str) -> None:
    with pytest.raises(ValueError, match="day"):
        day_number(text)
