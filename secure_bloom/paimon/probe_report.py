"""What the indexes of files told about a predicate: a verdict for each data file, and notes."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any

from secure_bloom.bloom.probe import Verdict
from secure_bloom.paimon.skipping_rules import Rules
from secure_bloom.reports import Report, counted_files


@dataclass(frozen=True, slots=True, kw_only=True)
class FileVerdict:
    """One data file: ``absent`` where no row of it satisfies the predicate, or its error.

    ``no_filter``: the file has no index of a column of the predicate.  By the rules of Paimon
    ``absent`` is a file that Paimon skips; ``note`` tells where that may lose rows.
    A signed file whose key is missing is not ``verified``: what it says may be forged.
    """

    path: str
    verdict: Verdict | None = None
    note: str | None = None
    verified: bool = True
    error: str | None = None
    hint: str | None = None
    causes: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class PaimonProbe(Report):
    """The verdicts of all files, by these rules; ``notes`` name columns that no file has."""

    rules: Rules
    files: tuple[FileVerdict, ...]
    notes: tuple[str, ...] = ()

    @property
    def verdicts(self) -> frozenset[Verdict]:
        """Every verdict that occurs."""
        return frozenset(file.verdict for file in self.files if file.verdict is not None)

    @property
    def failed(self) -> tuple[FileVerdict, ...]:
        """The files that could not be probed."""
        return tuple(file for file in self.files if file.error is not None)

    def _document(self) -> dict[str, Any]:
        return asdict(self)

    def _summary(self) -> str:
        return counted_files(
            "failed" if file.verdict is None else file.verdict for file in self.files
        )
