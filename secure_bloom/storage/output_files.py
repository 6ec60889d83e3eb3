"""Write rows, a report, or the numbers of a run to the file that an option names.

    require_report_file(output, policy_path, keyring)    before the run
    write_report_file(output, text, "the report")        after it
    write_metrics(metrics, "audit", numbers)

A full disk or a crash leaves the old file or the new one.  A pipe or a device takes the text as it
is.  A file that holds rows or keys is never replaced by a report.
"""

from __future__ import annotations

import os
import stat
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import BinaryIO, Final

from secure_bloom.errors import PolicyError, SecureBloomError, refused_by_system
from secure_bloom.reports.prometheus import metrics_text
from secure_bloom.storage.os_errors import system_errors
from secure_bloom.storage.staged_file import staged_file

#: The output holds rows of an encrypted table in clear, so only its owner may read it.
_PRIVATE = 0o600
#: How data files begin: Parquet, encrypted Parquet, Avro, Arrow, ORC.
_DATA: Final = (b"PAR1", b"PARE", b"Obj\x01", b"ARROW1", b"ORC")
#: A keyring has one of these words.
_KEYS: Final = (b'"master_keys"', b'"data_keys"', b'"explicit"')
#: Folders in which the logs of tables are.
_LOGS: Final = frozenset({"_delta_log", "_spark_metadata", ".hoodie"})
#: Bytes at the beginning of a file that are read to recognise it.
_HEAD = 65_536


def require_report_file(target: Path | None, *needed: Path | None) -> None:
    """Raise PolicyError, before anything is read, if a report cannot be written to ``target``.

    A report never replaces a file in ``needed`` (the policy, the keyring), another keyring, a data
    file, or a part of a table's log.
    """
    if target is None:
        return
    with system_errors(str(target)):
        if target.is_dir():
            raise PolicyError(
                "a report cannot be written to a folder",
                hint=f"name a file in it: {target / 'report'}",
                path=str(target),
            )
        if not target.parent.is_dir():
            raise PolicyError(
                f"a report cannot be written: there is no folder {target.parent}",
                hint="make the folder first",
                path=str(target),
            )
        if not target.is_file():
            return
        place = target.resolve()
        with place.open("rb") as file:
            head = file.read(_HEAD)
        is_needed = any(it is not None and it.exists() and it.samefile(place) for it in needed)
        is_kept = head.startswith(_DATA) or any(word in head for word in _KEYS)
    if is_needed or is_kept or _LOGS & {*place.parts}:
        raise PolicyError(
            "the report would replace a file that is not a report",
            hint="name another file",
            path=str(target),
        )


def write_report_file(target: Path, text: str, what: str, *, mode: int | None = None) -> None:
    """Write a text to a file, whole or not at all.

    ``what`` names the text in the PolicyError for a file that cannot be written.
    """
    try:
        if target.exists() and (_is_descriptor(target) or not target.is_file()):
            with target.open("w", encoding="utf-8") as device:
                device.write(text)
            return
        with replaced(target, mode=_usual_mode() if mode is None else mode) as file:
            file.write(text.encode())
    except (BrokenPipeError, SecureBloomError):
        raise
    except (OSError, UnicodeEncodeError) as exc:
        if isinstance(exc, UnicodeEncodeError):
            message = f"{what} cannot be written: it contains characters that are not text"
            raise PolicyError(message, path=str(target)) from exc
        message = f"{what} cannot be written: {exc.strerror or 'it failed'}"
        raise refused_by_system(exc, message, path=str(target)) from exc


def write_metrics(target: Path, verb: str, numbers: Mapping[str, tuple[float, str]]) -> None:
    """Write the numbers of a run for Prometheus' node exporter.

    Raises PolicyError if that is not possible.
    """
    # The collector is another user.
    write_report_file(target, metrics_text(verb, numbers), "the metrics", mode=0o644)


@contextmanager
def replaced(output: Path, *, mode: int = _PRIVATE) -> Iterator[BinaryIO]:
    """Yield a new file to write to.

    It replaces ``output`` at the end, or is removed after an error. A replaced file keeps its
    permissions.  A new file has those of ``mode``: its owner alone may read it.
    """
    target = output.resolve()
    mode = stat.S_IMODE(target.stat().st_mode) if target.exists() else mode
    with staged_file(str(target)) as staged:
        os.fchmod(staged.fd, mode)
        with open(staged.fd, "wb", closefd=False) as file:
            yield file
        staged.sync()
        staged.publish()


def _is_descriptor(target: Path) -> bool:
    """Return whether the path is one of this process's open files, such as ``/dev/stdout``."""
    return str(target.parent) in ("/dev", "/dev/fd", "/proc/self/fd")


def _usual_mode() -> int:
    """Return the permissions that this process gives a new file."""
    mask = os.umask(0o077)
    os.umask(mask)
    return 0o666 & ~mask
