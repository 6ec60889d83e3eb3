"""What a killed append leaves behind, and the way back to the old file.

An append starts with a mark that holds the offset where it stands, so a torn one can be told from
anything else: a file that merely ends badly is never cut.

    old file | "secure-bloom append " | offset (8, LE) | filters | zeros | footer
"""

from __future__ import annotations

from collections.abc import Iterator

from secure_bloom.errors import FileChangedError, FormatError, SecureBloomError
from secure_bloom.parquet.footer import read_tail
from secure_bloom.parquet.schema import leaves
from secure_bloom.storage import InputFile, open_input, truncate_to

_MARK = b"secure-bloom append "
_WINDOW = 1024 * 1024


def append_mark(offset: int) -> bytes:
    """The first bytes of an append that starts at ``offset``, where the old file ends."""
    return _MARK + offset.to_bytes(8, "little")


def mend(path: str) -> bool:
    """Whether a file that was not whole when it was read is whole now.

    Cuts off what a killed ``--in-place`` run left behind: such a run leaves the old file whole
    under a torn tail, so the old end can be found again.  Waits for a run that is still writing.
    """
    try:
        with open_input(path) as file:
            if not _ends_whole(file, file.size):
                _cut_back(path, file)
            return True
    except FileChangedError:
        # Its writer was alive, and has finished by now.
        return True
    except SecureBloomError:
        return False


def _cut_back(path: str, file: InputFile) -> None:
    end = find_previous_end(file)
    if end is None:
        raise FormatError("holds no torn append")
    truncate_to(path, end, file.identity)


def find_previous_end(file: InputFile) -> int | None:
    """Where the file ended before an append to it was killed; None where there is none such."""
    for offset in _marked_offsets(file):
        if _ends_whole(file, offset):
            return offset
    return None


def _marked_offsets(file: InputFile) -> Iterator[int]:
    """Offsets at which an append started: with its mark itself torn, then from behind."""
    mark_size = len(append_mark(0))
    last = file.read_at(file.size - min(file.size, mark_size), min(file.size, mark_size))
    for size in range(1, len(last)):
        if append_mark(file.size - size).startswith(last[-size:]):
            yield file.size - size
    end = file.size
    while end > mark_size:
        start = max(0, end - _WINDOW)
        block = file.read_at(start, end - start)
        at = block.rfind(_MARK)
        while at >= 0:
            if block.startswith(append_mark(start + at), at):
                yield start + at
            at = block.rfind(_MARK, 0, at)
        # Blocks overlap by a mark, so that none falls between two of them.
        end = start + mark_size if start else 0


def _ends_whole(file: InputFile, end: int) -> bool:
    """Whether a whole footer ends at ``end``."""
    try:
        tail = read_tail(file, end=end)
        if tail.metadata is not None:
            leaves(tail.metadata.schema)
    except SecureBloomError:
        return False
    return True
