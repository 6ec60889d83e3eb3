"""The files of a table: their listing, their footers, and the schema made from the footers.

    files = TableFiles(paths, resolver)      lists; no file is opened
    files.schema                             reads each footer, keeps those that fit into memory
    with files.opened(3) as (file, footer)   opens a file again, if its footer is still the same

An open table keeps as many footers as fit into its :class:`MemoryShare`. A single read has its
own share, and drops each footer once its file is planned.
"""

from __future__ import annotations

import functools
import threading
import weakref
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import replace
from typing import TYPE_CHECKING

from secure_bloom.encryption.file_keys import KeyResolver
from secure_bloom.encryption.trust import warn_unverified
from secure_bloom.errors import FileChangedError, located
from secure_bloom.lakes import TableListing, TableVersion, list_tables
from secure_bloom.parquet.footer.columns import FileColumns, SchemaCache
from secure_bloom.parquet.footer.opened import Footer, read_footer
from secure_bloom.parquet.key_prefetch import KeyPrefetch
from secure_bloom.parquet.page_index import indexes_extent
from secure_bloom.reading.table.kept_chunks import KeptChunks
from secure_bloom.running.memory_budget import MemoryShare
from secure_bloom.running.ordered_pool import TINY, in_order
from secure_bloom.storage import (
    CountedFile,
    InputFile,
    files_at_once,
    is_object_uri,
    local_path,
    open_input,
    reopen_pinned,
)
from secure_bloom.storage.inputs import END
from secure_bloom.storage.local import identity_at

if TYPE_CHECKING:
    import pyarrow as pa

    from secure_bloom.parquet.members import Member
    from secure_bloom.reading.rows.pyarrow_source import SourceOpener
    from secure_bloom.reading.table.table_state import TableState, UnitedSchema
    from secure_bloom.storage.store_grants import StoreGrant

#: Bytes of footers that one read keeps from the schema to the plan.
_KEPT_FOOTERS = 64 * 1024 * 1024
#: Bytes of footers whose files are planned together.
_TOGETHER = 8 * 1024 * 1024
#: Runs of files grow by this factor up to this size: small at first, so that rows come soon.
_GROWTH, _MOST = 8, 256
#: Objects whose end is kept from the schema to the plan: 128 KiB each.
_MOST_ASIDE = 2048
#: The part of an open table's memory that ends of objects may take.
_PART_OF_ENDS = 4
#: Local files that all reads of the process together keep open from the schema to the plan.
_OPEN = threading.BoundedSemaphore(64)


class TableFiles:
    """The files of a table, by their ordinals, and their footers.

    ``at`` is the version to read of a table with a log.  With ``memory``, footers and object ends
    are kept and counted in this share. A share of 0 bytes keeps none. Without ``memory``, each
    footer is dropped after its use.

    ``before`` is an older state of the table: footers of files that did not change come from it.
    ``listing`` is the listing of the table if the caller has one.

    ``unverified`` has the paths of files whose footer is signed and could not be checked.
    ``workers`` is how many files are worth reading in parallel.
    """

    def __init__(
        self,
        given: Sequence[str],
        resolver: KeyResolver,
        at: TableVersion | None = None,
        memory: MemoryShare | None = None,
        *,
        before: TableFiles | None = None,
        listing: TableListing | None = None,
        grant: StoreGrant | None = None,
    ) -> None:
        # Settings of the store, which are used while a read keeps this.
        self._grant: StoreGrant | None = grant if before is None else before._grant
        self._forgets = memory is None
        self._share = memory or MemoryShare(_KEPT_FOOTERS)
        #: What this state keeps. It is closed when a newer state takes its place.
        self.memory = self._share.account()
        #: What lookups found out of column chunks; one read keeps nothing.
        self.chunks = None if memory is None else KeptChunks.of(self.memory)
        self.given = given
        self.at = at
        self.listing = listing or list_tables(given, at)
        self.paths = list(self.listing.paths)
        self.workers = files_at_once(self.paths)
        self.resolver = resolver
        trust = resolver.trust.with_tables_at(self.listing.places())
        resolver.trust = replace(trust, is_latest=at is None or at.is_latest)
        self.unverified: list[str] = []
        self._key_prefetch = KeyPrefetch(resolver)
        self._lock = threading.RLock()
        self._schema: pa.Schema | None = None
        self._opener: SourceOpener | None = None
        # Shared with the state before, so that files of one schema share their columns.
        self._schemas: SchemaCache = SchemaCache() if before is None else before._schemas
        self._before = (
            {} if before is None else {footer.path: footer for footer in before._kept.values()}
        )
        self._identities: dict[int, tuple[object, ...]] = {}
        #: The local files, by their ordinals.
        self._local: dict[int, str] = {}
        self._kept: dict[int, Footer] = {}
        #: Objects whose end is in memory, as long as all ends take little of it, and local files
        #: that one read keeps open.
        self._aside: dict[int, InputFile] = {}
        # For a caller that never closes this.
        weakref.finalize(self, _close_local, self._aside)
        self._ends: dict[str, InputFile] = {}
        #: The page indexes of objects of which rows were read, by their paths.
        self._page_indexes: dict[str, tuple[int, int] | None] = {}
        self._most_aside = _MOST_ASIDE if memory is None else memory.most // _PART_OF_ENDS // END
        #: The files of each schema.
        self.schemas: dict[FileColumns, frozenset[int]] = {}
        #: The columns of all files, once the footers were read.
        self.united: UnitedSchema | None = None
        self._checked: set[str] = set()
        #: The hidden members of each column that was looked at.
        self._hidden: dict[str, frozenset[Member]] = {}
        self._largest = 1
        self._bytes = 0

    def __len__(self) -> int:
        return len(self.paths)

    @functools.cached_property
    def state(self) -> TableState:
        """The columns and files of the table, as its own log has them."""
        # Imported here: filters are probed without pyarrow.
        from secure_bloom.reading.table.table_state import table_state

        return table_state(self.listing, self.given)

    @property
    def schema(self) -> pa.Schema:
        """The columns of the table without its partition columns. Each footer is read for it."""
        with self._lock:
            # Once, whichever threads ask: a footer that is kept is counted once.
            if self._schema is None:
                self._schema = self.state.with_columns_of_log(self.survey().arrow)
            return self._schema

    @functools.cached_property
    def partition_fields(self) -> list[pa.Field]:
        """The partition columns of the table."""
        return self.state.partition_fields

    @functools.cached_property
    def whole_schema(self) -> pa.Schema:
        """All columns of the table. Each footer is read for it."""
        from secure_bloom.predicates.bound_request import whole_schema

        return whole_schema(self.schema, self.partition_fields, self.state.order)

    @property
    def opener(self) -> SourceOpener:
        """Opens files for pyarrow. For an open table it keeps the footers that pyarrow parsed."""
        from secure_bloom.reading.rows.pyarrow_source import SourceOpener

        with self._lock:
            if self._opener is None:
                self._opener = SourceOpener(self.resolver, None if self._forgets else self.memory)
            return self._opener

    @property
    def is_versioned(self) -> bool:
        """Whether a log says which files are live, so that a replaced file is not in this state."""
        return bool(self.listing.folders or self.listing.tables)

    def check_unchanged(self) -> None:
        """Raise FileChangedError if a local file has changed since its footer was read."""
        for ordinal, path in self._local.items():
            if identity_at(path) != self._identities[ordinal]:
                raise FileChangedError(
                    "the file was changed, or removed, after the table was opened",
                    path=self.paths[ordinal],
                )

    def renewed(self, *, listed: bool) -> TableFiles:
        """Return the state as it is now, with all footers read. Unchanged files are not read again.

        With ``listed`` the table is not listed again: it keeps the files found at its opening.
        """
        memory = None if self._forgets else self._share
        listing = self.listing if listed else None
        new = TableFiles(self.given, self.resolver, self.at, memory, before=self, listing=listing)
        # Before the footers are read: most of them are the same objects, and count once.
        self.memory.close()
        try:
            _ = new.schema
        except BaseException:
            new.memory.close()
            self.memory.reopen()
            raise
        new._before = {}
        return new

    def ordinals_in(self, new: TableFiles) -> list[int]:
        """Return the new ordinal of each file, or -1 for a file that changed or is gone."""
        now = {new.paths[n]: (n, identity) for n, identity in new._identities.items()}
        found = [now.get(path, (-1, None)) for path in self.paths]
        return [
            ordinal if identity == self._identities.get(before) else -1
            for before, (ordinal, identity) in enumerate(found)
        ]

    @property
    def are_tiny(self) -> bool:
        """Whether the files are local, and so small on average that one thread is the fastest."""
        return self.workers == 1 and self._bytes <= TINY * len(self)

    def check(self, names: Iterable[str]) -> None:
        """Raise what :meth:`.Footer.check` raises of any file; each column is checked once."""
        for name in names:
            if name not in self._checked:
                for ordinal in range(len(self)):
                    if (footer := self.kept(ordinal)) is not None:
                        footer.check([name])
                    else:
                        with self.opened(ordinal) as (_, footer):
                            footer.check([name])
                self._checked.add(name)

    def hidden(self, names: Sequence[str]) -> frozenset[Member]:
        """Return the members of these columns whose key is missing in some file.

        Each file and column is looked at once. Raises KeyMisfitError for a wrong key.
        """
        with self._lock:
            found: dict[str, set[Member]] = {it: set() for it in names if it not in self._hidden}
            for ordinal in range(len(self)) if found else ():
                if (footer := self.kept(ordinal)) is not None:
                    _note_hidden(footer, found)
                else:
                    with self.opened(ordinal) as (_, footer):
                        _note_hidden(footer, found)
            self._hidden |= {name: frozenset(members) for name, members in found.items()}
            return frozenset().union(*(self._hidden[name] for name in names))

    def countable(self, names: Sequence[str]) -> str:
        """Return a column by which rows are counted: the first one whose key is available."""
        own = {column.name for column in self.partition_fields}
        readable = (name for name in names if name not in own and not self.hidden([name]))
        return next(readable, names[0])

    def runs(self, ordinals: Sequence[int]) -> Iterator[Sequence[int]]:
        """Yield files in runs whose footers fit into memory together."""
        for run in growing_runs(len(ordinals), lambda at: self._fitting(ordinals[at:])):
            yield ordinals[run.start : run.stop]

    def _fitting(self, ordinals: Sequence[int]) -> int:
        """Return how many of the first files have kept footers that fit into memory."""
        if self.workers > 1:
            # Threads limit how many are in memory, so a run may have any length.
            return len(self)
        size = count = 0
        for ordinal in ordinals[:_MOST]:
            footer = self._kept.get(ordinal)
            size += _TOGETHER + 1 if footer is None else footer.memory
            if size > _TOGETHER:
                break
            count += 1
        return count

    def kept(self, ordinal: int) -> Footer | None:
        """Return the footer of a file if it is kept, or None."""
        return self._kept.get(ordinal)

    def forget(self, ordinal: int) -> None:
        """Drop a footer that this read no longer needs, unless the table stays open."""
        if not self._forgets:
            return
        self._kept.pop(ordinal, None)
        if (file := self._aside.pop(ordinal, None)) is not None:
            _close(file)

    def close(self) -> None:
        """Drop what is kept, and close local files. A read in progress opens them again."""
        self.memory.close()
        _close_local(self._aside)

    @contextmanager
    def opened(self, ordinal: int) -> Iterator[tuple[CountedFile, Footer]]:
        """Open a file, and yield it with its footer.

        Raises FileChangedError if the file was changed since its footer was read.
        """
        with self.file(ordinal) as file:
            footer = self.kept(ordinal)
            if footer is not None:
                self._fetch_indexes(footer)
            yield CountedFile(file), footer or self._footer_of(file)

    @contextmanager
    def file(self, ordinal: int) -> Iterator[InputFile]:
        """Open a file. Raises FileChangedError if it was changed since its footer was read."""
        path = self.paths[ordinal]
        aside = self._aside.get(ordinal)
        if aside is not None and self.kept(ordinal) is not None and _is_same(aside):
            with located(path=path):
                yield aside
            return
        with located(path=path), self._open(path) as file:
            if file.identity != self._identities.setdefault(ordinal, file.identity):
                raise FileChangedError(
                    "the file was changed after its footer was read", hint="read it again"
                )
            yield file

    def _open(self, path: str) -> InputFile:
        # Of a file that was read before, only its identity is asked for; most did not change.
        return self.listing.open(path, pinned=path not in self._before)

    def reopen(self, footer: Footer, path: str) -> InputFile:
        """Open the file of a footer again to read its rows. It may have been replaced."""
        if self._forgets:
            return open_input(path)
        return reopen_pinned(path, footer.size, footer.identity, self._indexes(footer))

    def _indexes(self, footer: Footer) -> tuple[int, bytes]:
        """Return the offset and the bytes of an object's page indexes, if they are kept."""
        extent = self._fetch_indexes(footer)
        return (0, b"") if extent is None else (extent[0], self._ends[footer.path].read_at(*extent))

    def _fetch_indexes(self, footer: Footer) -> tuple[int, int] | None:
        """Keep the page indexes of an object beside its end, and return their offset and length.

        They are fetched once, in one request: otherwise each lookup makes three requests for
        them. No page is kept, because a request for pages shows whether the object is still the
        same. Return None for a local file, and if memory is full.
        """
        end = self._ends.get(footer.path)
        if end is None or self._forgets or end.identity != footer.identity:
            return None
        with self._lock:
            if footer.path not in self._page_indexes:
                extent = indexes_extent(footer.row_groups, footer.size)
                if extent is not None and not self.memory.take(extent[1]):
                    extent = None
                if extent is not None:
                    end.read_ahead([(extent[0], sum(extent))])
                self._page_indexes[footer.path] = extent
            return self._page_indexes[footer.path]

    def _footer_of(self, file: InputFile) -> Footer:
        known = self._before.get(file.path)
        if known is not None and known.identity == file.identity:
            return known
        return read_footer(file, self.resolver, self._schemas)

    def survey(self, note: Callable[[Footer], None] | None = None) -> UnitedSchema:
        """Read all footers, keep as many as fit into memory, and return the files' columns.

        ``note`` gets each footer, in the order of the files.  Raises the errors of opening files
        and of reading footers, with the path.
        """
        import pyarrow as pa

        from secure_bloom.reading.table.table_state import FileSchema, UnitedSchema, unite

        schemas, of_columns = [], dict[FileColumns, list[int]]()
        for ordinal, footer in enumerate(self._footers()):
            arrow = self.state.columns_of(footer.arrow)
            schemas.append(FileSchema.of(footer.path, arrow, footer.columns))
            if note is not None:
                note(footer)
            if not footer.is_verified:
                self.unverified.append(footer.path)
            self._identities[ordinal] = footer.identity
            if not is_object_uri(footer.path):
                self._local[ordinal] = local_path(footer.path)
            of_columns.setdefault(footer.columns, []).append(ordinal)
            self._bytes += footer.size
            self._largest = max(self._largest, footer.memory)
            if self.memory.take(footer.memory):
                self._kept[ordinal] = footer
        warn_unverified(self.unverified)
        self.schemas = {columns: frozenset(files) for columns, files in of_columns.items()}
        self.united = unite(schemas) if schemas else UnitedSchema(arrow=pa.schema([]))
        return self.united

    def _footers(self) -> Iterator[Footer]:
        if self.workers > 1:
            ordinals = range(len(self.paths))
            yield from in_order(self._footer, ordinals, self.workers)
            return
        for ordinals in growing_runs(len(self.paths), lambda _: _TOGETHER // self._largest):
            self.prepare_keys(ordinals)
            yield from map(self._footer, ordinals)

    def prepare_keys(self, ordinals: Sequence[int]) -> None:
        """Unwrap the keys of files in parallel, if each file has keys of its own."""
        self._key_prefetch.prepare([self.paths[ordinal] for ordinal in ordinals])

    def with_keys(self) -> Iterator[int]:
        """Yield all ordinals. The keys of the next files may be unwrapped meanwhile."""
        for ordinal, _ in enumerate(self._key_prefetch.each(self.paths)):
            yield ordinal

    def _footer(self, ordinal: int) -> Footer:
        path = self.paths[ordinal]
        with located(path=path):
            with ExitStack() as stack:
                file = stack.enter_context(self._open(path))
                footer = self._footer_of(file)
                if file.descriptor is not None:
                    if self._forgets and _OPEN.acquire(blocking=False):
                        self._aside[ordinal] = file
                        stack.pop_all()
                elif file.holds(file.size - 1, 1) and self._takes_aside():
                    file.set_aside()
                    self._aside[ordinal] = self._ends[path] = file
                    stack.pop_all()
            return footer

    def _takes_aside(self) -> bool:
        """Return whether the end of one more object fits into memory, and count it if it does."""
        has_room = len(self._aside) < self._most_aside
        return has_room and (self._forgets or self.memory.take(END))


def _is_same(file: InputFile) -> bool:
    """Return whether an open local file is still the file at its path."""
    return file.descriptor is None or identity_at(file.location) == file.identity


def _close_local(files: dict[int, InputFile]) -> None:
    for ordinal, file in tuple(files.items()):
        if file.descriptor is not None:
            del files[ordinal]
            _close(file)


def _close(file: InputFile) -> None:
    if file.descriptor is not None:
        _OPEN.release()
    file.close()


def _note_hidden(footer: Footer, found: Mapping[str, set[Member]]) -> None:
    """Add the members of a file's columns whose key is missing."""
    for name, hidden in found.items():
        for member, ordinal in footer.columns.members(name):
            # What is hidden in one file is hidden: no KMS is asked for it again.
            if member not in hidden and footer.lacks_key(ordinal):
                hidden.add(member)


def growing_runs(count: int, most: Callable[[int], int]) -> Iterator[range]:
    """Yield the ordinals below ``count`` in ranges, each longer than the range before.

    ``most`` says how many files fit into memory together, from an ordinal on. One file always does.
    """
    start, size = 0, 1
    while start < count:
        size = max(1, min(size, most(start)))
        yield range(start, min(start + size, count))
        start, size = start + size, min(_GROWTH * size, _MOST)
