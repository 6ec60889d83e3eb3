"""Find the tail that a killed append left, and cut it off to get the old file back.

An append starts with a mark, which holds its own offset.  It distinguishes a torn
append from any other damage: a file that merely ends badly is never cut.

    old file | mark | filters | zeros | footer
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from secure_bloom.adding.append_mark import find_marks, find_torn_mark
from secure_bloom.adding.file_coverage import is_whole_file
from secure_bloom.encryption.file_keys import KeyResolver
from secure_bloom.errors import FileChangedError, FormatError, SecureBloomError
from secure_bloom.parquet.footer.locate import read_tail
from secure_bloom.parquet.key_material_files import file_keys
from secure_bloom.storage import InputFile, name_of, open_input, remove_kept, truncate_to


@dataclass(frozen=True, slots=True, kw_only=True)
class Truncation:
    """The end that was cut off a file: ``bytes`` from ``offset`` on, kept in the file ``kept``."""

    offset: int
    bytes: int
    kept: str

    def forget(self) -> bool:
        """Remove the bytes that were kept; False where the system refuses."""
        try:
            remove_kept(self.kept)
        except SecureBloomError:
            return False
        return True

    def note(self, *, forgotten: bool) -> str:
        """Return the sentence about the cut for a report."""
        where = "" if forgotten else f"; they are kept in {name_of(self.kept)} beside it"
        return (
            f"{self.bytes} bytes after byte {self.offset}, left by a run that was killed, were "
            f"cut off{where}"
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class Recovered:
    """A file that is whole now; ``truncation`` is what was cut off, None for nothing."""

    truncation: Truncation | None = None


def recover(path: str, resolver: KeyResolver) -> Recovered | None:
    """Make a file whole again that was not when it was read; None where that cannot be.

    Cuts off what a killed ``--in-place`` run left: the run leaves the old file whole
    under a torn tail, so the old end can be found again.  Waits for a run that is still writing.
    Raises FormatError where it looks like one, and bytes of the file would be lost.
    """
    try:
        with open_input(path) as file:
            # Its writer may have finished between the read that failed and now.
            if _ends_whole(file, file.size):
                return Recovered()
            end = find_previous_end(file)
            if end is None:
                return None
            # A mark and a footer alone do not prove it: a cell may hold a whole file of ours.
            if not is_whole_file(file, end, file_keys(resolver, file)):
                raise _unsure(path, end)
            # The identity says which file may be cut: only the file that was looked through is
            # known to be torn.
            kept = truncate_to(path, end, file.identity)
            cut = Truncation(offset=end, bytes=file.size - end, kept=kept)
            return Recovered(truncation=cut)
    except FileChangedError:
        # Its writer was alive, and has finished by now.
        return Recovered()


def find_previous_end(file: InputFile) -> int | None:
    """Return the end of the file before an append to it was killed.

    None if no such end is found.
    """
    for offset in _marked_offsets(file):
        if _ends_whole(file, offset):
            return offset
    return None


def _marked_offsets(file: InputFile) -> Iterator[int]:
    """Yield offsets at which an append started: with its mark itself torn, then from the end."""
    # First, because a mark that is torn stands at the very end, behind all whole ones.
    yield from find_torn_mark(file)
    for offset, _ in find_marks(file, file.size):
        yield offset


def _ends_whole(file: InputFile, end: int) -> bool:
    """Return whether a whole footer ends at ``end``."""
    try:
        tail = read_tail(file, end=end)
        # A cell's bytes can look like a footer, and nothing before this counts its chunks.
        if tail.scan is not None:
            tail.scan.check_chunks()
    except SecureBloomError:
        return False
    return True


def _unsure(path: str, end: int) -> FormatError:
    return FormatError(
        f"the file is not whole; it looks as if a run with --in-place was killed at byte {end}, "
        "but the footer there does not account for every byte before it, so nothing was cut",
        hint="it may be a file in a cell of this one, or a key may be missing; if you know that "
        f"the file ended there, cut it: truncate -s {end}",
        path=path,
    )
