"""Decode in a process of limited memory: what it reads, what it sends, and how it ends."""

from __future__ import annotations

import io
import os
from functools import partial
from pathlib import Path
from typing import BinaryIO

import pytest

from secure_bloom.running.limited_process import Emit, LimitedProcessError, in_limited_process
from testing.waiting import eventually

MIB = 1 << 20


def backwards(file: BinaryIO, emit: Emit) -> None:
    end = file.seek(0, io.SEEK_END)
    for start in range(end - 4, -1, -4):
        file.seek(start)
        emit(file.read(4))


def allocating(_: BinaryIO, emit: Emit, size: int) -> None:
    emit(b"begun")
    emit(b"%d" % len(bytearray(size)))


def dying(_: BinaryIO, emit: Emit) -> None:
    emit(b"%d" % os.getpid())
    os.write(2, b"a value")
    os.abort()


def endless(_: BinaryIO, emit: Emit) -> None:
    while True:
        emit(b"%d" % os.getpid())


def test_a_file_is_read_at_any_place() -> None:
    content = os.urandom(4_000)
    pieces = list(in_limited_process(backwards, io.BytesIO(content), 64 * MIB))
    assert b"".join(reversed(pieces)) == content


@pytest.mark.skipif(not Path("/proc/self/status").exists(), reason="memory is limited on Linux")
def test_more_memory_than_the_limit_is_refused() -> None:
    some = in_limited_process(partial(allocating, size=64 * MIB), io.BytesIO(), 128 * MIB)
    assert list(some) == [b"begun", b"%d" % (64 * MIB)]
    much = in_limited_process(partial(allocating, size=256 * MIB), io.BytesIO(), 128 * MIB)
    assert next(much) == b"begun"
    with pytest.raises(LimitedProcessError):
        next(much)


def test_a_process_that_dies_is_an_error_and_what_it_writes_is_dropped(
    capfd: pytest.CaptureFixture[str],
) -> None:
    messages = in_limited_process(dying, io.BytesIO(), 64 * MIB)
    next(messages)
    with pytest.raises(LimitedProcessError):
        next(messages)
    assert capfd.readouterr().err == ""


def test_a_process_ends_with_its_caller() -> None:
    messages = in_limited_process(endless, io.BytesIO(), 64 * MIB)
    process = int(next(messages))
    messages.close()
    assert eventually(lambda: not Path(f"/proc/{process}").exists())
    with pytest.raises(ProcessLookupError):
        os.kill(process, 0)
