"""Choose the files and row groups of a table to be tried, by the footers of all its files.

The choice is random and the same in every run.  A small table is tried as a whole.  In a large
table some files are chosen, and of large files some row groups.
"""

from __future__ import annotations

import random
from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, field

import pyarrow as pa

from secure_bloom.advising.candidates import Candidate, candidates
from secure_bloom.calling.arguments import Progress
from secure_bloom.encryption.file_keys import KeyResolver
from secure_bloom.errors import SecureBloomError, located
from secure_bloom.lakes import LiveFile, TableListing
from secure_bloom.parquet.footer.columns import SchemaCache
from secure_bloom.parquet.footer.opened import Footer, read_footer
from secure_bloom.parquet.pages import chunk_extent
from secure_bloom.reading.lookup_trials import RowGroups, TrialTable
from secure_bloom.reading.table.table_files import TableFiles
from secure_bloom.running.memory_budget import MemoryShare, memory_budget
from secure_bloom.running.ordered_pool import in_order
from secure_bloom.storage import InputFile, files_at_once, is_object_uri
from secure_bloom.storage.inputs import Extent, SharedFile, covered

#: At most this many files are looked at, and about this many bytes of them.
MOST_FILES, MOST_BYTES = 32, 96 * 1024 * 1024
#: At least this many row groups, whatever their size: chance must not decide.  And at most this
#: many, however small: each takes time in each of a hundred lookups.
_LEAST_ROW_GROUPS, _MOST_ROW_GROUPS = 6, 200
#: Rows that take less than two bytes each: a file of 4 MB may have a billion equal ones.
_MOST_ROWS = 64_000_000

#: The footers of more files than these take long enough to show progress.
_MANY = 500


@dataclass(frozen=True, slots=True, kw_only=True)
class FileFacts:
    """Facts from the footer of one file: the rows of each row group, and sizes in bytes."""

    path: str
    size: int
    rows: tuple[int, ...]
    bytes_footer: int


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class TableSample:
    """A table, and the part of it that is tried: ``row_groups`` of some files.

    ``is_cut`` is whether only a part of some file is tried. ``bytes_footers`` is the number of
    bytes that one lookup reads from the footers of all files. ``rows`` is the number of rows in
    files, ``deleted_rows`` the number of rows that a table's log deletes.
    """

    tables: TableListing = field(repr=False)
    table: TrialTable
    candidates: tuple[Candidate, ...]
    files: tuple[FileFacts, ...]
    row_groups: RowGroups
    is_cut: bool
    file_count: int
    row_group_count: int
    rows: int
    size: int
    bytes_footers: int
    deleted_rows: int = 0

    @property
    def chosen_count(self) -> int:
        """The number of row groups that are tried."""
        return sum(map(len, self.row_groups.values()))

    @property
    def chosen_rows(self) -> int:
        """The number of rows that are tried."""
        return sum(rows for _, _, rows in self.groups())

    def groups(self) -> list[tuple[str, int, int]]:
        """Return the row groups that are tried: path, ordinal, rows."""
        facts = {file.path: file for file in self.files}
        return [
            (path, group, facts[path].rows[group])
            for path, groups in self.row_groups.items()
            for group in groups
        ]


class SampleFiles:
    """Opens the files of a sample. Their columns have the names of the table.

    Lookups read the same files many times, so objects stay open, and the row groups that are tried
    are fetched once, side by side.
    """

    def __init__(self, sample: TableSample, resolver: KeyResolver) -> None:
        self._tables = sample.tables
        objects = [path for path in sample.row_groups if is_object_uri(path)]
        room = memory_budget() // max(1, len(objects))

        def fetched(path: str) -> InputFile:
            with located(path=path):
                file = self._tables.open(path)
                footer = read_footer(file, resolver, SchemaCache(sample.table.names))
                file.read_ahead(list(_extents(footer, sample.row_groups[path])), room=room)
                return file

        opened = in_order(fetched, objects, files_at_once(objects))
        self._objects = dict(zip(objects, opened, strict=True))

    def open(self, path: str) -> InputFile:
        """Open one of the files."""
        found = self._objects.get(path)
        return self._tables.open(path) if found is None else SharedFile(found)


def _extents(footer: Footer, groups: Iterable[int]) -> Iterator[Extent]:
    """Yield the bytes that lookups in the row groups may read."""
    for group in groups:
        for column in range(len(footer.leaves)):
            # A column without a key, or with wrong offsets, is left to whoever reads it.
            with suppress(SecureBloomError):
                chunk = footer.chunk_to_read(group, column)
                start, length = chunk_extent(chunk)
                yield start, start + length
                found = chunk.meta_data
                if found.bloom_filter_offset is not None and found.bloom_filter_length is not None:
                    end = found.bloom_filter_offset + found.bloom_filter_length
                    yield found.bloom_filter_offset, end


def sample_table(
    given: Sequence[str], resolver: KeyResolver, *, progress: Progress | None = None
) -> TableSample:
    """Read all footers, and choose the part to be tried.

    Raises the errors of opening files, with the path.
    """
    files = TableFiles(given, resolver, memory=MemoryShare(0))
    listing, state = files.listing, files.state
    facts: list[FileFacts] = []
    first: dict[int, Footer] = {}

    def note(footer: Footer) -> None:
        facts.append(
            FileFacts(
                path=footer.path,
                size=footer.size,
                rows=tuple(footer.rows),
                bytes_footer=covered(footer.tail.extents),
            )
        )
        # Files of one schema share their columns, so this holds one footer for each schema.
        first.setdefault(id(footer.columns), footer)
        if progress is not None and len(files) > _MANY:
            progress(len(facts), len(files))

    united = files.survey(note)
    chosen = _choose_files(facts)
    row_groups = _choose_row_groups(chosen)
    partitions = dict(zip(files.paths, state.partitions, strict=True))
    fields = tuple(state.partition_fields)
    schema = state.with_columns_of_log(united.readable)
    every = candidates(list(first.values()), [field.name for field in fields])
    own = {*schema.names, *(field.name for field in fields)}
    found = tuple(candidate for candidate in every if candidate.path[0] in own)
    return TableSample(
        tables=listing,
        table=TrialTable(
            schema=schema,
            partition_fields=fields,
            partitions={file.path: partitions[file.path] for file in chosen},
            output=_readable(schema, fields, found),
            names=state.names,
        ),
        candidates=found,
        files=tuple(chosen),
        row_groups=row_groups,
        is_cut=any(len(row_groups[file.path]) < len(file.rows) for file in chosen),
        file_count=len(facts),
        row_group_count=sum(len(file.rows) for file in facts),
        rows=sum(sum(file.rows) for file in facts),
        size=sum(file.size for file in facts),
        bytes_footers=sum(file.bytes_footer for file in facts),
        deleted_rows=sum(
            it.deleted_rows for it in listing.files.values() if isinstance(it, LiveFile)
        ),
    )


def _choose_files(facts: Sequence[FileFacts]) -> list[FileFacts]:
    """Return some files that have rows, in their order, or all files if they are few."""
    having = [file for file in facts if sum(file.rows)]
    if len(having) <= MOST_FILES:
        return having
    chance = random.Random(len(having))  # noqa: S311 - the same choice in every run
    chosen = sorted(chance.sample(range(len(having)), MOST_FILES))
    return [having[ordinal] for ordinal in chosen]


def _choose_row_groups(files: Sequence[FileFacts]) -> dict[str, tuple[int, ...]]:
    """Return all row groups of the files, or the same share of each file of a large table."""
    size = sum(file.size for file in files)
    count = sum(len(file.rows) for file in files)
    share = max(MOST_BYTES / max(1, size), _LEAST_ROW_GROUPS / max(1, count))
    rows = sum(sum(file.rows) for file in files)
    share = min(share, _MOST_ROW_GROUPS / max(1, count), _MOST_ROWS / max(1, rows))
    return {file.path: tuple(_some(file, share)) for file in files}


def _some(file: FileFacts, share: float) -> Iterable[int]:
    having = [group for group, rows in enumerate(file.rows) if rows]
    count = max(1, round(len(having) * share))
    if count >= len(having):
        return range(len(file.rows))
    chance = random.Random(file.path)  # noqa: S311 - the same choice in every run
    return sorted(chance.sample(having, count))


def _readable(
    schema: pa.Schema, partitions: Sequence[pa.Field], found: Sequence[Candidate]
) -> tuple[str, ...] | None:
    """Return the columns that lookups return: all columns whose keys are available."""
    missing = {candidate.path[0] for candidate in found if candidate.is_locked}
    if not missing:
        return None
    names = dict.fromkeys((*schema.names, *(field.name for field in partitions)))
    return tuple(name for name in names if name not in missing)
