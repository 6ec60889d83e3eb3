"""Days, times and lengths of time as text, beyond what Python's own types hold."""

from __future__ import annotations

import datetime as dt

import pytest
from hypothesis import given
from hypothesis import strategies as st

from secure_bloom.parquet.texts import (
    SECOND,
    day_text,
    duration_nanos,
    duration_text,
    time_text,
    timestamp_text,
)


@given(st.dates())
def test_days_are_those_of_python(day: dt.date) -> None:
    assert day_text((day - dt.date(1970, 1, 1)).days) == day.isoformat()


def test_days_go_on_where_pythons_end() -> None:
    last = (dt.date.max - dt.date(1970, 1, 1)).days
    assert day_text(last + 1) == "10000-01-01"
    assert day_text((dt.date.min - dt.date(1970, 1, 1)).days - 1) == "0000-12-31"


def test_times_have_nine_digits() -> None:
    assert time_text(3_723 * SECOND + 45) == "01:02:03.000000045"
    assert timestamp_text(-1, is_utc=True) == "1969-12-31T23:59:59.999999999Z"
    assert timestamp_text(0, is_utc=False) == "1970-01-01T00:00:00.000000000"


@given(st.integers(-(2**70), 2**70))
def test_a_length_of_time_is_read_as_it_was_written(nanos: int) -> None:
    assert duration_nanos(duration_text(nanos)) == nanos


@pytest.mark.parametrize(
    ("text", "seconds"), [("P2W", 1_209_600), ("PT90M", 5400), ("-P1DT0.5S", -86_400.5)]
)
def test_lengths_that_others_write(text: str, seconds: float) -> None:
    assert duration_nanos(text) == int(seconds * SECOND)


@pytest.mark.parametrize("text", ["", "P", "PT", "P1M", "P1Y", "1D", "PT1.1234567890S", "P1D1H"])
def test_what_has_no_one_length_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match="duration"):
        duration_nanos(text)
