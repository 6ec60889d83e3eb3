"""A tail that is written at once: all of it is there after a kill, or nothing."""

from __future__ import annotations

import mmap
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import pytest

from secure_bloom.storage import (
    append_tail,
    open_input,
)
from secure_bloom.storage.append import write_at_once
from testing.storage import OLD

ALIGNED = """
import sys
from secure_bloom.storage import APPEND_ALIGNMENT, append_tail, open_input
with open_input(sys.argv[1]) as file:
    size = int(sys.argv[2])
    print("opened", flush=True)
    append_tail(file, [b"N" * 7, b"N" * (size - 7 + -(file.size + size) % APPEND_ALIGNMENT)])
"""


def test_a_kill_during_an_aligned_tail_leaves_the_old_file_or_the_new_one(tmp_path: Path) -> None:
    """Where the file system writes directly; the other case is the test above."""
    path, size = tmp_path / "x.parquet", 64 << 20
    if not _writes_directly(tmp_path):
        pytest.skip("the file system of the temporary folder has no O_DIRECT")
    seen = set()
    for delay in range(0, 24, 8):
        path.write_bytes(OLD)
        command = [sys.executable, "-c", ALIGNED, str(path), str(size)]
        with subprocess.Popen(command, stdout=subprocess.PIPE) as child:
            assert child.stdout is not None
            child.stdout.readline()
            time.sleep(delay * 0.01)
            child.send_signal(signal.SIGKILL)
        content = path.read_bytes()
        assert content[: len(OLD)] == OLD
        assert len(content) == len(OLD) or len(content) >= len(OLD) + size
        assert content[len(OLD) :] == b"N" * (len(content) - len(OLD))
        seen.add(len(content))
    assert len(seen) <= 2


def test_an_aligned_tail_is_written_behind_the_old_bytes_in_one_direct_write(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    if not _writes_directly(tmp_path):
        pytest.skip("the file system of the temporary folder has no O_DIRECT")
    monkeypatch.setattr("secure_bloom.storage.append.write_all", None)
    path = tmp_path / "x.parquet"
    for old_size in (1, 4095, 4096, 5000):
        path.write_bytes(b"o" * old_size)
        tail = [b"a" * 3, b"b" * (8192 - (old_size + 3) % 4096)]
        with open_input(str(path)) as file:
            size = append_tail(file, tail)
        assert path.read_bytes() == b"o" * old_size + b"".join(tail)
        assert size == path.stat().st_size


@pytest.mark.parametrize("advice", [None, -1], ids=["no large pages here", "none in this kernel"])
def test_without_large_pages_it_is_written_all_the_same(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, advice: int | None
) -> None:
    if not _writes_directly(tmp_path):
        pytest.skip("the file system of the temporary folder has no O_DIRECT")
    if advice is None:
        monkeypatch.delattr(mmap, "MADV_HUGEPAGE", raising=False)
    else:
        # The kernel's answer to an advice that it does not know is the one that it gives here.
        monkeypatch.setattr(mmap, "MADV_HUGEPAGE", advice, raising=False)
    with (tmp_path / "x").open("w+b") as file:
        assert write_at_once(file.fileno(), [b"n" * 8192], 0)
    assert (tmp_path / "x").read_bytes() == b"n" * 8192


def _writes_directly(folder: Path) -> bool:
    """Whether a direct write lengthens a file at once there; tmpfs takes the flag and does not."""
    with tempfile.TemporaryFile(dir=folder) as file:
        file.write(b"x")
        file.flush()
        try:
            written = write_at_once(file.fileno(), [bytes(4095)], 1)
        except OSError:
            return False
    return written and not _is_tmpfs(folder)


def _is_tmpfs(folder: Path) -> bool:
    mounts = [line.split()[1:3] for line in Path("/proc/mounts").read_text().splitlines()]
    inside = [(point, kind) for point, kind in mounts if folder.is_relative_to(point)]
    return max(inside, key=lambda mount: len(mount[0]))[1] == "tmpfs"
