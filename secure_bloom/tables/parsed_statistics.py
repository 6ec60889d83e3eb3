"""Turn the statistics columns of a checkpoint into the text that actions have.

With ``delta.checkpoint.writeStatsAsJson`` false, a checkpoint has ``stats_parsed`` alone.  A commit
that names the file again needs the text, because without it a file with deleted rows could not be
read.  A bound that has no exact form in JSON is left out: a missing bound is better than a wrong
one.
"""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from datetime import date, datetime
from decimal import Decimal
from typing import Any


def stats_text(parsed: Mapping[str, Any]) -> str:
    """Return the statistics as text. PROTOCOL.md, "Per-file Statistics"."""
    return json.dumps(_plain(parsed), separators=(",", ":"), ensure_ascii=False)


def _plain(value: Any) -> Any:
    if isinstance(value, Mapping):
        plain = {name: _plain(part) for name, part in value.items()}
        return {name: part for name, part in plain.items() if part is not None}
    return next((form(value) for kind, form in _FORMS.items() if isinstance(value, kind)), None)


def _time_text(value: datetime) -> str:
    # UTC is written as Z; a time without a zone has none.
    return value.isoformat(timespec="microseconds").replace("+00:00", "Z")


def _decimal_number(value: Decimal) -> float | int | None:
    if value == value.to_integral_value():
        return int(value)
    # It becomes a number of JSON only if it reads back as the same decimal.
    return float(value) if Decimal(repr(float(value))) == value else None


#: Kinds of values and how JSON says them; the first that fits counts.
_FORMS: dict[type, Any] = {
    bool: bool,
    str: str,
    int: int,
    float: lambda value: value if math.isfinite(value) else None,
    Decimal: _decimal_number,
    datetime: _time_text,
    date: date.isoformat,
}
