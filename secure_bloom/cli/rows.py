"""Rows as a person or a program wants them: a table, CSV, JSON lines or a Parquet file."""

from __future__ import annotations

import base64
import csv
import json
import math
import os
import shutil
import sys
import tempfile
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO, Any

import click

from secure_bloom.cli.tables import print_table, visible
from secure_bloom.errors import PolicyError

#: Record batches of pyarrow.
Batches = Iterable[Any]

FORMATS = ("table", "csv", "jsonl", "parquet")
#: More rows are for programs.
TABLE_ROWS = 100
#: A table whose columns would be narrower is shown row by row instead.
_NARROWEST = 12


def format_of(given: str | None, output: Path | None) -> str:
    """The format that was asked for, by option, by the output's name, or by where it goes."""
    suffix = "" if output is None else output.suffix.lstrip(".").lower()
    if given is None and suffix in FORMATS:
        given = suffix
    if given is None and output is not None:
        raise PolicyError(
            "the format of the output is not told by its name",
            hint="--format csv, jsonl or parquet",
        )
    if given is None:
        given = "table" if sys.stdout.isatty() else "csv"
    if given == "parquet" and output is None:
        raise PolicyError("a Parquet file goes nowhere without --output FILE")
    return given


def write_rows(form: str, schema: Any, batches: Batches, output: Path | None) -> int:
    """Write the rows to ``output`` or stdout; how many there were.

    A file that is there already is replaced when all rows are written, and stays if that fails.
    """
    if form == "parquet" and output is not None:
        from secure_bloom.reading.export import write_parquet

        with _told(), _replaced(output) as path:
            return write_parquet(path, schema, batches)
    write = _WRITERS[form]
    if output is None:
        with _told(), _flushed():
            return write(schema, batches, sys.stdout)
    with _told(), _replaced(output) as path, path.open("w", encoding="utf-8", newline="") as file:
        return write(schema, batches, file)


@contextmanager
def _told() -> Iterator[None]:
    """A full disk and the like as an error that says so."""
    try:
        yield
    except BrokenPipeError:
        raise
    except OSError as exc:
        raise PolicyError(f"the output cannot be written: {exc.strerror or 'it failed'}") from exc


@contextmanager
def _flushed() -> Iterator[None]:
    """Write out what stdout holds back; where that fails, nothing more is tried."""
    try:
        yield
        sys.stdout.flush()
    except BrokenPipeError:
        raise
    except OSError:
        # Python would complain again when it flushes at exit.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        raise


@contextmanager
def _replaced(output: Path) -> Iterator[Path]:
    """A file of another name that takes the output's place at the end, or goes away."""
    if output.exists() and not output.is_file():
        raise PolicyError("the output is there already and is not a file", path=str(output))
    descriptor, name = tempfile.mkstemp(dir=output.parent, prefix=".", suffix=".tmp")
    os.close(descriptor)
    path = Path(name)
    try:
        yield path
        path.replace(output)
    finally:
        path.unlink(missing_ok=True)


def rows_of(batch: Any) -> Iterable[dict[str, Any]]:
    """The rows of a record batch as Python values."""
    from secure_bloom.reading.export import python_rows

    return python_rows(batch)


def _write_csv(schema: Any, batches: Batches, file: IO[str]) -> int:
    writer = csv.writer(file, lineterminator="\n")
    writer.writerow(schema.names)
    count = 0
    for batch in batches:
        for row in rows_of(batch):
            writer.writerow("" if value is None else text_of(value) for value in row.values())
        count += batch.num_rows
    return count


def _write_jsonl(_schema: Any, batches: Batches, file: IO[str]) -> int:
    count = 0
    for batch in batches:
        for row in rows_of(batch):
            file.write(json.dumps(json_of(row), ensure_ascii=False) + "\n")
        count += batch.num_rows
    return count


def _write_table(schema: Any, batches: Batches, file: IO[str]) -> int:
    rows = [row for batch in batches for row in rows_of(batch)]
    shown = [[_cell(value) for value in row.values()] for row in rows[:TABLE_ROWS]]
    width = shutil.get_terminal_size().columns
    if len(schema.names) * _NARROWEST > width and file is sys.stdout and sys.stdout.isatty():
        _print_records(schema.names, shown)
    else:
        print_table([visible(name) or "" for name in schema.names], shown)
    if len(rows) > TABLE_ROWS:
        click.echo(f"the first {TABLE_ROWS} rows; --format csv or jsonl gives all")
    else:
        click.echo(f"{len(rows)} row{'' if len(rows) == 1 else 's'}")
    return len(rows)


def _print_records(names: list[str], rows: list[list[str]]) -> None:
    longest = max(map(len, names))
    for number, row in enumerate(rows, 1):
        click.echo(f"row {number}")
        for name, cell in zip(names, row, strict=True):
            click.echo(f"  {visible(name) or '':{longest}}  {cell}")


_WRITERS: dict[str, Callable[[Any, Any, IO[str]], int]] = {
    "table": _write_table,
    "csv": _write_csv,
    "jsonl": _write_jsonl,
}


def _cell(value: object) -> str:
    return "" if value is None else visible(text_of(value)) or ""


def text_of(value: object) -> str:
    """A value as text: as it is written in a condition, nested ones as JSON."""
    if isinstance(value, bytes):
        return f"hex:{value.hex()}"
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, dict | list):
        return json.dumps(json_of(value), ensure_ascii=False)
    return value.isoformat() if hasattr(value, "isoformat") else str(value)


def json_of(value: Any) -> Any:
    """A value as JSON has it: bytes in base64, dates and decimals and NaN as texts."""
    if isinstance(value, dict):
        return {str(key): json_of(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [json_of(item) for item in value]
    if isinstance(value, bytes):
        return base64.b64encode(value).decode()
    if value is None or isinstance(value, bool | int | str):
        return value
    if isinstance(value, float) and math.isfinite(value):
        return value
    return text_of(value)
