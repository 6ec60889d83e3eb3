"""Options and reports of a build of indexes, with their JSON form."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any, ClassVar, Literal

from secure_bloom.calling.arguments import check_fields
from secure_bloom.errors import PolicyError
from secure_bloom.paimon.bloom_filter64 import sizing
from secure_bloom.reports.base import Report, counted_files


@dataclass(frozen=True, slots=True, kw_only=True)
class IndexOptions:
    """The size of one column's filter: for ``items`` distinct values at ``fpp``, 0 < fpp < 1.

    If ``items`` is None, the values are counted.  Paimon's own default is 1,000,000 for every file.
    """

    items: int | None = None
    fpp: float = 0.1

    def __post_init__(self) -> None:
        check_fields(self)
        if self.items is not None and self.items < 1:
            raise PolicyError(f"items is {self.items}, it must be at least 1")
        if not 0.0 < self.fpp < 1.0:
            raise PolicyError(f"fpp is {self.fpp}, it must lie between 0 and 1, both excluded")
        sizing(self.items or 0, self.fpp)


@dataclass(frozen=True, slots=True, kw_only=True)
class ColumnReport:
    """One column's filter: sized for ``items``, filled with ``values``, with a body of ``bytes``.

    ``fpp`` is computed from the filter's bits.  A column without any value has an EMPTY index, of
    no bytes.  ``shows`` says what the index reveals about an encrypted column.
    """

    column: str
    items: int
    values: int
    bytes: int
    hash_functions: int | None
    fpp_requested: float
    fpp: float | None
    encrypted: bool
    shows: str | None


@dataclass(frozen=True, slots=True, kw_only=True)
class IndexReport:
    """One data file's index: its path, its size in bytes, and the parts that were built or kept.

    A signed data file whose key is missing is not ``verified``: its content may be forged.
    """

    path: str
    status: Literal["built", "failed"]
    index: str | None = None
    bytes: int | None = None
    columns: tuple[ColumnReport, ...] = ()
    kept: tuple[str, ...] = ()
    verified: bool = True
    error: str | None = None
    hint: str | None = None
    causes: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class BuildReport(Report):
    """The indexes of a run. With ``dry_run`` nothing was written."""

    files: tuple[IndexReport, ...]
    dry_run: bool = False

    ROWS: ClassVar = ("files", "columns")

    @property
    def failed(self) -> tuple[IndexReport, ...]:
        """The files that failed. Their indexes are unchanged."""
        return tuple(file for file in self.files if file.status == "failed")

    @property
    def notes(self) -> tuple[str, ...]:
        """Notes on encrypted columns whose index everyone can read. Each column is named once."""
        shown = {c.column: c.shows for file in self.files for c in file.columns if c.shows}
        return tuple(f"column {name}: {shows}" for name, shows in sorted(shown.items()))

    def _document(self) -> dict[str, Any]:
        return {"files": [asdict(file) for file in self.files], "dry_run": self.dry_run}

    def _summary(self) -> str:
        return counted_files((file.status for file in self.files), dry_run=self.dry_run)
