"""Sections of a file that another process decodes: errors end their section alone."""

from __future__ import annotations

import io
import os
from typing import BinaryIO

import pytest

from secure_bloom.tracing.apart import SectionWriter, sections_of
from secure_bloom.tracing.packed import UnreadError


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
