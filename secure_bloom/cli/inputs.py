"""Texts that come from a file or from standard input, because arguments can be seen by others."""

from __future__ import annotations

import json
import sys
from pathlib import Path

from secure_bloom.errors import PolicyError, refused_by_system


def read_lines(source: str) -> list[str]:
    """Return the lines of a file, or of stdin for ``-``, without empty ones."""
    return [line for line in read_text(source).splitlines() if line]


def read_parameters(source: str) -> dict[str, object]:
    """Return the values of a condition's parameters: one JSON object, from a file or from stdin.

    Numbers keep their digits, and are no values of a column of texts.  Raises PolicyError, which
    quotes nothing, for anything else.
    """
    from secure_bloom.predicates.tree import Numeral

    try:
        found = json.loads(read_text(source), parse_float=Numeral, parse_int=Numeral)
    except ValueError:
        # The cause is left out: its text holds what the file does.
        raise PolicyError("the parameters are not JSON", path=source) from None
    if not isinstance(found, dict):
        raise PolicyError(
            "the parameters are no JSON object",
            hint='write {"email": "a@example.com"}',
            path=source,
        )
    return found


def read_text(source: str) -> str:
    """Return the text of a file, or of stdin for ``-``."""
    try:
        raw = sys.stdin.buffer.read() if source == "-" else Path(source).read_bytes()
        return raw.decode("utf-8-sig")
    except OSError as exc:
        raise refused_by_system(exc, f"cannot be read: {exc.strerror}", path=source) from exc
    except UnicodeDecodeError:
        where = "standard input" if source == "-" else source
        raise PolicyError("is not UTF-8 text", path=where) from None
