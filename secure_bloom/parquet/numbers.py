"""Numbers as SQL writes them: text -> int, float or Decimal, and a double -> its Decimal.

    whole    [+-] digits                                        12   -7   +3
    number   [+-] digits [. digits] [e [+-] digits]             1.5  .5   2e-3

Digits are 0 to 9.  Python's own constructors also take ``1_000``, spaces around, and the digits of
other scripts; all of these are more likely a slip than a number.  Every function raises ValueError.
"""

from __future__ import annotations

import re
from decimal import Decimal, InvalidOperation

_WHOLE = re.compile(r"[+-]?[0-9]+")
_NUMBER = re.compile(r"[+-]?(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:[eE][+-]?[0-9]+)?")
_NOT_FINITE = re.compile(r"[+-]?(?:inf|infinity|nan)", re.IGNORECASE)


def whole_number(text: str) -> int:
    """Return the integer that ``text`` writes."""
    if not _WHOLE.fullmatch(text):
        raise ValueError("not a whole number")
    return int(text)


def floating_number(text: str) -> float:
    """Return the double nearest to the number in ``text``; infinities and NaN by name."""
    if not _NOT_FINITE.fullmatch(text) and not _NUMBER.fullmatch(text):
        raise ValueError("not a number")
    return float(text)


def exact_number(text: str) -> Decimal:
    """Return the finite number that ``text`` writes, every digit of it."""
    if not _NUMBER.fullmatch(text):
        raise ValueError("not a number")
    try:
        return Decimal(text)
    except InvalidOperation:
        # The exponent is beyond what decimal counts, and so beyond every column.
        raise ValueError("not a number that a column can hold") from None


def shortest_decimal(number: float) -> Decimal:
    """Return the decimal number with the fewest digits that reads back as this double.

    0.1 for 0.1.
    """
    return Decimal(repr(float(number)))
