"""Text that came from a file, as it may be shown: nothing in it acts, misleads or goes on forever.

A path or a column name may hold escape sequences that drive a terminal, characters that turn the
direction of writing, bytes that are no text at all, or a megabyte.
"""

from __future__ import annotations

_LONGEST = 300


def legible(text: str, longest: int = _LONGEST) -> str:
    """``text`` with its unprintable characters written out, cut in its middle when too long."""
    # Cut before as well: what is a megabyte is not worth writing out.
    text = _cut(text, longest)
    if text.isprintable():
        return text
    return _cut("".join(c if c.isprintable() else _written_out(c) for c in text), longest)


def _cut(text: str, longest: int) -> str:
    if len(text) <= longest:
        return text
    tail = longest // 3
    return f"{text[: longest - tail - 1]}…{text[-tail:]}"


def _written_out(char: str) -> str:
    # A byte of a path that is no UTF-8 is a lone surrogate (PEP 383); this writes that out too.
    return char.encode("unicode_escape").decode("ascii")
