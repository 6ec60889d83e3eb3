"""The answers of filters: verdicts for values, by row group and file."""

from __future__ import annotations

import enum
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

from secure_bloom.bloom.split_block import SplitBlockBloomFilter
from secure_bloom.reports.base import ReportOfFiles
from secure_bloom.reports.text import counted


class Verdict(enum.StrEnum):
    """The answer of a filter for a value in one row group."""

    ABSENT = "absent"
    MAYBE = "maybe"
    NO_FILTER = "no_filter"


#: A later verdict of one row group is that of all of them.
_SURENESS = (Verdict.ABSENT, Verdict.NO_FILTER, Verdict.MAYBE)


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

    @property
    def values(self) -> dict[object, Verdict]:
        """The answer for each value: maybe if any row group may have it, absent if none has.

        The answer is no_filter if every filter rules the value out but some row group has no
        filter.
        """
        found: dict[object, Verdict] = {}
        for file in self.files:
            for group in file.row_groups:
                for value, verdict in group.verdicts.items():
                    found[value] = max(found.get(value, verdict), verdict, key=_SURENESS.index)
        return found

    def records(self) -> Iterator[dict[str, Any]]:
        """Yield one row for each file, row group and value."""
        for row in ReportOfFiles.records(self):
            verdicts = row.pop("verdicts", {None: None})
            yield from (row | {"value": v, "verdict": verdict} for v, verdict in verdicts.items())

    def _document(self) -> dict[str, Any]:
        return {
            "column": self.column,
            "values": {str(value): str(verdict) for value, verdict in self.values.items()},
            "files": [_file_json(file) for file in self.files],
        }

    def _summary(self) -> str:
        groups = [group for file in self.files for group in file.row_groups]
        left = sum(not {Verdict.ABSENT}.issuperset(group.verdicts.values()) for group in groups)
        about = f"column {self.column}, {counted(len(self.files), 'file')}"
        if self.failed and not groups:
            return f"{about}, unknown: {len(self.failed)} failed and may hold a value"
        failed = f" ({len(self.failed)} failed and may hold a value)" if self.failed else ""
        unasked = sum(Verdict.NO_FILTER in group.verdicts.values() for group in groups)
        no_filter = f", {unasked} without a filter" if unasked else ""
        held = f"{left} of {counted(len(groups), 'row group')} may hold a value"
        return f"{about}{failed}, {held}{no_filter}"


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


def verdict(bloom_filter: SplitBlockBloomFilter, encodings: tuple[bytes, ...] | None) -> Verdict:
    """Return the filter's verdict on a value in any of its encodings.

    The verdict is MAYBE if ``encodings`` is None.
    """
    return verdict_of(None if encodings is None else map(bloom_filter.check, encodings))


def verdict_of(answers: Iterable[bool] | None) -> Verdict:
    """Return the verdict on a value from the filter's answer for each encoding of the value.

    ``answers`` is None if a filter cannot answer for the value, which is null or NaN.
    """
    return Verdict.MAYBE if answers is None or any(answers) else Verdict.ABSENT
