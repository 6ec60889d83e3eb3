"""Write rows, a report, or the numbers of a run to the file that an option names.

    write_report_file(output, text, "the report")
    write_metrics(metrics, "audit", numbers)

A full disk or a crash leaves the old file or the new one.  A pipe or a device takes the text as it
is.  `lakes/output_rules` refuses files before a run.

Numbers are gauges in the Prometheus text exposition format 0.0.4, for the textfile collector of
Prometheus' node exporter: ``secure_bloom_audit_files 3``.
"""

from __future__ import annotations

import os
import stat
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import BinaryIO

from secure_bloom.errors import PolicyError, SecureBloomError, refused_by_system
from secure_bloom.storage.staged_file import staged_file

#: The output holds rows of an encrypted table in clear, so only its owner may read it.
_PRIVATE = 0o600


def write_report_file(target: Path, text: str, what: str, *, mode: int | None = None) -> None:
    """Write a text to a file, whole or not at all.

    ``what`` names the text in the PolicyError for a file that cannot be written.
    """
    try:
        # The path may be one of this process's open files, such as /dev/stdout.
        if target.exists() and (
            str(target.parent) in ("/dev", "/dev/fd", "/proc/self/fd") or not target.is_file()
        ):
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


def _usual_mode() -> int:
    """Return the permissions that this process gives a new file."""
    mask = os.umask(0o077)
    os.umask(mask)
    return 0o666 & ~mask


def metrics_text(verb: str, numbers: Mapping[str, tuple[float, str]]) -> str:
    """Return the text of gauges, by name, each with its number and its help."""
    lines: list[str] = []
    for name, (number, meaning) in numbers.items():
        full = f"secure_bloom_{verb}_{name.partition('{')[0]}"
        if not any(line.startswith(f"# TYPE {full} ") for line in lines):
            lines += [f"# HELP {full} {meaning}", f"# TYPE {full} gauge"]
        lines.append(f"secure_bloom_{verb}_{name} {number:.15g}")
    return "\n".join(lines) + "\n"
