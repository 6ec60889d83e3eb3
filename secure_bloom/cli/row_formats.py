"""Write rows as a table, CSV, TSV, JSON lines, Arrow IPC or Parquet.

A program can read the exact values back from CSV and JSON lines.  No character of a value may act
on a terminal, so tables, and CSV printed on a terminal, have such characters escaped.

Rows for the file that ``--output`` names are written into a new file beside it, which takes the
name at the end.  So a crash, a full disk or an error on the way leaves the old file, or none.
"""

from __future__ import annotations

import gzip
import io
import os
import sys
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Any, BinaryIO, cast

import click

from secure_bloom.cli.terminal_tables import is_too_wide, print_data
from secure_bloom.cli.verbosity import print_line
from secure_bloom.encryption.policy_files import policy_files
from secure_bloom.errors import PolicyError, SecureBloomError, refused_by_system
from secure_bloom.reading.rows.python_texts import text_of
from secure_bloom.reports.text import counted, human_bytes, legible
from secure_bloom.storage import is_object_uri, local_path
from secure_bloom.storage.os_errors import system_errors
from secure_bloom.storage.output_files import replaced
from secure_bloom.storage.paths import as_path


def with_row_options(function: Callable[..., int]) -> Callable[..., int]:
    """Add ``--format``, ``--output`` and ``--for-spreadsheets`` of a verb that writes rows."""
    form = click.option(
        "--format",
        "form",
        type=click.Choice(FORMATS),
        help="How to write rows; a table on a terminal, CSV elsewhere, or by the output's name.",
    )
    output = click.option(
        "-o",
        "--output",
        metavar="FILE",
        help="Where to write rows, in clear; - is stdout. Texts are packed if it ends in .gz.",
    )
    harmless = click.option(
        "--for-spreadsheets",
        is_flag=True,
        help="Write ' before texts in CSV that a spreadsheet would run as formulas.",
    )
    return form(output(harmless(function)))


def output_file(text: str | None, *, stdout_is_free: bool = True) -> Path | None:
    """Return the path of the file that ``text`` names, or None for stdout.

    Raises PolicyError, before anything is read, if it cannot be written.
    """
    if text == "-" and not stdout_is_free:
        raise PolicyError(
            "the rows and the report would both be written to stdout",
            hint="write the rows to a file: --output found.parquet",
        )
    if text in (None, "-"):
        return None
    if is_object_uri(text):
        raise PolicyError(
            "the output is an object, and rows are written to local files",
            hint="write to a local file, then copy it to the store",
        )
    path = Path(local_path(as_path(text)))
    with system_errors(text):
        _require_writable(path, text)
        _refuse_files_of_options(path)
    return path


def _require_writable(path: Path, text: str) -> None:
    if text.endswith("/") or path.is_dir():
        raise PolicyError(
            "the output is a folder", hint="name a file in it, such as found.csv", path=text
        )
    if path.exists() and not path.is_file():
        raise PolicyError("the output is there already and is not a file", path=text)
    if not path.parent.is_dir():
        raise PolicyError(
            f"the output cannot be written: there is no folder {path.parent}",
            hint="make the folder first",
        )


def _refuse_files_of_options(output: Path) -> None:
    """Raise PolicyError if an option or argument names the same file: a policy, parameters."""
    context = click.get_current_context(silent=True)
    if context is None or not output.exists():
        return
    for option in context.command.params:
        is_file = isinstance(option.type, click.Path) or "FILE" in (option.metavar or "")
        if option.name == "output" or not is_file:
            continue
        value = context.params.get(option.name or "")
        for each in map(str, value if isinstance(value, tuple) else (value,)):
            # An option for several tables has NAME=FILE.
            named_files = [Path(each), Path(each.partition("=")[2])]
            if option.name == "policy_path" and value is not None:
                named_files = list(policy_files(Path(each)))
            for named in named_files:
                if named.is_file() and output.samefile(named):
                    raise PolicyError(
                        "the output would overwrite the input",
                        hint="name another file",
                        path=str(output),
                    )


@contextmanager
def output_errors(output: Path | None) -> Iterator[None]:
    """Turn errors of the system, such as a full disk, into PolicyError about ``output``."""
    try:
        yield
    except (BrokenPipeError, SecureBloomError):
        raise
    except OSError as exc:
        raise refused_by_system(
            exc,
            f"the output cannot be written: {exc.strerror or 'it failed'}",
            path=None if output is None else str(output),
        ) from exc


@contextmanager
def flushed() -> Iterator[None]:
    """Flush stdout at the end. After a failure, write nothing more to it."""
    try:
        yield
        sys.stdout.flush()
    except (BrokenPipeError, SecureBloomError):
        raise
    except OSError:
        # Python would complain again when it flushes at exit.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        raise


#: Record batches of pyarrow.
Batches = Iterable[Any]

#: Formats of texts, and of bytes, by the ending of a file's name.
_TEXTS, _BINARIES = ("csv", "tsv", "jsonl"), ("arrow", "parquet")
FORMATS = ("table", *_TEXTS, *_BINARIES)
_PACKED = ".gz"
#: A table shows no more rows than these.
TABLE_ROWS = 100
#: A table shows no more characters of a value than these.
_LONGEST = 10_000


def format_of(given: str | None, output: Path | None) -> str:
    """Return the format: from the option, else from the output's name, else the one for stdout.

    Raises PolicyError for a format that cannot be written there.
    """
    on_terminal = output is None and sys.stdout.isatty()
    if output is not None:
        given = given or _format_in(output.name.lower().removesuffix(_PACKED))
        if given not in _TEXTS and output.suffix.lower() == _PACKED:
            raise PolicyError(
                f"{given} is not packed again: its columns are packed already",
                hint="leave .gz out of the output's name",
            )
    form = given or ("table" if on_terminal else "csv")
    if form == "table" and output is not None:
        raise PolicyError(
            "the format table is only for the terminal",
            hint=f"--format {', '.join(_TEXTS)} or parquet",
        )
    if form in _BINARIES and output is None and (on_terminal or not _takes_bytes()):
        raise PolicyError(
            f"the format {form} is not for a {'terminal' if on_terminal else 'stream of text'}",
            hint=f"name a file, --output found.{form}, or write into a pipe",
        )
    return form


def _takes_bytes() -> bool:
    """Return whether stdout takes bytes. One in memory of a program, io.StringIO, takes text."""
    return hasattr(sys.stdout, "buffer")


def _format_in(name: str) -> str:
    ending = name.rpartition(".")[2]
    if ending not in (*_TEXTS, *_BINARIES):
        raise PolicyError(
            "the format of the output is not known from its name",
            hint="end the name in .csv, .tsv, .jsonl, .arrow or .parquet, or give --format",
        )
    return ending


def write_rows(
    form: str, schema: Any, batches: Batches, output: Path | None, *, for_spreadsheets: bool = False
) -> int:
    """Write the rows to ``output`` or stdout and return their number.

    With ``for_spreadsheets`` no text in CSV can be taken for a formula.  An old file is replaced
    only after all rows were written, and stays if that fails.
    """
    write = _writer(form, to_stdout=output is None, for_spreadsheets=for_spreadsheets)
    if output is None:
        with output_errors(output), flushed():
            sys.stdout.flush()
            if _takes_bytes():
                return write(schema, batches, sys.stdout.buffer)
            printed = io.BytesIO()
            count = write(schema, batches, printed)
            sys.stdout.write(printed.getvalue().decode())
            return count
    with output_errors(output), replaced(output) as file, _packed(file, output) as content:
        return write(schema, batches, content)


@contextmanager
def _packed(file: BinaryIO, output: Path) -> Iterator[BinaryIO]:
    """Yield a file whose bytes are packed if the output's name ends in .gz."""
    if output.suffix.lower() != _PACKED:
        yield file
        return
    # Without a time, so that the same rows are the same bytes.
    with gzip.GzipFile(fileobj=file, mode="wb", mtime=0) as packed:
        yield cast(BinaryIO, packed)


def print_written(rows: int, output: Path) -> None:
    """Print on stderr what was written."""
    try:
        size = f" ({human_bytes(output.stat().st_size)})"
    except OSError:
        # The rows are written, whatever has become of the file since.
        size = ""
    print_line(f"wrote {counted(rows, 'row')} to {output}{size}", err=True)


def _writer(form: str, *, to_stdout: bool, for_spreadsheets: bool) -> Callable[..., int]:
    from secure_bloom.reading.rows import export

    text_form = partial(
        _write_separated,
        for_spreadsheets=for_spreadsheets,
        on_terminal=to_stdout and sys.stdout.isatty(),
    )
    writers: dict[str, Callable[..., int]] = {
        "table": _write_table,
        "csv": partial(text_form, separator=","),
        "tsv": partial(text_form, separator="\t"),
        "jsonl": _write_jsonl,
        # Of a file a reader may take any batch; a pipe is read from its start.
        "arrow": partial(export.write_arrow, as_stream=to_stdout),
        "parquet": export.write_parquet,
    }
    return writers[form]


def rows_of(batch: Any) -> Iterable[dict[str, Any]]:
    """Return the rows of a record batch as Python values."""
    from secure_bloom.reading.rows.export import python_rows

    return python_rows(batch)


def _write_separated(schema: Any, batches: Batches, file: BinaryIO, **options: Any) -> int:
    from secure_bloom.reading.rows.value_texts import CsvForm

    form = CsvForm(**options)
    # An error before the first row leaves no header behind.
    header = form.header(schema.names)
    count = 0
    for batch in batches:
        for lines in form.lines(batch):
            file.write(header)
            file.write(lines)
            header = b""
        count += batch.num_rows
    file.write(header)
    return count


def _write_jsonl(_schema: Any, batches: Batches, file: BinaryIO) -> int:
    from secure_bloom.reading.rows.value_texts import json_lines

    count = 0
    for batch in batches:
        for lines in json_lines(batch):
            file.write(lines)
        count += batch.num_rows
    return count


#: How pyarrow's names of the types of numbers begin.
_NUMBERS = ("int", "uint", "halffloat", "float", "double", "decimal")


def _write_table(schema: Any, batches: Batches, _file: BinaryIO) -> int:
    rows = [row for batch in batches for row in rows_of(batch)]
    shown = [[_cell(value) for value in row.values()] for row in rows[:TABLE_ROWS]]
    names = [legible(name) for name in schema.names]
    if is_too_wide(names, shown):
        _print_records(names, shown)
    else:
        right = [str(kind).startswith(_NUMBERS) for kind in schema.types]
        print_data(names, shown, right)
    if len(rows) > TABLE_ROWS:
        print_line(f"the first {TABLE_ROWS} rows; --format csv gives all")
    else:
        print_line(counted(len(rows), "row"))
    return len(rows)


def _print_records(names: list[str], rows: list[list[str]]) -> None:
    longest = max(map(len, names))
    for number, row in enumerate(rows, 1):
        click.echo(f"row {number}")
        for name, cell in zip(names, row, strict=True):
            click.echo(f"  {name:{longest}}  {cell}")


def _cell(value: object) -> str:
    return "" if value is None else legible(text_of(value), _LONGEST)
