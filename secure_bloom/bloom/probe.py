"""Probe filters: say whether a row group may hold a value, for files, folders and globs.

Only footers and filters are read.  This does not need pyarrow, so a single probe starts fast.
"""

from __future__ import annotations

import enum
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any, ClassVar

from secure_bloom.bloom.split_block import SplitBlockBloomFilter
from secure_bloom.bloom.stored import read_bloom_filter
from secure_bloom.calling.arguments import checked_arguments
from secure_bloom.encryption.access import Access, GivenKeys, GivenPolicy
from secure_bloom.encryption.file_keys import KeyResolver
from secure_bloom.encryption.trust import warn_unverified
from secure_bloom.errors import PolicyError, SecureBloomError, failure_of, located
from secure_bloom.parquet.footer.locate import read_tail
from secure_bloom.parquet.footer.opened import Chunk, Footer, open_chunk, unlock_to_read
from secure_bloom.parquet.key_material_files import file_keys
from secure_bloom.parquet.key_prefetch import KeyPrefetch
from secure_bloom.parquet.literals import physical_values, python_value
from secure_bloom.parquet.schema import (
    INT96_NOTE,
    Leaf,
    require_filterable,
    select,
    unknown_column,
)
from secure_bloom.parquet.structures.metadata import Type
from secure_bloom.reports.base import ReportOfFiles
from secure_bloom.reports.text import counted
from secure_bloom.running.ordered_pool import in_order
from secure_bloom.storage import InputFile, files_at_once
from secure_bloom.storage.inputs import Extent
from secure_bloom.storage.paths import Paths, as_paths
from secure_bloom.tables import TableVersion, list_tables


class Verdict(enum.StrEnum):
    """The answer of a filter for a value in one row group."""

    ABSENT = "absent"
    MAYBE = "maybe"
    NO_FILTER = "no_filter"


@dataclass(frozen=True, slots=True, kw_only=True)
class RowGroupProbe:
    """One row group: whether it has a filter, and the verdict of each value as it was given."""

    row_group: int
    filter: bool
    verdicts: Mapping[object, Verdict]


@dataclass(frozen=True, slots=True, kw_only=True)
class FileProbe:
    """One file: its row groups, or why it could not be probed.

    A signed file whose key is missing is not ``verified``: its content may be forged.  ``note``
    gives the reason if the column's filters cannot answer.
    """

    path: str
    row_groups: tuple[RowGroupProbe, ...] = ()
    verified: bool = True
    note: str | None = None
    error: str | None = None
    hint: str | None = None
    causes: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class ProbeReport(ReportOfFiles[FileProbe]):
    """The verdicts of all files for one column."""

    column: str
    files: tuple[FileProbe, ...]

    ROWS: ClassVar = ("files", "row_groups")
    HIDDEN: ClassVar = frozenset({"value"})

    @property
    def verdicts(self) -> frozenset[Verdict]:
        """Every verdict that occurs."""
        groups = (group for file in self.files for group in file.row_groups)
        return frozenset(verdict for group in groups for verdict in group.verdicts.values())

    def records(self) -> Iterator[dict[str, Any]]:
        """Yield one row for each file, row group and value."""
        for row in ReportOfFiles.records(self):
            verdicts = row.pop("verdicts", {None: None})
            yield from (row | {"value": v, "verdict": verdict} for v, verdict in verdicts.items())

    def _document(self) -> dict[str, Any]:
        return {"column": self.column, "files": [_file_json(file) for file in self.files]}

    def _summary(self) -> str:
        groups = [group for file in self.files for group in file.row_groups]
        left = sum(not {Verdict.ABSENT}.issuperset(group.verdicts.values()) for group in groups)
        failed = f", {len(self.failed)} failed" if self.failed else ""
        return (
            f"column {self.column}, {counted(len(self.files), 'file')}{failed}, {left} of "
            f"{counted(len(groups), 'row group')} may hold a value"
        )


def _file_json(file: FileProbe) -> dict[str, Any]:
    groups = [
        {
            "row_group": group.row_group,
            "filter": group.filter,
            "verdicts": {str(value): str(v) for value, v in group.verdicts.items()},
        }
        for group in file.row_groups
    ]
    document: dict[str, Any] = {
        "path": file.path,
        "verified": file.verified,
        "row_groups": groups,
        "note": file.note,
    }
    if file.error is not None:
        document |= {"error": file.error, "hint": file.hint, "causes": list(file.causes)}
    return document


@checked_arguments
def probe(
    paths: Paths,
    column: str,
    values: object,
    *,
    keys: GivenKeys = None,
    policy: GivenPolicy = None,
    allow_unverified: bool = False,
    allow_unprotected: bool = False,
    version: int | None = None,
    timestamp: str | datetime | None = None,
    snapshot: int | None = None,
) -> ProbeReport:
    """Ask the filters of ``column`` for each of ``values``, per file and row group.

    A file that cannot be probed is reported with its error and does not stop the others.  The
    verdict on a value that occurs only in deleted rows may be "maybe".

    Args:
        paths: Files, folders, globs or URIs, or one table with a log.
        column: The dotted path of the column.
        values: One value, or a collection, written as a person would (text) or as Python has it
            (int, Decimal, datetime, ...).
        keys: A keyring or KMS client; by default the KMS of ``policy``.
        policy: A KeyPolicy, or the path of one.
        allow_unverified: Read a signed file whose footer key is missing.
        allow_unprotected: Read a file that is protected less than the policy says.
        version: Version of a Delta table; by default the latest.
        timestamp: Time (ISO 8601 text or datetime) instead of a version or snapshot.
        snapshot: Id of a snapshot of an Iceberg table; by default the current one.

    Returns:
        A report with a verdict for each value and row group: absent, maybe or no filter.

    Raises:
        PolicyError: No file has the column, or it cannot hold a value of that kind.

    Example:
        >>> sb.probe("out/", "email", "ada@example.org", policy="keys/policy.toml")
        <ProbeReport: column email, 1 file, 0 of 2 row groups may hold a value>
    """
    access = Access.of(
        keys, policy, allow_unverified=allow_unverified, allow_unprotected=allow_unprotected
    )
    resolver = access.resolver()
    every = _as_values(values)
    known = set[str]()
    at = TableVersion(version=version, timestamp=timestamp, snapshot=snapshot)
    listing = list_tables(as_paths(paths), at)

    def probed(path: str) -> FileProbe:
        try:
            with located(path=path), listing.open(path) as file:
                return _probe_file(file, column, every, resolver, known)
        except SecureBloomError as error:
            if isinstance(error, PolicyError) and error.column is not None:
                # The request itself is wrong, so it is wrong for all other files too.
                raise
            return FileProbe(path=path, **failure_of(error))

    files = listing.paths
    ahead = KeyPrefetch(resolver).each(files)
    reports = list(in_order(probed, ahead, files_at_once(files), room=len(files)))
    # A column that was added to a table is in none of the files that were written before.
    known |= listing.column_names()
    if known and column not in known:
        raise unknown_column(column, known, (report.path for report in reports))
    warn_unverified(report.path for report in reports if not report.verified)
    return ProbeReport(column=column, files=tuple(reports))


def _as_values(values: object) -> list[object]:
    """Return the given values as a list.

    A text, bytes, or an object that is no collection is one value.
    """
    values = python_value(values)
    if isinstance(values, str | bytes | bytearray | Mapping) or not isinstance(values, Iterable):
        return [_distinguishable(values)]
    return [_distinguishable(python_value(value)) for value in values]


def _distinguishable(value: object) -> object:
    """Return the value. Raises PolicyError for a value that cannot be looked up, such as a list."""
    try:
        hash(value)
    except TypeError:
        raise PolicyError(
            f"a value is of type {type(value).__name__}, wanted a text, a number or the like"
        ) from None
    return value


def _probe_file(
    file: InputFile, column: str, values: list[object], resolver: KeyResolver, known: set[str]
) -> FileProbe:
    keys = file_keys(resolver, file)
    footer = unlock_to_read(read_tail(file), keys)
    known.update(leaf.name for leaf in footer.leaves)
    ordinal = _ordinal(footer, column, known)
    probed = {} if ordinal is None else _encoded(footer.leaves[ordinal], values)
    chunks = [
        None if ordinal is None else open_chunk(footer, row_group, ordinal, keys)
        for row_group in range(len(footer.row_groups))
    ]
    file.read_ahead(_filter_extents(filter(None, chunks)))
    return FileProbe(
        path=file.path,
        verified=footer.is_verified,
        note=None if ordinal is None else _note(footer.leaves[ordinal]),
        row_groups=tuple(
            _probe_row_group(file, row_group, chunk, probed or dict.fromkeys(values))
            for row_group, chunk in enumerate(chunks)
        ),
    )


def _ordinal(footer: Footer, column: str, known: set[str]) -> int | None:
    """Return the ordinal of the column's leaf, or None for a file without the column.

    Raises PolicyError for a column with several leaves.
    """
    ordinals = select(footer.leaves, column)
    if ordinals:
        # A column with leaves inside is known by its own name too, and gets the better error below.
        known.add(column)
    if len(ordinals) > 1:
        raise PolicyError(
            f"the column has {len(ordinals)} leaves",
            hint="name one of " + ", ".join(footer.leaves[i].name for i in ordinals),
            column=column,
        )
    return ordinals[0] if ordinals else None


def _filter_extents(chunks: Iterable[Chunk]) -> list[Extent]:
    """Return the places of filters, if the footer names both offset and length."""
    every = [(it.meta_data.bloom_filter_offset, it.meta_data.bloom_filter_length) for it in chunks]
    return [(start, start + length) for start, length in every if start and length]


def _encoded(leaf: Leaf, values: list[object]) -> dict[object, tuple[bytes, ...] | None]:
    require_filterable(leaf)
    encoded = {value: physical_values(leaf, value) for value in values}
    # A reader rounds the value that it looks for, so the exact one may be absent where rows match.
    return dict.fromkeys(encoded) if leaf.type is Type.INT96 else encoded


def _note(leaf: Leaf) -> str | None:
    return f"column {leaf.name} is {INT96_NOTE}" if leaf.type is Type.INT96 else None


def _probe_row_group(
    file: InputFile,
    row_group: int,
    chunk: Chunk | None,
    probed: Mapping[object, tuple[bytes, ...] | None],
) -> RowGroupProbe:
    stored = None if chunk is None else read_bloom_filter(file, chunk)
    return RowGroupProbe(
        row_group=row_group,
        filter=stored is not None,
        # A file without a filter says nothing, and it must not look like one that has the value.
        verdicts={
            value: Verdict.NO_FILTER if stored is None else verdict(stored.filter, encodings)
            for value, encodings in probed.items()
        },
    )


def verdict(bloom_filter: SplitBlockBloomFilter, encodings: tuple[bytes, ...] | None) -> Verdict:
    """Return the filter's verdict on a value in any of its encodings.

    The verdict is MAYBE if ``encodings`` is None.
    """
    # None: a filter cannot answer for the value, which is null or NaN.
    if encodings is None or any(bloom_filter.check(encoding) for encoding in encodings):
        return Verdict.MAYBE
    return Verdict.ABSENT
