"""What re-encrypting and rotating have in common: a work whose steps are whole files."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Self

from secure_bloom.encryption.policy import KeyPolicy
from secure_bloom.encryption.trust import named_by
from secure_bloom.errors import PolicyError, SecureBloomError
from secure_bloom.parquet.key_prefetch import KeyPrefetch
from secure_bloom.parquet.schema import Leaf, partition_error, unknown_column
from secure_bloom.rekeying.protection import missing_columns
from secure_bloom.rekeying.rekey_report import RekeyedFile, failed_file
from secure_bloom.runs.work import FileTask, Steps
from secure_bloom.storage import InputFile, open_input


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
