"""Dates and times of pyarrow as texts, beyond what Python's own types hold."""

from __future__ import annotations

import pyarrow as pa
import pytest

from secure_bloom.parquet.texts import temporal_text


@pytest.mark.parametrize(
    ("number", "type_", "wanted"),
    [
        (1, pa.timestamp("ns"), "1970-01-01T00:00:00.000000001"),
        (1, pa.timestamp("ns", "Europe/Rome"), "1970-01-01T00:00:00.000000001Z"),
        (2**38, pa.timestamp("s"), "10680-07-14T06:09:04.000000000"),
        (5, pa.time64("ns"), "00:00:00.000000005"),
        (5, pa.duration("ns"), "PT0.000000005S"),
        (2**31 - 1, pa.date32(), "5881580-07-11"),
        (-86_400_000, pa.date64(), "1969-12-31"),
    ],
    ids=str,
)
def test_texts_are_exact(number: int, type_: pa.DataType, wanted: str) -> None:
    assert temporal_text(pa.scalar(number, type_)) == wanted


def test_other_scalars_have_none() -> None:
    assert temporal_text(pa.scalar("1970-01-01")) is None
