"""Dates, times and lengths of time in pyarrow's scalars, as ISO 8601 texts.

Python's own types end with the year 9999 and with microseconds; these texts are exact.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pyarrow as pa

from secure_bloom.parquet.days import day_text
from secure_bloom.parquet.iso8601 import TICKS, duration_text, time_text, timestamp_text

#: Milliseconds of a day: date64 counts them.
_DAY = 86_400_000


def temporal_text(scalar: pa.Scalar) -> str | None:
    """Return the text of a scalar that is not null.

    None where it is no date, time or length of time.
    """
    return next((text(scalar) for accepts, text in _TEXTS if accepts(scalar.type)), None)


def _nanos(scalar: pa.Scalar) -> int:
    nanos: int = scalar.value * TICKS[scalar.type.unit]
    return nanos


_TEXTS: list[tuple[Callable[[pa.DataType], bool], Callable[[Any], str]]] = [
    (pa.types.is_timestamp, lambda s: timestamp_text(_nanos(s), is_utc=s.type.tz is not None)),
    (pa.types.is_time, lambda s: time_text(_nanos(s))),
    (pa.types.is_duration, lambda s: duration_text(_nanos(s))),
    (pa.types.is_date32, lambda s: day_text(s.value)),
    (pa.types.is_date64, lambda s: day_text(s.value // _DAY)),
]
