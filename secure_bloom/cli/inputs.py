"""Texts that others must not see, such as values and conditions: from a file or from stdin."""

from __future__ import annotations

import io
import re
import sys
from collections.abc import Sequence
from contextlib import nullcontext
from pathlib import Path
from typing import Final

from secure_bloom.calling.close_names import near_file
from secure_bloom.cli.verbosity import print_note
from secure_bloom.errors import PolicyError, refused_by_system
from secure_bloom.parquet.schema import in_any_case
from secure_bloom.reports.text import counted
from secure_bloom.running.bounded_documents import parsed_json, read_bounded

#: What the content of a file has, and hardly a path.
_DATA: Final = re.compile(r"[{}'\"<>@\n]|\s=|=\s")


#: The endings of files whose lines may have several columns, and what is between these.
_SEPARATORS: Final = {".csv": ",", ".tsv": "\t"}
#: A character that no UTF-8 text has.  It marks a quoted empty text, which the module csv reads
#: like a cell without content.
_EMPTY_TEXT: Final = "\ud800"


def listed_values(source: str) -> list[str]:
    """Return the values in FILE, one a line, or in the column of FILE:COLUMN, a CSV or TSV file.

    A line or cell without content has no value; a note counts them. In CSV and TSV, "" is an empty
    text.  Raises PolicyError, which quotes no value, if lines have several columns and none is
    named.
    """
    path, colon, column = source.rpartition(":")
    is_named = bool(colon) and not Path(source).exists()
    path = path if is_named else source
    separator = _SEPARATORS.get(Path(path).suffix.lower())
    if separator is None:
        lines = read_text(source).replace("\r\n", "\n").removesuffix("\n")
        found = [line or None for line in lines.split("\n")] if lines else []
        what = "empty line"
    else:
        rows = _rows(read_text(path), separator, path)
        if not is_named and any(len(row) > 1 for row in rows):
            raise PolicyError(
                "lines have several columns, wanted one value a line",
                hint=f"name one of the columns in the first line: --from {source}:COLUMN",
                path=source,
            )
        place = _place(rows[0] if rows else (), column, path) if is_named else 0
        cells = (row[place] if len(row) > place else "" for row in rows[is_named:])
        found = [cell.replace(_EMPTY_TEXT, "") if cell else None for cell in cells]
        what = "empty cell"
    values = [value for value in found if value is not None]
    if (skipped := len(found) - len(values)) and values:
        verb = "was" if skipped == 1 else "were"
        print_note(f"{counted(skipped, what)} of {path} {verb} skipped", err=True)
    return values


def _rows(text: str, separator: str, path: str) -> list[list[str]]:
    """Return the cells of each line. A quoted empty text is ``_EMPTY_TEXT``."""
    import csv

    first = text.partition("\n")[0]
    if separator not in first and ";" in first:
        # As spreadsheets write it where the comma is in numbers.
        separator = ";"
    end = rf"(?=[{separator}\r\n]|\Z)"
    quoted = rf'(?<![^{separator}\r\n])"(?:("){end}|[^"]*+(?:""[^"]*+)*+")'
    marked = re.sub(quoted, lambda it: f'"{_EMPTY_TEXT}"' if it[1] else it[0], text)
    try:
        return list(csv.reader(io.StringIO(marked, newline=""), delimiter=separator))
    except csv.Error as error:
        raise PolicyError(f"the file cannot be parsed: {error}", path=path) from None


def _place(names: Sequence[str], column: str, path: str) -> int:
    """Return the place of the column among the names in the first line."""
    if names.count(column) > 1:
        raise PolicyError(
            f"the first line names {names.count(column)} columns {column}, wanted one", path=path
        )
    found = column if column in names else in_any_case(column, names)
    if found is None:
        # Not what the line has: a file without names begins with values.
        raise PolicyError(
            f"the first line names no column {column}",
            hint=f"name one of its {counted(len(names), 'column')}, as it is written there",
            path=path,
        )
    return names.index(found)


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
        raise PolicyError(
            "is not UTF-8 text",
            hint="convert it first: iconv -f LATIN1 -t UTF-8 FILE",
            path=where,
        ) from None
