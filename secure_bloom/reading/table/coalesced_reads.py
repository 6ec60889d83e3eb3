"""Read many extents of a file in few requests: extents close to each other are read together."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Mapping
from typing import TypeVar

from secure_bloom.storage import InputFile

K = TypeVar("K", bound=Hashable)

#: A request of its own costs more than to read this many bytes for nothing.
GAP = 8 * 1024
#: One request reads no more: enough to be worth a request, little enough to hold in memory.
LARGEST = 16 * 1024 * 1024


def read_extents(
    file: InputFile,
    extents: Mapping[K, tuple[int, int]],
    read: Callable[[InputFile, int, int], memoryview] = InputFile.view_at,
) -> dict[K, memoryview]:
    """Return the bytes of each extent (offset, length), by name.

    ``read`` reads a range that covers neighbouring extents.  Raises FormatError if an extent leaves
    the file.
    """
    found: dict[K, memoryview] = {}
    for run in _runs(extents):
        start = extents[run[0]][0]
        end = max(sum(extents[name]) for name in run)
        view = read(file, start, end - start)
        for name in run:
            offset, length = extents[name]
            found[name] = view[offset - start : offset - start + length]
    return found


def read_pooled(file: InputFile, offset: int, length: int) -> memoryview:
    """Return the bytes of an extent, in memory of Arrow's pool.

    The pool reuses freed memory. malloc returns large blocks to the system, and then each page of
    a new block costs a page fault.
    """
    # Imported here: filters are probed without pyarrow.
    import pyarrow as pa

    # Checked before memory is taken: both numbers come from the file.
    if not 0 <= offset <= offset + length <= file.size:
        return file.view_at(offset, length)
    stored = memoryview(pa.allocate_buffer(length)).cast("B")
    file.read_into(offset, stored)
    return stored


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
