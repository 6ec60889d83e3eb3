"""Write numbers of a run as a text file that Prometheus' node exporter collects.

    write_metrics("audit.prom", "audit", {"files": (3, "Files that were checked.")})

gives ``secure_bloom_audit_files 3``. Format: Prometheus text exposition format 0.0.4.
"""

from __future__ import annotations

import os
import tempfile
from collections.abc import Mapping
from contextlib import suppress
from os import PathLike
from pathlib import Path

from secure_bloom.errors import refused_by_system


def metrics_text(verb: str, numbers: Mapping[str, tuple[float, str]]) -> str:
    """Return the text of gauges, by name, each with its number and its help."""
    lines: list[str] = []
    for name, (number, meaning) in numbers.items():
        full = f"secure_bloom_{verb}_{name.partition('{')[0]}"
        if not any(line.startswith(f"# TYPE {full} ") for line in lines):
            lines += [f"# HELP {full} {meaning}", f"# TYPE {full} gauge"]
        lines.append(f"secure_bloom_{verb}_{name} {number:.15g}")
    return "\n".join(lines) + "\n"


def write_metrics(
    path: str | PathLike[str], verb: str, numbers: Mapping[str, tuple[float, str]]
) -> None:
    """Write the numbers of a run to a file, whole or not at all.

    A collector that reads meanwhile sees the old file or the new one. Raises PolicyError if the
    file cannot be written.
    """
    target = Path(path)
    try:
        # A name that collectors skip: they read `*.prom`.
        fd, new = tempfile.mkstemp(dir=target.parent, prefix=f".{target.name}.")
        try:
            with os.fdopen(fd, "w", encoding="utf-8") as file:
                file.write(metrics_text(verb, numbers))
                file.flush()
                os.fsync(file.fileno())
            # Readable for the collector, which is another user.
            Path(new).chmod(0o644)
            Path(new).replace(target)
        except BaseException:
            with suppress(OSError):
                Path(new).unlink()
            raise
    except OSError as exc:
        raise refused_by_system(exc, f"the metrics cannot be written: {exc.strerror}") from exc
