"""Find the files that hold record keys: by range, then by filter, then by the data.

Only the footer of a file is read at first.  If range and filter leave a candidate, the key column
is read too, and only keys that it holds are reported.
"""

from __future__ import annotations

import enum
import os
from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass, field
from functools import partial
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from secure_bloom.calling.arguments import checked_arguments, member_of
from secure_bloom.calling.options import as_texts
from secure_bloom.encryption.access import Access, GivenKeys, GivenPolicy
from secure_bloom.encryption.file_keys import KeyResolver
from secure_bloom.encryption.trust import warn_unverified
from secure_bloom.errors import SecureBloomError, failure_of, located
from secure_bloom.hudi.key_column import distinct, key_chunks, key_ordinal, read_keys
from secure_bloom.hudi.record_keys.footer_entry import RECORD_KEY, RecordKeyEntry, read_entry_of
from secure_bloom.hudi.record_keys.packed_keys import (
    FROM_JAVA_ORDER,
    PackedKeys,
    java_order,
    keys_bytes,
)
from secure_bloom.lakes.formats import HUDI
from secure_bloom.lakes.managed_tables import find_unmanaged
from secure_bloom.parquet.footer.locate import read_tail
from secure_bloom.parquet.footer.opened import Footer, unlock_to_read
from secure_bloom.parquet.key_material_files import file_keys
from secure_bloom.reports.base import Report, counted_files
from secure_bloom.reports.text import counted
from secure_bloom.running.ordered_pool import in_order
from secure_bloom.runs.column_check import require_in_one
from secure_bloom.storage import InputFile, open_input
from secure_bloom.storage.paths import Paths, as_paths
from secure_bloom.storage.storage_options import with_storage_options

#: Files at work at a time: more than cores, because a search waits for the disk or the store.
_WORKERS = min(32, (os.cpu_count() or 1) + 4)


class LookupStatus(enum.StrEnum):
    """How far the search in a file went."""

    SKIPPED_BY_RANGE = "skipped_by_range"
    SKIPPED_BY_FILTER = "skipped_by_filter"
    READ = "read"
    FAILED = "failed"


@dataclass(frozen=True, slots=True, kw_only=True)
class FileLookup:
    """One file: how many of the keys are in its range, passed its filter, and are in its data.

    ``filter`` says whether the file has a filter of the searched column. A filter or range of
    another column rules out nothing.  A signed file whose key is missing is not ``verified``: its
    content may be forged.
    """

    path: str
    status: LookupStatus
    filter: bool = False
    in_range: int = 0
    candidates: int = 0
    found: int = 0
    verified: bool = True
    error: str | None = None
    hint: str | None = None
    causes: tuple[str, ...] = ()

    @property
    def false_positives(self) -> int:
        """Number of keys that passed the filter but are not in the file. 0 without a filter."""
        return self.candidates - self.found if self.filter else 0


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class LookupReport(Report):
    """For each key, the files that hold it, and for each file, the result of its search.

    If a file failed, it may also hold any of the keys in ``unknown``, which no other file holds.
    """

    found: Mapping[str, tuple[str, ...]] = field(repr=False)
    files: tuple[FileLookup, ...]

    @property
    def failed(self) -> tuple[FileLookup, ...]:
        """The files that could not be searched."""
        return tuple(file for file in self.files if file.status is LookupStatus.FAILED)

    @property
    def unknown(self) -> tuple[str, ...]:
        """The keys that were not found, but may be in a file that failed. Empty if none failed."""
        return tuple(key for key, paths in self.found.items() if self.failed and not paths)

    @property
    def false_positives(self) -> int:
        """Number of keys that passed a file's filter but are not in the file, over all files."""
        return sum(file.false_positives for file in self.files)

    @property
    def read_without_filter(self) -> int:
        """The number of files that were read because they have no filter of the column."""
        return sum(file.status is LookupStatus.READ and not file.filter for file in self.files)

    def count(self, status: LookupStatus | str) -> int:
        """Return the number of files with this status."""
        status = member_of(LookupStatus, "status", status)
        return sum(file.status is status for file in self.files)

    def _document(self) -> dict[str, Any]:
        return {
            "keys": {key: list(paths) for key, paths in self.found.items()},
            "keys_found": sum(bool(paths) for paths in self.found.values()),
            "keys_unknown": len(self.unknown),
            "files_skipped_by_range": self.count(LookupStatus.SKIPPED_BY_RANGE),
            "files_skipped_by_filter": self.count(LookupStatus.SKIPPED_BY_FILTER),
            "files_read": self.count(LookupStatus.READ),
            "files_read_without_filter": self.read_without_filter,
            "files_failed": self.count(LookupStatus.FAILED),
            "false_positives": self.false_positives,
            "files": [
                {**asdict(file), "false_positives": file.false_positives} for file in self.files
            ],
        }

    def _summary(self) -> str:
        found = sum(bool(paths) for paths in self.found.values())
        files = counted_files(file.status for file in self.files)
        return f"{found:,} of {counted(len(self.found), 'key')} found, {files}"


class SearchedKeys:
    """Distinct keys in Java's order, so that the keys in a file's range follow each other."""

    def __init__(self, keys: Iterable[bytes]) -> None:
        self._ordered = sorted({java_order(key) for key in keys})
        self._packed = PackedKeys.of(key.translate(FROM_JAVA_ORDER) for key in self._ordered)

    def candidates(self, entry: RecordKeyEntry | None) -> tuple[int, set[bytes]]:
        """Return how many keys are in the range of a file, and the keys that also pass its filter.

        Without a range, the file may hold any key. Without a filter, it may hold any key in its
        range.
        """
        start, stop = self._span(entry)
        if entry is None or start >= stop:
            return max(stop - start, 0), self._keys(range(start, stop))
        bloom_filter = entry.filter
        if bloom_filter is None:
            return stop - start, self._keys(range(start, stop))
        passing = bloom_filter.check_packed(self._packed.part(start, stop)).nonzero()[0]
        return stop - start, self._keys(start + int(i) for i in passing)

    def _span(self, entry: RecordKeyEntry | None) -> tuple[int, int]:
        if entry is None or entry.range is None:
            return 0, len(self._ordered)
        smallest, largest = entry.range.bounds()
        # Both ends of a range are keys of the file, so the largest is in it, too.
        return bisect_left(self._ordered, smallest), bisect_right(self._ordered, largest)

    def _keys(self, places: Iterable[int]) -> set[bytes]:
        return {self._ordered[place].translate(FROM_JAVA_ORDER) for place in places}


@checked_arguments
@with_storage_options
def lookup(
    paths: Paths,
    keys_to_find: str | Iterable[str],
    *,
    column: str = RECORD_KEY,
    keys: GivenKeys = None,
    policy: GivenPolicy = None,
    allow_unverified: bool = False,
    allow_unprotected: bool = False,
    storage_options: Mapping[str, object] | None = None,  # noqa: ARG001 - the decorator uses it
) -> LookupReport:
    """Find the base files that hold the given record key or keys.

    All files at ``paths`` are searched: pass the latest base files of a Hudi table, or older
    versions count too.  The key column is always read in a file whose filter and range are of
    another column.  A file that fails is reported and does not stop the others.

    Args:
        paths: Files, folders or globs, also inside Hudi tables.
        keys_to_find: One record key, or several.
        column: The key column.
        keys: A keyring or KMS client; by default the KMS of ``policy``.
        policy: A KeyPolicy, or the path of one.
        allow_unverified: Read a signed file whose footer key is missing.
        allow_unprotected: Read a file that is protected less than the policy says.
        storage_options: Settings of S3, as Polars, deltalake and pandas take them.

    Returns:
        A report with the files that hold each key.

    Raises:
        PolicyError: A key is empty, a path leads to no file, or no file has the column.

    Example:
        >>> sb.hudi.lookup("out/", "user7@example.com", column="email", policy="keys/policy.toml")
        <LookupReport: 1 of 1 key found, 1 file (1 read)>
    """
    texts = as_texts("keys_to_find", keys_to_find, each="key", many="record keys")
    wanted = dict(zip(texts, keys_bytes(texts), strict=True))
    searched = SearchedKeys(wanted.values())
    access = Access.of(
        keys, policy, allow_unverified=allow_unverified, allow_unprotected=allow_unprotected
    )
    resolver = access.resolver()
    # A Hudi table's own log is left to the caller; that of another format may say that files are
    # gone.
    files = find_unmanaged(as_paths(paths), honoured=[HUDI])
    require_in_one(files, resolver, lambda footer: key_ordinal(footer, column))
    search = partial(_search, searched=searched, column=column, resolver=resolver)
    answers = list(in_order(search, files, _WORKERS, room=len(files)))
    holders: dict[bytes, list[str]] = {}
    for report, found in answers:
        for key in found:
            holders.setdefault(key, []).append(report.path)
    warn_unverified(report.path for report, _ in answers if not report.verified)
    return LookupReport(
        found={key: tuple(holders.get(encoded, ())) for key, encoded in wanted.items()},
        files=tuple(report for report, _ in answers),
    )


def _search(
    path: str, searched: SearchedKeys, column: str, resolver: KeyResolver
) -> tuple[FileLookup, set[bytes]]:
    try:
        with located(path=path), open_input(path) as file:
            return _search_file(file, searched, column, resolver)
    except SecureBloomError as error:
        failed = LookupStatus.FAILED
        return FileLookup(path=path, status=failed, **failure_of(error)), set()


def _search_file(
    file: InputFile, searched: SearchedKeys, column: str, resolver: KeyResolver
) -> tuple[FileLookup, set[bytes]]:
    footer = unlock_to_read(read_tail(file), file_keys(resolver, file))
    entry = read_entry_of(footer, column)
    in_range, candidates = searched.candidates(entry)
    found = present_keys(file, footer, column, candidates)
    report = FileLookup(
        path=file.path,
        status=_status(in_range, len(candidates)),
        filter=entry is not None and entry.filter_text is not None,
        in_range=in_range,
        candidates=len(candidates),
        found=len(found),
        verified=footer.is_verified,
    )
    return report, found


def _status(in_range: int, candidates: int) -> LookupStatus:
    if in_range == 0:
        return LookupStatus.SKIPPED_BY_RANGE
    return LookupStatus.READ if candidates else LookupStatus.SKIPPED_BY_FILTER


def present_keys(
    file: InputFile, footer: Footer, column: str, candidates: set[bytes]
) -> set[bytes]:
    """Return the candidates that are in a row of the file. Reads nothing without a candidate."""
    found: set[bytes] = set()
    if not candidates:
        return found
    for chunk in key_chunks(footer, column):
        for array in map(distinct, read_keys(file, chunk)):
            # The values get the type of the batch: pyarrow does not compare binary of 32 bit
            # offsets with binary of 64 bit offsets.
            wanted = pa.array(candidates, array.type)
            found.update(array.filter(pc.is_in(array, value_set=wanted)).unique().to_pylist())
            if len(found) == len(candidates):
                return found
    return found
