"""The answers of indexes: every row may satisfy a comparison, no row does, or these rows may.

Paimon joins the answers of several indexes, and of several comparisons, by AND and OR.
"""

from __future__ import annotations

import enum
from dataclasses import dataclass
from typing import TypeAlias


class Whole(enum.Enum):
    """An answer for the whole file, which names no rows."""

    REMAIN = enum.auto()
    SKIP = enum.auto()


@dataclass(frozen=True, slots=True)
class Rows:
    """The rows of a bitmap: bit ``i`` is row ``i``."""

    bits: int


Answer: TypeAlias = Whole | Rows


def remains(answer: Answer) -> bool:
    """Whether a row is left."""
    return answer.bits != 0 if isinstance(answer, Rows) else answer is Whole.REMAIN


def both(first: Answer, second: Answer) -> Answer:
    """AND."""
    if isinstance(first, Whole):
        return second if first is Whole.REMAIN else first
    if isinstance(second, Whole):
        return first if second is Whole.REMAIN else second
    return Rows(first.bits & second.bits)


def either(first: Answer, second: Answer) -> Answer:
    """OR."""
    if isinstance(first, Whole):
        return first if first is Whole.REMAIN else second
    if isinstance(second, Whole):
        return second if second is Whole.REMAIN else first
    return Rows(first.bits | second.bits)


def either_in_0_9(first: Answer, second: Answer) -> Answer:
    """OR before Paimon 1.1: rows joined with an answer for the whole file become an AND."""
    if isinstance(first, Rows) and isinstance(second, Whole):
        return both(first, second)
    return either(first, second)
