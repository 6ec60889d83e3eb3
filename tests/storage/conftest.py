"""A folder to write in, and child processes to kill."""

from __future__ import annotations

import contextlib
import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

OLD = bytes(range(256)) * 64
KEEP = len(OLD) - 100
TAIL = [b"filter one", b"", b"filter two", b"footer" * 7]
NEW = OLD[:KEEP] + b"".join(TAIL)


@pytest.fixture
def data_file(tmp_path: Path) -> Path:
    path = tmp_path / "part-0.parquet"
    path.write_bytes(OLD)
    return path


@pytest.fixture
def run() -> Callable[..., subprocess.CompletedProcess[str]]:
    """Run a Python program with arguments; its stdout and exit code."""

    def run_program(program: str, *arguments: object) -> subprocess.CompletedProcess[str]:
        command = [sys.executable, "-c", program, *map(str, arguments)]
        return subprocess.run(command, capture_output=True, text=True, timeout=120, check=False)

    return run_program


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path]:
    """A file system of 1 MiB; only root may mount one."""
    folder = tmp_path / "small"
    folder.mkdir()
    command = ["mount", "-t", "tmpfs", "-o", "size=1m", "none", str(folder)]
    if os.geteuid() != 0 or subprocess.run(command, capture_output=True, check=False).returncode:
        pytest.skip("mounting a small file system needs root")
    try:
        yield folder
    finally:
        with contextlib.suppress(OSError):
            subprocess.run(["umount", "-l", str(folder)], check=True)


def contents(folder: Path) -> dict[str, bytes]:
    """Every file in a folder, hidden ones too: what a failed write must leave alone."""
    return {path.name: path.read_bytes() for path in folder.iterdir() if path.is_file()}
