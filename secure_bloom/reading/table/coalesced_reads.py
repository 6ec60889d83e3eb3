"""Many pieces of a file in few requests: those that lie together are read together."""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Mapping
from typing import TypeVar

from secure_bloom.storage import InputFile

K = TypeVar("K", bound=Hashable)

#: Reading so many bytes for nothing costs less than a request of their own.
GAP = 8 * 1024
#: Enough to be worth a request, and little enough to be held for one file.
LARGEST = 16 * 1024 * 1024


def read_extents(file: InputFile, extents: Mapping[K, tuple[int, int]]) -> dict[K, memoryview]:
    """The bytes of every extent, (offset, length), under its name; FormatError outside the file."""
    found: dict[K, memoryview] = {}
    for run in _runs(extents):
        start = extents[run[0]][0]
        end = max(sum(extents[name]) for name in run)
        view = file.view_at(start, end - start)
        for name in run:
            offset, length = extents[name]
            found[name] = view[offset - start : offset - start + length]
    return found


def _runs(extents: Mapping[K, tuple[int, int]]) -> Iterable[list[K]]:
    run: list[K] = []
    start = end = 0
    for name in sorted(extents, key=extents.__getitem__):
        offset, length = extents[name]
        if run and (offset > end + GAP or offset + length - start > LARGEST):
            yield run
            run = []
        if not run:
            start, end = offset, offset
        run.append(name)
        end = max(end, offset + length)
    if run:
        yield run
