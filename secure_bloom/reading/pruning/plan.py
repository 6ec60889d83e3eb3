"""Plans: what is read from which file, and why, before a row is read."""

from __future__ import annotations

import enum
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

import pyarrow as pa

from secure_bloom.encryption.access import Access
from secure_bloom.lakes.deletion_vectors import DeletedRows, PaimonDeletedRows
from secure_bloom.lakes.hive_partitions import Values
from secure_bloom.parquet.footer.opened import Footer
from secure_bloom.predicates.bound_request import HiddenColumns, Request, request
from secure_bloom.predicates.tree import Predicate
from secure_bloom.storage.column_mapping import ColumnMapping
from secure_bloom.storage.inputs import Extent

if TYPE_CHECKING:
    from secure_bloom.lakes.iceberg.deletes import DeletedPositions, EqualityFile


class Reads(enum.Enum):
    """What a step reads: nothing but the footer, structures beside the pages, or data pages."""

    FOOTER = enum.auto()
    STRUCTURES = enum.auto()
    PAGES = enum.auto()


class Step(enum.StrEnum):
    """The steps that can rule a row group out, cheapest first.

    Each has a label, and what it reads.
    """

    reads: Reads

    def __new__(cls, label: str, reads: Reads) -> Step:
        """Return the step with a label."""
        step = str.__new__(cls, label)
        step._value_, step.reads = label, reads
        return step

    EMPTY = "no rows", Reads.FOOTER
    PARTITION = "partition value", Reads.FOOTER
    MISSING_COLUMN = "missing column", Reads.FOOTER
    STATISTICS = "statistics", Reads.FOOTER
    DICTIONARY = "dictionary", Reads.STRUCTURES
    BLOOM_FILTER = "Bloom filter", Reads.STRUCTURES
    PAGE_INDEX = "page index", Reads.STRUCTURES
    VALUES = "values", Reads.PAGES


def percent(share: float) -> str:
    """Return a share in percent with two digits: 0.076, 4.2, 99.9, but not 1e+02."""
    number = 100 * share
    if number < 1:
        return f"{number:.2g}" if number >= 1e-4 or number == 0 else "less than 0.0001"
    return f"{number:.1f}" if number < 99.95 else ("100" if share >= 1 else "99.9")


class Reason(enum.StrEnum):
    """Why a step did not skip a row group, or was not used. Programs may rely on the values."""

    NO_FILTER = "no filter"
    NEVER_A_FILTER = "never a filter"
    NO_LOOKUP = "no lookup"
    NO_SINGLE_FORM = "no single form"
    OTHER_PARTS = "other parts"
    FILTER_MAYBE = "filter: maybe"
    DICTIONARY_MAYBE = "dictionary: maybe"
    NO_KEY = "no key"


@dataclass(frozen=True, slots=True, kw_only=True)
class Note:
    """A finding about one column of a row group. ``step`` is None if it is about the column itself.

    ``fpp`` is the probability that a filter lets one absent value pass. ``chance`` is the
    probability that it lets at least one of the lookup's values pass, if all are absent.  ``rows``
    is how many rows a page index leaves.
    """

    column: str
    step: Step | None
    text: str
    reason: Reason | None = None
    fpp: float | None = None
    chance: float | None = None
    rows: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class RowGroupPlan:
    """One row group: skipped by a step, or read completely, or read in ``ranges``.

    Ranges are half-open, ascending and disjoint.  ``rows_found`` is how many rows matched, or None
    if they were not read yet.
    """

    row_group: int
    rows: int
    skipped_by: Step | None = None
    ranges: tuple[tuple[int, int], ...] | None = None
    rows_found: int | None = None
    notes: tuple[Note, ...] = ()

    @property
    def pages_are_read(self) -> bool:
        """Whether its data pages are read, if only to look for values in them."""
        return self.skipped_by is None or self.skipped_by.reads is Reads.PAGES


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class FilePlan:
    """One file: its row groups, and the conditions that cannot be checked because a key is missing.

    Skipped row groups are listed if the read is explained. Otherwise they may be left out.
    ``unchecked`` has ordinals of conditions. ``extents`` are the bytes that planning read.
    ``deleted`` are rows that the table has deleted, and ``equality`` are deletes by values.
    ``fills`` are values, other than null, of columns that the file lacks.
    """

    path: str
    footer: Footer = field(repr=False)
    partition: Values
    row_groups: tuple[RowGroupPlan, ...]
    unchecked: frozenset[int] = frozenset()
    extents: tuple[Extent, ...] = ()
    deleted: DeletedRows | PaimonDeletedRows | DeletedPositions | None = None
    equality: tuple[EqualityFile, ...] = ()
    fills: Mapping[str, pa.Scalar] = field(default_factory=dict, repr=False)

    @property
    def surviving(self) -> tuple[RowGroupPlan, ...]:
        """The row groups that are read."""
        return tuple(group for group in self.row_groups if group.skipped_by is None)


@dataclass(frozen=True, slots=True, kw_only=True)
class PlannedFile:
    """The row groups of one file that may have matching rows, with the ranges of rows if known.

    It can be pickled and sent to another machine.  There ``written`` (size, time and entity tag of
    the last write) and ``digest`` (of the stored footer) show whether the file is still the same.
    The digest alone is not enough, because another file can have the same footer.
    """

    path: str
    size: int
    written: tuple[object, ...] = field(repr=False)
    digest: bytes = field(repr=False)
    row_groups: tuple[RowGroupPlan, ...]
    partition: Values
    unchecked: frozenset[int]
    deleted: DeletedRows | PaimonDeletedRows | DeletedPositions | None = None
    equality: tuple[EqualityFile, ...] = ()
    fills: Mapping[str, pa.Scalar] = field(default_factory=dict, repr=False)


@dataclass(frozen=True, slots=True, kw_only=True)
class ReadPlan:
    """The plan of a read of a table. It can be pickled and carried out elsewhere.

    ``schema`` is the schema of the rows. ``files`` has only files with row groups left.  The rest
    is the request to the whole table: its schema, its partition columns, the predicate, which files
    the read accepts, the column names if those in files differ, and which columns are hidden.
    """

    schema: pa.Schema
    files: tuple[PlannedFile, ...]
    table: pa.Schema = field(repr=False)
    partitions: tuple[str, ...] = field(repr=False)
    predicate: Predicate | None = field(repr=False)
    access: Access = field(default_factory=Access, repr=False)
    names: ColumnMapping | None = field(default=None, repr=False)
    hidden: HiddenColumns = field(default_factory=HiddenColumns, repr=False)

    def request(self) -> Request:
        """Return the request to the table."""
        fields = [self.table.field(name) for name in self.partitions]
        asked = request(self.table, fields, self.schema.names, self.predicate, ())
        return replace(asked, output_schema=self.schema, hidden=self.hidden)
