"""Write the file that ``--output`` names: all rows, or the old file stays.

Rows are written into a new file beside it, which gets the name at the end.  So a crash, a full disk
or an error on the way leaves the old file, or none.
"""

from __future__ import annotations

import os
import stat
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import BinaryIO

from secure_bloom.errors import PolicyError, SecureBloomError
from secure_bloom.storage import is_object_uri, local_path
from secure_bloom.storage.os_errors import system_errors
from secure_bloom.storage.staged_file import staged_file

#: The output holds rows of an encrypted table in clear, so only its owner may read it.
_PRIVATE = 0o600


def output_file(text: str) -> Path:
    """Return the path of the file that ``text`` names.

    Raises PolicyError, before anything is read, if it cannot be written.
    """
    if is_object_uri(text):
        raise PolicyError(
            "the output is an object, and rows are written to local files",
            hint="name a local file, and copy it there",
        )
    path = Path(local_path(text))
    with system_errors(text):
        _require_writable(path, text)
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


def refuse_part_of_table(
    output: Path, form: str, given: Sequence[str], files: Sequence[str]
) -> None:
    """Raise PolicyError if rows in clear would replace an input file, or join the table.

    ``given`` are the paths as the caller named them.  Any Parquet file in a folder among them would
    be a part of the table from then on.
    """
    with system_errors(str(output)):
        target = output.resolve()
        is_input = target in _resolved(files)
        folders = [path for path in _resolved(given) if path.is_dir()] if form == "parquet" else []
    if is_input:
        raise PolicyError(
            "the output would overwrite the input", hint="name another file", path=str(output)
        )
    if any(target.is_relative_to(folder) for folder in folders):
        raise PolicyError(
            "the output would become a file of the table, its rows in clear",
            hint="name a file in another folder",
            path=str(output),
        )


def _resolved(paths: Sequence[str]) -> set[Path]:
    return {Path(local_path(path)).resolve() for path in paths if not is_object_uri(path)}


@contextmanager
def replaced(output: Path) -> Iterator[BinaryIO]:
    """Yield a new file to write to.

    It replaces ``output`` at the end, or is removed after an error. A replaced file keeps its
    permissions.  Only the owner may read a new file.
    """
    target = output.resolve()
    mode = stat.S_IMODE(target.stat().st_mode) if target.exists() else _PRIVATE
    with staged_file(str(target)) as staged:
        os.fchmod(staged.fd, mode)
        with open(staged.fd, "wb", closefd=False) as file:
            yield file
        staged.sync()
        staged.publish()


@contextmanager
def output_errors(output: Path | None) -> Iterator[None]:
    """Turn errors of the system, such as a full disk, into PolicyError about ``output``."""
    try:
        yield
    except (BrokenPipeError, SecureBloomError):
        raise
    except OSError as exc:
        raise PolicyError(
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
