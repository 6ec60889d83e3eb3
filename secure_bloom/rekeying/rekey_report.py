"""The report of a re-encryption or rotation: one record for each file, and its JSON."""

from __future__ import annotations

import time
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import ClassVar, Final, Literal

from secure_bloom.adding.report import CommittingReport
from secure_bloom.errors import SecureBloomError, failure_of
from secure_bloom.parquet.schema import Leaf
from secure_bloom.rekeying.protection import KeyUse, Protection
from secure_bloom.runs.target import GONE, TableCommit, TableTarget
from secure_bloom.storage import InputFile

#: The note on engines that have no keys for the files of a table.
_LOCKED_OUT: Final = (
    "cannot read the new files, or with a signed footer their columns with a key: for a table they "
    "have no keys of Parquet Modular Encryption. This package can, and `decrypt` writes the table "
    "in clear"
)

RekeyStatus = Literal["reencrypted", "decrypted", "rotated", "unchanged", "failed"]


@dataclass(frozen=True, slots=True, kw_only=True)
class ColumnChange:
    """The master key of a column before and after. None means in clear."""

    column: str
    key_before: str | None
    key: str | None


@dataclass(frozen=True, slots=True, kw_only=True)
class RekeyedFile:
    """One file: sizes in bytes, wall-clock seconds, footers as ``inspect`` names them.

    ``master_keys_before`` and ``master_keys`` are the master keys that it needed and needs now.
    ``new_path`` is the new file that has its rows now, in a table or below ``output``.
    ``notes`` say what still shows its old content.  A signed file that was decrypted without its
    footer's key is not ``verified``: its content may be forged.
    """

    path: str
    status: RekeyStatus
    bytes_before: int | None = None
    bytes_after: int | None = None
    seconds: float = 0.0
    footer_before: str | None = None
    footer: str | None = None
    columns: tuple[ColumnChange, ...] = ()
    master_keys_before: tuple[str, ...] = ()
    master_keys: tuple[str, ...] = ()
    error: str | None = None
    hint: str | None = None
    causes: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()
    verified: bool = True
    new_path: str | None = None

    @property
    def changes(self) -> bool:
        """Whether the file was changed."""
        return self.status not in ("unchanged", "failed")

    def planned(self) -> RekeyedFile:
        """Return the report of a dry run: only a file that is written shows its new size."""
        return replace(self, bytes_after=None) if self.changes else self

    def taken_meanwhile(self) -> RekeyedFile:
        """Return the report of a file that another writer removed from its table meanwhile."""
        return replace(
            self,
            status="unchanged",
            bytes_after=self.bytes_before,
            footer=self.footer_before,
            master_keys=self.master_keys_before,
            columns=tuple(replace(it, key=it.key_before) for it in self.columns),
            error=None,
            hint=None,
            causes=(),
            notes=(*self.notes, GONE),
            new_path=None,
        )


def rekeyed_file(
    file: InputFile,
    leaves: Sequence[Leaf],
    status: RekeyStatus,
    *,
    before: Protection,
    after: Protection,
    size: int,
    started: float,
) -> RekeyedFile:
    """Return the report of ``file``, whose new version has ``size`` bytes.

    ``started`` is a time of ``perf_counter``.
    """
    columns = zip(leaves, before.columns, after.columns, strict=True)
    return RekeyedFile(
        path=file.path,
        status=status,
        bytes_before=file.size,
        bytes_after=size,
        seconds=round(time.perf_counter() - started, 6),
        footer_before=str(before.footer_mode),
        footer=str(after.footer_mode),
        columns=tuple(
            ColumnChange(column=leaf.name, key_before=_name(old), key=_name(new))
            for leaf, old, new in columns
        ),
        master_keys_before=_master_keys(before),
        master_keys=_master_keys(after),
    )


def _name(use: KeyUse | None) -> str | None:
    return None if use is None else use.name


def _master_keys(protection: Protection) -> tuple[str, ...]:
    uses = (protection.footer, *protection.columns)
    return tuple(sorted({use.name for use in uses if use is not None and use.name is not None}))


def failed_file(path: str, error: SecureBloomError, seconds: float) -> RekeyedFile:
    """Return the report of a file that failed and is unchanged."""
    return RekeyedFile(path=path, status="failed", seconds=round(seconds, 6), **failure_of(error))


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class RekeyReport(CommittingReport[RekeyedFile]):
    """What a run did to each file.

    ``notes`` name files beside the changed ones that need attention. They repeat the notes of
    single files.
    """

    ROWS: ClassVar = ("files", "columns")


def table_notes(
    commits: Iterable[TableCommit], table: TableTarget, *, dry_run: bool = False
) -> Iterator[str]:
    """Yield notes on who can read the table after the run, and what old versions still show."""
    every = list(commits)
    when = "after the run " if dry_run else ""
    if any(commit.files for commit in every):
        if table.locked_out:
            yield f"{when}{table.locked_out} {_LOCKED_OUT}"
        yield f"{when}{table.old_files}"
    for note in table.shown if every else ():
        yield f"{when}{note}"
