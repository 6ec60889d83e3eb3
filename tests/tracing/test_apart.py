"""Sections of a file that another process decodes: errors end their section alone."""

from __future__ import annotations

import base64
import io
import os
import struct
import zlib
from collections.abc import Iterator
from typing import Any, BinaryIO

import pytest

from secure_bloom.tracing import apart
from secure_bloom.tracing.apart import SectionWriter, sections_of
from secure_bloom.tracing.index import WordIndex
from secure_bloom.tracing.packed import MOST_PROCESSES, TOO_MANY, UnreadError
from secure_bloom.tracing.search import trace_text


def decode(_: BinaryIO, emit: SectionWriter) -> None:
    for name in ("a", "b", "c"):
        emit.section(name)
        emit.piece(b"1")
        with emit.errors():
            if name == "b":
                raise UnreadError("b is damaged")
            emit.piece(b"2")
    raise UnreadError("and more")


def dying(_: BinaryIO, emit: SectionWriter) -> None:
    emit.section("a")
    os.abort()


def test_an_error_ends_its_section_and_the_next_one_follows() -> None:
    sections = sections_of(decode, io.BytesIO(b"x"), "a file")
    assert list(next(sections).pieces) == [b"1", b"2"]
    damaged = next(sections)
    assert next(damaged.pieces) == b"1"
    with pytest.raises(UnreadError, match="b is damaged"):
        next(damaged.pieces)
    # The pieces of c are left.
    assert next(sections).name == "c"
    with pytest.raises(UnreadError, match="and more"):
        next(sections)


def test_what_a_process_did_not_decode_is_named() -> None:
    sections = sections_of(dying, io.BytesIO(b"x"), "an ORC file")
    with pytest.raises(UnreadError, match="an ORC file: the process"):
        list(next(sections).pieces)
    assert list(sections) == []


SEVEN_ZIP = b"7z\xbc\xaf\x27\x1c\0\4"
NOWHERE = struct.pack("<QQ4s", 0, 0, b"")


@pytest.mark.parametrize(
    ("content", "most"),
    [
        (b"ORC" + bytes(range(200, 220)), 0),
        (b"ORC" + bytes(range(200, 220)) + b"\x08\1\2", MOST_PROCESSES),
        (SEVEN_ZIP + bytes(24), 0),
        (SEVEN_ZIP + struct.pack("<I", zlib.crc32(NOWHERE)) + NOWHERE, MOST_PROCESSES),
    ],
    ids=["mark of ORC", "end of ORC", "mark of 7z", "start of 7z"],
)
def test_marks_in_a_text_start_few_processes(
    monkeypatch: pytest.MonkeyPatch, content: bytes, most: int
) -> None:
    started = []

    def start(*_: Any) -> Iterator[bytes]:
        started.append(1)
        yield from ()

    monkeypatch.setattr(apart, "in_limited_process", start)
    lines = base64.b64encode(content) + b";\n"
    trace = trace_text("x", "x", lines * (MOST_PROCESSES + 9), WordIndex.build([], 1 << 20))
    assert len(started) == most
    assert (TOO_MANY in [reason for _, reason in trace.unread]) == bool(most)
