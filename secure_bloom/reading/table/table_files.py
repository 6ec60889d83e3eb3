"""The files of one read: their partition values and footers, and the table's schema made of these.

A footer is kept until its file is planned, as long as all kept footers take little memory.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager

import pyarrow as pa

from secure_bloom.encryption.file_keys import KeyResolver
from secure_bloom.errors import FileChangedError, located
from secure_bloom.parquet.key_prefetch import KeyPrefetch
from secure_bloom.reading.table.footer import FileFooter, read_footer
from secure_bloom.reading.table.table_schema import SchemaCache, unite
from secure_bloom.reading.table.table_state import table_state
from secure_bloom.running.ordered_pool import TINY, in_order
from secure_bloom.storage import CountedFile, InputFile, files_at_once, open_input
from secure_bloom.tables import TableVersion, list_tables

#: Bytes of footers that are kept from the schema to the plan.
_KEPT_FOOTERS = 64 * 1024 * 1024
#: Bytes of footers whose files are planned together.
_TOGETHER = 8 * 1024 * 1024
#: Runs of files grow by this factor up to this size: small at first, so that rows come soon.
_GROWTH, _MOST = 8, 256
#: Objects whose end is kept from the schema to the plan: 128 KiB each.
_MOST_ASIDE = 2048


class TableFiles:
    """All files that ``given`` leads to, by their ordinals. ``schema`` is the table's schema.

    ``at`` is the version of a Delta table. ``state`` is what its log says.  ``unverified`` has the
    paths of files whose footer is signed but could not be checked.  ``workers`` is how many files
    are worth reading in parallel.
    """

    def __init__(
        self, given: Sequence[str], resolver: KeyResolver, at: TableVersion | None = None
    ) -> None:
        listing = list_tables(given, at)
        self.state = table_state(listing, given)
        self.paths = list(listing.paths)
        self.partitions = self.state.partitions
        self.workers = files_at_once(self.paths)
        self._resolver = resolver
        self._key_prefetch = KeyPrefetch(resolver)
        self._schemas = SchemaCache(self.state.names)
        self.unverified: list[str] = []
        self._identities: list[tuple[object, ...]] = []
        self._kept: dict[int, FileFooter] = {}
        #: Objects whose end is in memory, as long as all ends take little of it.
        self._aside: dict[int, InputFile] = {}
        self._largest = 1
        self._bytes = 0
        self.schema = self._read_footers()

    def __len__(self) -> int:
        return len(self.paths)

    @property
    def are_tiny(self) -> bool:
        """Whether the files are local, and so small on average that one thread is the fastest."""
        return self.workers == 1 and self._bytes <= TINY * len(self)

    def runs(self) -> Iterator[range]:
        """Yield ranges of ordinals of files whose footers fit into memory together."""
        return growing_runs(len(self), self._fitting)

    def _fitting(self, start: int) -> int:
        """Return how many files from ``start`` on have kept footers that fit into memory."""
        if self.workers > 1:
            # Threads limit how many are in memory, so a run may have any length.
            return len(self)
        size = count = 0
        while footer := self._kept.get(start + count):
            size += footer.memory
            if size > _TOGETHER:
                break
            count += 1
        return count

    def kept(self, ordinal: int) -> FileFooter | None:
        """Return the footer of a file if it is kept, or None."""
        return self._kept.get(ordinal)

    def forget(self, ordinal: int) -> None:
        """Drop a footer that is not needed any more."""
        self._kept.pop(ordinal, None)
        if (file := self._aside.pop(ordinal, None)) is not None:
            file.close()

    @contextmanager
    def opened(self, ordinal: int) -> Iterator[tuple[CountedFile, FileFooter]]:
        """Open a file again, and yield it with its footer.

        Raises FileChangedError if the file was changed since.
        """
        aside, kept = self._aside.get(ordinal), self.kept(ordinal)
        if aside is not None and kept is not None:
            with located(path=self.paths[ordinal]):
                yield CountedFile(aside), kept
            return
        with located(path=self.paths[ordinal]), open_input(self.paths[ordinal]) as opened:
            if opened.identity != self._identities[ordinal]:
                raise FileChangedError(
                    "the file was changed after its footer was read", hint="read it again"
                )
            footer = self.kept(ordinal)
            if footer is None:
                footer = read_footer(CountedFile(opened), self._resolver, self._schemas)
            yield CountedFile(opened), footer

    def _read_footers(self) -> pa.Schema:
        """Read all footers, keep those that fit into memory, and return the table's schema."""
        schemas, size = [], 0
        for ordinal, footer in enumerate(self._footers()):
            schemas.append((footer.path, self.state.columns_of(footer.columns.arrow)))
            if not footer.is_verified:
                self.unverified.append(footer.path)
            self._identities.append(footer.identity)
            self._bytes += footer.size
            memory = footer.memory
            self._largest = max(self._largest, memory)
            size += memory
            if size <= _KEPT_FOOTERS:
                self._kept[ordinal] = footer
        stored = unite(schemas) if schemas else pa.schema([])
        return self.state.with_columns_of_log(stored)

    def _footers(self) -> Iterator[FileFooter]:
        if self.workers > 1:
            ordinals = range(len(self.paths))
            yield from in_order(self._footer, ordinals, self.workers)
            return
        for ordinals in growing_runs(len(self.paths), lambda _: _TOGETHER // self._largest):
            self.prepare_keys(ordinals)
            yield from map(self._footer, ordinals)

    def prepare_keys(self, ordinals: range) -> None:
        """Unwrap the keys of files in parallel, if each file has keys of its own."""
        self._key_prefetch.prepare(self.paths[ordinals.start : ordinals.stop])

    def _footer(self, ordinal: int) -> FileFooter:
        path = self.paths[ordinal]
        with located(path=path):
            with ExitStack() as stack:
                file = stack.enter_context(open_input(path))
                footer = read_footer(CountedFile(file), self._resolver, self._schemas)
                if file.holds(file.size - 1, 1) and len(self._aside) < _MOST_ASIDE:
                    file.set_aside()
                    self._aside[ordinal] = file
                    stack.pop_all()
            return footer


def growing_runs(count: int, most: Callable[[int], int]) -> Iterator[range]:
    """Yield the ordinals below ``count`` in ranges, each longer than the one before.

    ``most`` says how many files fit into memory together, from an ordinal on. One file always does.
    """
    start, size = 0, 1
    while start < count:
        size = max(1, min(size, most(start)))
        yield range(start, min(start + size, count))
        start, size = start + size, min(_GROWTH * size, _MOST)
