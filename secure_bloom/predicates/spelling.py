"""How values of a type are written in a condition: the hint for one that was not understood."""

from __future__ import annotations

from collections.abc import Callable

import pyarrow as pa

_TEXT = "a text in quotes: '5'"
_EXAMPLES: list[tuple[Callable[[pa.DataType], bool], str]] = [
    (pa.types.is_string, _TEXT),
    (pa.types.is_large_string, _TEXT),
    (pa.types.is_string_view, _TEXT),
    (pa.types.is_boolean, "true or false"),
    (pa.types.is_integer, "12 or -12"),
    (pa.types.is_floating, "1.5, -2e-3 or inf"),
    (pa.types.is_decimal, "1.50"),
    (pa.types.is_date, "2024-03-01"),
    (pa.types.is_time, "10:30:00"),
    (pa.types.is_duration, "PT1H30M or P2DT0.5S (ISO 8601)"),
    (
        lambda t: pa.types.is_timestamp(t) and t.tz is None,
        "2024-03-01T10:30:00, without a zone; an instant (INT96) in UTC",
    ),
    (pa.types.is_timestamp, "2024-03-01T10:30:00Z"),
    (pa.types.is_fixed_size_binary, "text, hex:00ff or, of 16 bytes, a UUID"),
]


def spelled(of: pa.DataType) -> str | None:
    """How a value of the type is written; None where there is no one way."""
    example = next((text for accepts, text in _EXAMPLES if accepts(of)), None)
    return None if example is None else f"write it as {example}"
