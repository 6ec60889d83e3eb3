"""Decode a file in a process whose memory is limited, and return its content section by section.

    for section in sections_of(decode, file, "an ORC file"):
        for piece in section.pieces: ...

``decode(file, emit)`` runs in that process: it writes the name of each section, and its pieces.
"""

from __future__ import annotations

import enum
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from typing import BinaryIO, NamedTuple

from secure_bloom.running.limited_process import Emit, LimitedProcessError, in_limited_process
from secure_bloom.running.memory_budget import memory_budget
from secure_bloom.tracing.packed import UnreadError


class _Tag(bytes, enum.Enum):
    """The first byte of a message between the processes."""

    SECTION = b"s"
    PIECE = b"p"
    ERROR = b"e"


class Section(NamedTuple):
    """A part of a file, such as a column or a member, and its pieces, to be read once, in order."""

    name: str
    pieces: Iterator[bytes]


class SectionWriter:
    """Writes sections in the process that decodes a file."""

    def __init__(self, emit: Emit) -> None:
        self._emit = emit

    def section(self, name: str) -> None:
        """Begin a section."""
        self._emit(_Tag.SECTION + name.encode("utf-8", "surrogatepass"))

    def piece(self, content: bytes) -> None:
        """Write a piece of the section."""
        self._emit(_Tag.PIECE + content)

    @contextmanager
    def errors(self) -> Iterator[None]:
        """Write the error if the block raises UnreadError. The error ends the section."""
        try:
            yield
        except UnreadError as error:
            self._emit(_Tag.ERROR + str(error).encode())


def sections_of(
    decode: Callable[[BinaryIO, SectionWriter], None], file: BinaryIO, what: str
) -> Iterator[Section]:
    """Yield the sections that ``decode`` writes in a process whose memory is limited to the budget.

    An error inside a section is raised as UnreadError when the caller reads the section's pieces.
    Other errors are raised at once.
    """
    messages = in_limited_process(partial(_written, decode), file, memory_budget())
    names: list[str] = []

    def pieces() -> Iterator[bytes]:
        try:
            for message in messages:
                if message.startswith(_Tag.SECTION):
                    names.append(message[1:].decode("utf-8", "surrogatepass"))
                    return
                if message.startswith(_Tag.ERROR):
                    raise UnreadError(message[1:].decode())
                yield message[1:]
        except LimitedProcessError as error:
            raise UnreadError(f"{what}: {error}") from None

    try:
        yield from _in_turn(pieces, names)
    finally:
        messages.close()


def _in_turn(pieces: Callable[[], Iterator[bytes]], names: list[str]) -> Iterator[Section]:
    """Yield sections. The rest of a section that the caller does not read is skipped."""
    own = pieces()
    while True:
        for _ in own:
            pass
        if not names:
            # After an error the next section follows, or nothing.
            own = pieces()
            for _ in own:
                pass
        if not names:
            return
        own = pieces()
        yield Section(names.pop(), own)


def _written(decode: Callable[[BinaryIO, SectionWriter], None], file: BinaryIO, emit: Emit) -> None:
    writer = SectionWriter(emit)
    with writer.errors():
        decode(file, writer)
