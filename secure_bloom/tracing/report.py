"""The report of a leak search: counts of words by file and column, never a word."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass
from typing import Any, ClassVar

from secure_bloom.reports.base import Report
from secure_bloom.reports.text import counted
from secure_bloom.tracing.column_words import ColumnWords
from secure_bloom.tracing.verdicts import Meaning


@dataclass(frozen=True, slots=True, kw_only=True)
class Occurrence:
    """Words of a column in a part of a file.

    ``place`` is the part, or "" for the file itself. ``passed`` is the number of distinct words
    whose hash equals that of a word of the column; overlapping words count once. ``compared``
    counts the words that were compared with the values, and ``confirmed`` those that were equal to
    a value. ``share`` is ``passed`` as a share of the column's words. ``verdict`` is "values" for a
    finding, and "mention" for too few words for a finding.
    """

    column: str
    place: str
    verdict: Meaning
    passed: int
    compared: int
    confirmed: int
    share: float


@dataclass(frozen=True, slots=True, kw_only=True)
class UnreadPart:
    """A part of a file that could not be read, and why."""

    place: str
    reason: str


@dataclass(frozen=True, slots=True, kw_only=True)
class TracedFile:
    """A file, and what was found in it. ``asked`` counts the words that were looked up in a filter.

    In ``path`` a number replaces each component that holds a value of a column.
    """

    path: str
    bytes: int
    asked: int
    found: tuple[Occurrence, ...] = ()
    unread: tuple[UnreadPart, ...] = ()

    @property
    def findings(self) -> Iterator[Occurrence]:
        """The occurrences that are findings."""
        return (it for it in self.found if it.verdict is Meaning.VALUES)


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class TraceReport(Report):
    """Where values of columns occur in files.

    ``files`` has only the files in which something was found or could not be read. ``searched``
    counts all files.
    """

    columns: tuple[ColumnWords, ...]
    files: tuple[TracedFile, ...] = ()
    searched: int = 0
    bytes: int = 0
    asked: int = 0

    ROWS: ClassVar = ("files", "found")

    @property
    def is_clean(self) -> bool:
        """Whether nothing was found, everything was read, and all columns were searched for."""
        are_whole = all(it.is_whole and it.not_searched is None for it in self.columns)
        return are_whole and not any(any(it.findings) or it.unread for it in self.files)

    def _document(self) -> Mapping[str, Any]:
        return {
            "columns": [it.to_dict() for it in self.columns],
            "files": [asdict(file) for file in self.files],
            "searched": self.searched,
            "bytes": self.bytes,
            "asked": self.asked,
        }

    def _summary(self) -> str:
        found = sum(any(file.findings) for file in self.files)
        unread = sum(bool(file.unread) for file in self.files)
        texts = [f"values in {counted(found, 'file')} of {self.searched:,}"]
        texts += [f"{counted(unread, 'file')} not read whole"] * bool(unread)
        return ", ".join(texts)
