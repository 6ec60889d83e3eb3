"""What a run of re-encryption or rotation did: one record per file, and their JSON."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any, ClassVar, Literal

from secure_bloom.errors import SecureBloomError, failure_of
from secure_bloom.reports import Report, counted_files

RekeyStatus = Literal["reencrypted", "decrypted", "rotated", "unchanged", "failed"]


@dataclass(frozen=True, slots=True, kw_only=True)
class ColumnChange:
    """Under which master key a column was and is; None for in clear."""

    column: str
    key_before: str | None
    key: str | None


@dataclass(frozen=True, slots=True, kw_only=True)
class RekeyedFile:
    """One file: sizes in bytes, wall-clock seconds, footers as ``inspect`` names them.

    ``master_keys_before`` and ``master_keys`` are those that it depended on and depends on now.
    ``notes`` tell what still shows its old content.  A signed file that was decrypted without its
    footer's key is not ``verified``: what it says may be forged.
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

    @property
    def changes(self) -> bool:
        """Whether the file became another one."""
        return self.status not in ("unchanged", "failed")


def failed_file(path: str, error: SecureBloomError, seconds: float) -> RekeyedFile:
    """The report of a file that could not be done and is as it was."""
    return RekeyedFile(path=path, status="failed", seconds=round(seconds, 6), **failure_of(error))


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class RekeyReport(Report):
    """A whole run; ``notes`` tell of files beside the changed ones that should not stay so.

    They repeat the notes of single files.
    """

    files: tuple[RekeyedFile, ...]
    notes: tuple[str, ...] = ()
    dry_run: bool = False

    ROWS: ClassVar = ("files", "columns")

    @property
    def failed(self) -> tuple[RekeyedFile, ...]:
        """The files that could not be done; they are as they were."""
        return tuple(file for file in self.files if file.status == "failed")

    def _document(self) -> dict[str, Any]:
        return {
            "files": [asdict(file) for file in self.files],
            "notes": list(self.notes),
            "dry_run": self.dry_run,
        }

    def _summary(self) -> str:
        return counted_files((file.status for file in self.files), dry_run=self.dry_run)
