"""What Python says of a value and a condition: it compares numbers of all its types exactly."""

from __future__ import annotations

import operator
from collections.abc import Callable
from typing import Any

COMPARISONS: dict[str, Callable[[Any, Any], bool]] = {
    "=": operator.eq,
    "!=": operator.ne,
    "<": operator.lt,
    "<=": operator.le,
    ">": operator.gt,
    ">=": operator.ge,
}
TRUTHS: dict[str, Callable[[Any, Any], bool]] = {
    **COMPARISONS,
    "in": lambda value, some: any(value == one for one in some),
    "not in": lambda value, some: all(value != one for one in some),
}
