"""Texts for people: counts, sizes, names of columns, and safe forms of text from files.

A path or a column name may hold a megabyte, or bytes that are no text.  Its escape sequences may
control a terminal, its characters may turn the direction of writing, and a CI runner may take a
part of it for a command.
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Sequence

_LONGEST = 300
_MOST_COLUMNS = 4
_LONGEST_COLUMN = 60
#: The second character of the marks that begin commands to CI runners: `::error file=x::` at the
#: start of a line of GitHub, `##[error]`, `##vso[...]` and `##teamcity[...]` anywhere in a line.  A
#: long line may be folded anywhere, so the first is no command anywhere either.
_COMMAND = re.compile(r"(?<=:):(?=[A-Za-z])|(?<=#)#(?=[\w.-]*\[)")


def counted(count: int, thing: str) -> str:
    """Return a number with its noun: ``1 file``, ``10,000 files``."""
    return f"{count:,} {thing}{'' if count == 1 else 's'}"


def shell_word(text: str) -> str:
    """Return a text as one word for a shell, on one line and without a backtick.

    Backticks enclose a command in the text of a fix.  What is not printable is written as bytes in
    the form ``$'...'`` of bash and zsh.
    """
    if text.isprintable() and "`" not in text:
        return shlex.quote(text)
    return f"$'{''.join(map(_in_shell, text))}'"


def _in_shell(char: str) -> str:
    if char.isprintable() and char not in "`'\\":
        return char
    return "".join(f"\\x{byte:02x}" for byte in char.encode("utf-8", "surrogateescape"))


def human_bytes(size: int | None) -> str | None:
    """Return a size in a unit that suits it, in powers of 1024, or None for None."""
    if size is None:
        return None
    value, units = float(size), ["bytes", "KiB", "MiB", "GiB", "TiB"]
    while abs(value) >= 1024 and len(units) > 1:
        value, units = value / 1024, units[1:]
    return f"{value:.0f} {units[0]}" if units[0] == "bytes" else f"{value:.1f} {units[0]}"


def named_columns(columns: Sequence[str]) -> str:
    """Return ``column email``, ``columns email, iban and 3 more``, or "" for no column."""
    if not columns:
        return ""
    named = ", ".join(legible(name, _LONGEST_COLUMN) for name in columns[:_MOST_COLUMNS])
    more = len(columns) - _MOST_COLUMNS
    return f"column{'s'[: len(columns) > 1]} {named}" + (f" and {more:,} more" if more > 0 else "")


def legible(text: str, longest: int = _LONGEST) -> str:
    """Return ``text`` with unprintable characters escaped, shortened in the middle if too long."""
    # Cut before as well as after: writing out a megabyte would take long.
    return _cut(written_out(_cut(text, longest)), longest)


def written_out(text: str) -> str:
    """Return ``text`` with unprintable characters escaped, line ends included.

    Commands to a CI runner are disarmed.  Every text from a file, a path or a caller that is shown
    to people goes through this function.
    """
    if not text.isprintable():
        # A byte of a path that is no UTF-8 is a lone surrogate (PEP 383); this writes that out too.
        text = "".join(
            c if c.isprintable() else c.encode("unicode_escape").decode("ascii") for c in text
        )
    return _COMMAND.sub(lambda found: f"\\x{ord(found[0]):02x}", text)


def without_commands(document: str) -> str:
    """Return an equal document of JSON or TOML whose strings hold no command to a CI runner."""
    escaped = _COMMAND.sub(lambda found: f"\\u{ord(found[0]):04x}", document)
    return escaped.replace("\x7f", "\\u007f")


def _cut(text: str, longest: int) -> str:
    if len(text) <= longest:
        return text
    tail = longest // 3
    return f"{text[: longest - tail - 1]}…{text[-tail:]}"
