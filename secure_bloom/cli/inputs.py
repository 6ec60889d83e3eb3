"""Texts that others must not see, such as values and conditions: from a file or from stdin."""

from __future__ import annotations

import re
import sys
from contextlib import nullcontext
from pathlib import Path
from typing import Final

from secure_bloom.calling.close_names import near_file
from secure_bloom.errors import PolicyError, refused_by_system
from secure_bloom.running.bounded_documents import parsed_json, read_bounded

#: What the content of a file has, and hardly a path.
_DATA: Final = re.compile(r"[{}'\"<>@\n]|\s=|=\s")


def read_lines(source: str) -> list[str]:
    """Return the lines of a file, or of stdin for ``-``, without empty ones."""
    return [line for line in read_text(source).splitlines() if line]


def read_parameters(source: str) -> dict[str, object]:
    """Return the values of a condition's parameters: one JSON object, from a file or from stdin.

    Numbers keep their digits, and cannot be values of a column of texts.  Raises PolicyError, which
    quotes nothing, for invalid JSON.
    """
    from secure_bloom.predicates.tree import Numeral

    try:
        found = parsed_json(
            read_text(source), "the parameters", parse_float=Numeral, parse_int=Numeral
        )
    except (ValueError, RecursionError):
        # The cause is left out: its text holds what the file does.
        raise PolicyError("the parameters are not JSON", path=source) from None
    if not isinstance(found, dict):
        raise PolicyError(
            "the parameters are not a JSON object",
            hint='write {"email": "a@example.com"}',
            path=source,
        )
    return found


def read_text(source: str) -> str:
    """Return the text of a file, or of stdin for ``-``."""
    try:
        with nullcontext(sys.stdin.buffer) if source == "-" else Path(source).open("rb") as file:
            return read_bounded(file, "the text").decode("utf-8-sig")
    except OSError as exc:
        if _DATA.search(source):
            # The cause is left out: its text quotes what may be a value.
            raise PolicyError(
                "a file was wanted, and its content was given",
                hint="write it into a file and give the file's path, or - and the content on stdin",
            ) from None
        hint = near_file(Path(source))
        what = f"cannot be read: {exc.strerror}"
        raise refused_by_system(exc, what, hint=hint, path=source) from exc
    except UnicodeDecodeError:
        where = "standard input" if source == "-" else source
        raise PolicyError("is not UTF-8 text", path=where) from None
