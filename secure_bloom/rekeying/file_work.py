"""What re-encrypting and rotating have in common: a work whose steps are whole files.

A file that was written under other keys is read before it replaces the old one.  A run opens each
page that it seals or decrypts.  Columns that are in clear before and after are copied unchanged.
If a file wrongly says that a column is in clear, the copy would be unreadable. So the footer is
opened with the new keys, and the first page of each copied column is read.  A run with ``verify``
reads the first page of every column.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Collection, Iterable, Mapping, Sequence
from contextlib import closing, suppress
from dataclasses import dataclass, field
from typing import Self

from secure_bloom.encryption.file_keys import FileKeys, KeyResolver
from secure_bloom.encryption.kms import ExplicitKeys
from secure_bloom.encryption.policy import KeyPolicy
from secure_bloom.encryption.trust import named_by
from secure_bloom.errors import PolicyError, SecureBloomError, located
from secure_bloom.parquet.footer.chunks import Chunk
from secure_bloom.parquet.footer.locate import read_tail
from secure_bloom.parquet.footer.opened import unlock
from secure_bloom.parquet.key_prefetch import KeyPrefetch
from secure_bloom.parquet.pages import chunk_extent
from secure_bloom.parquet.schema import Leaf, partition_error, unknown_column
from secure_bloom.rekeying.new_keys import NewFileKeys
from secure_bloom.rekeying.protection import missing_columns
from secure_bloom.rekeying.regions import Region, RegionKind
from secure_bloom.rekeying.rekey_report import RekeyedFile, failed_file
from secure_bloom.rekeying.transfer import stored_pages
from secure_bloom.runs.work import FileTask, Steps
from secure_bloom.storage import InputFile, open_input
from secure_bloom.storage.column_mapping import ColumnMapping


class RekeyWork(ABC):
    """Brings single files under other keys. Several threads may share it."""

    __slots__ = ()

    policy: KeyPolicy | None
    dry_run: bool
    #: Whether some file must have each of the policy's columns with keys.
    needs_columns: bool

    @property
    def writes_nothing(self) -> bool:
        """Whether the run only reports what it would do."""
        return self.dry_run

    @property
    @abstractmethod
    def asks_for_each_key(self) -> bool:
        """Whether each file needs calls to a KMS, so that threads wait for them in parallel."""

    @abstractmethod
    def leaves(self, file: InputFile) -> Sequence[Leaf] | None:
        """Return the columns of a file, or None if its footer was not opened and hides them."""

    @abstractmethod
    def prefetch(self, targets: Mapping[str, str | None]) -> KeyPrefetch:
        """Return an object that makes the calls to the KMS for later files ahead of time."""

    @abstractmethod
    def process(self, task: FileTask, steps: Steps) -> RekeyedFile:
        """Process one file. Errors of this package become a failed report."""

    def policy_of(self, path: str) -> KeyPolicy | None:
        """Return the policy of one file, by its table. Raises PolicyError if it is in none."""
        return None if self.policy is None else self.policy.for_table(path)

    def check(self, files: Sequence[str]) -> None:
        """Raise PolicyError for a column with a key that no readable file has."""
        if self.needs_columns:
            check_columns(files, self)

    def in_threads(self, threads: int) -> Self:
        """Return this work unchanged, because it does not depend on the number of threads."""
        del threads
        return self

    def steps_of(self, report: RekeyedFile) -> int:
        """Return 1: a file is one step."""
        del report
        return 1

    @staticmethod
    def failed(task: FileTask, error: SecureBloomError) -> RekeyedFile:
        """Return the report of a file that another process could not finish."""
        return failed_file(task.path, error, 0.0)


def check_columns(files: Iterable[str], work: RekeyWork) -> None:
    """Raise PolicyError for a column with a key that no readable file of its table has.

    Reads footers until each column is found, mostly in the first one, or until a footer cannot be
    opened.
    """
    found: dict[str | None, _Columns] = {}
    for path in files:
        # A file that cannot be read, or of no table, is reported when its turn comes.
        with suppress(SecureBloomError):
            policy = work.policy_of(path)
            if policy is None:
                return
            wanted = _Columns(set(missing_columns(policy, ())), source=policy.source)
            table = found.setdefault(policy.table, wanted)
            # Files of another table may follow, if the policy has several.
            if not table.missing and policy.table is None:
                return
            if table.missing:
                table.paths.append(path)
                with open_input(path) as file:
                    table.take(policy, work.leaves(file))
    for pattern, table in found.items():
        # If no footer opened, no column is known; each file then has an error of its own.
        for name in sorted(table.missing) if table.known else ():
            error = partition_error(name, table.paths) or unknown_column(name, table.known)
            place = "" if pattern is None else f'[tables."{pattern}"]: '
            text = f"{place}{error.message}"
            with named_by(table.source):
                raise PolicyError(text, hint=error.hint)


@dataclass(slots=True)
class _Columns:
    """The columns with keys that no file of a table has had so far, and all columns seen."""

    missing: set[str]
    known: set[str] = field(default_factory=set)
    paths: list[str] = field(default_factory=list)
    #: The file of the policy.
    source: str | None = None

    def take(self, policy: KeyPolicy, leaves: Sequence[Leaf] | None) -> None:
        """Note the columns of one file.

        ``leaves`` None means unknown: the file may have any column.
        """
        if leaves is None:
            self.missing.clear()
            return
        self.missing.intersection_update(missing_columns(policy, leaves))
        self.known.update(leaf.name for leaf in leaves)


def check_written(
    file: InputFile,
    keys: FileKeys,
    columns: Collection[int] | None,
    names: ColumnMapping | None = None,
) -> None:
    """Raise the error of the first part of a new file that cannot be read.

    ``columns`` are the ordinals of the columns whose first page is read. None means all columns.
    ``names`` maps the columns to their names in the table: ``keys`` finds their keys by these.
    """
    file.column_names = names
    try:
        footer = unlock(read_tail(file), keys)
        every = range(len(footer.leaves)) if columns is None else columns
        for column in every if footer.row_groups else ():
            with located(row_group=0, column=footer.leaves[column].name):
                _read_first_page(file, footer.chunk(0, column), column)
    except SecureBloomError as error:
        error.hint = (
            "the new file could not be read, so the old one was left as it was; check that "
            "file with secure-bloom audit"
        )
        raise


def _read_first_page(file: InputFile, chunk: Chunk, column: int) -> None:
    start, length = chunk_extent(chunk)
    region = Region(offset=start, length=length, kind=RegionKind.PAGES, chunk=chunk, column=column)
    with closing(stored_pages(file, region)) as pages:
        for page, _, _ in pages:
            page.body()
            return


def keys_by_place(new: NewFileKeys | None, leaves: tuple[Leaf, ...]) -> FileKeys:
    """Return the keys of a new file, by its footer and columns, so that no KMS is needed.

    ``new`` is None for a file in clear.
    """
    if new is None:
        return KeyResolver(None).for_file()
    columns: Mapping[str, bytes] = {
        leaf.name: sealed.key.key
        for ordinal, leaf in enumerate(leaves)
        if (sealed := new.sealed_with(ordinal)) is not None
    }
    given = ExplicitKeys(footer=new.footer.key.key, columns=columns)
    return KeyResolver(given).for_file(lambda: new.external)
