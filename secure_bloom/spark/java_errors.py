"""One sentence of an error of the JVM, which Spark shows with thousands of characters of Java."""

from __future__ import annotations

import re

#: The innermost cause in a Java trace: its class and its message.
_CAUSE = re.compile(r"^Caused by: ([\w.$]+)(?:: (.*))?$", re.MULTILINE)
#: An exception without a cause, as Spark quotes it from a task, or as Py4J quotes it.
_FIRST = re.compile(r"\b((?:[a-z][\w$]*\.)+[A-Z][\w$]*(?:Exception|Error))(?:: (.*))?")
_MOST = 300


def reason_of(error: Exception) -> str:
    """Return what the innermost cause of an error of Spark says, in at most one line."""
    text = str(error)
    found = _CAUSE.findall(text) or _FIRST.findall(text)
    kind, message = found[-1] if found else ("", "")
    first = message.strip() or kind.rpartition(".")[2] or (text.strip().splitlines() or [""])[0]
    return first if len(first) <= _MOST else first[:_MOST] + "..."
