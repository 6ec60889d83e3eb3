"""The base of all reports: a report can be a document, a table, and a short text on a screen."""

from __future__ import annotations

import enum
import json
from abc import ABC, abstractmethod
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any, ClassVar, Generic, Protocol, TypeVar

from secure_bloom.errors import PolicyError
from secure_bloom.reports.text import counted

if TYPE_CHECKING:
    import pandas as pd
    import pyarrow as pa

#: The version of the documents that ``--json`` prints; it grows when a key goes or changes its
#: meaning.
SCHEMA_VERSION = 1
#: Rows of the table that a notebook shows.
_SHOWN = 20


class Report(ABC):
    """The base of the reports that public functions return.

    ``to_dict`` returns the document that the command line prints with ``--json``, in plain Python
    types, and ``to_json`` returns it as a text.  ``to_arrow`` and ``to_pandas`` return it as a flat
    table.
    """

    __slots__ = ()

    #: The lists of the document that become rows, each with the item that contains it.
    ROWS: ClassVar[tuple[str, ...]] = ("files",)
    #: Columns that may hold values of a table: they are not shown, only given.
    HIDDEN: ClassVar[frozenset[str]] = frozenset()

    def to_dict(self) -> dict[str, Any]:
        """Return the document as dictionaries, lists, texts, numbers, booleans and None."""
        document = {name: _plain(value) for name, value in self._document().items()}
        return {"schema_version": SCHEMA_VERSION, **document}

    def to_json(self) -> str:
        """Return the document as a JSON text."""
        return json.dumps(self.to_dict(), indent=2)

    def records(self) -> Iterator[dict[str, Any]]:
        """Return the rows of :meth:`to_arrow`."""
        return _exploded(self.to_dict(), self.ROWS)

    def to_arrow(self) -> pa.Table:
        """Return a table with one row for each of the innermost parts of the report.

        The table has no columns if there is no part.  A number of an outer part, such as the bytes
        of a file, is in the first of its rows and null in the others, so that sums are right.
        """
        # Imported here: most users of a report only look at it.
        import pyarrow as pa

        rows = list(self.records())
        return pa.table({name: [row.get(name) for row in rows] for name in _names(rows)})

    def to_pandas(self) -> pd.DataFrame:
        """Return the rows of :meth:`to_arrow` as a DataFrame. Raises PolicyError without pandas."""
        try:
            return self.to_arrow().to_pandas()
        except ModuleNotFoundError as exc:
            raise PolicyError(
                "to_pandas() needs pandas", hint="pip install pandas, or use to_arrow()"
            ) from exc

    def __repr__(self) -> str:
        return f"<{type(self).__name__}: {self._summary()}>"

    def _repr_html_(self) -> str:
        import html

        rows = [
            {name: value for name, value in row.items() if name not in self.HIDDEN}
            for _, row in zip(range(_SHOWN), self.records(), strict=False)
        ]
        left = sum(1 for _ in self.records()) - len(rows)
        more = f"<p>and {left:,} more rows: to_arrow(), to_pandas()</p>" if left else ""
        return f"<p>{html.escape(repr(self))}</p>{_table(rows)}{more}"

    @abstractmethod
    def _document(self) -> Mapping[str, Any]:
        """Return the document, in any types that :func:`_plain` converts."""

    @abstractmethod
    def _summary(self) -> str:
        """Return the result in a few words, without values of cells."""


class MaybeFailed(Protocol):
    """The report of one file, or the error if there is none."""

    @property
    def error(self) -> str | None:
        """The error, if something failed."""


E = TypeVar("E", bound=MaybeFailed)


class ReportOfFiles(Report, Generic[E]):
    """A report of several files, each of which may have failed by itself."""

    __slots__ = ()

    if TYPE_CHECKING:

        @property
        def files(self) -> tuple[E, ...]:
            """One report for each file. A field of the dataclass."""

    @property
    def failed(self) -> tuple[E, ...]:
        """The files that could not be read."""
        return tuple(file for file in self.files if file.error is not None)


class FileOutcome(Protocol):
    """The report of one file. A dataclass."""

    @property
    def status(self) -> str:
        """The result for the file as one word, for example "failed"."""

    @property
    def bytes_before(self) -> int | None: ...  # noqa: D102
    @property
    def bytes_after(self) -> int | None: ...  # noqa: D102


F = TypeVar("F", bound=FileOutcome)


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class WritingReport(Report, Generic[F]):
    """What a run did to each file, and the ``seconds`` that it took. A ``dry_run`` writes no file.

    ``notes`` name what the run left behind that needs attention. They repeat the notes of single
    files.
    """

    files: tuple[F, ...]
    notes: tuple[str, ...] = ()
    dry_run: bool = False
    seconds: float = 0.0

    @property
    def failed(self) -> tuple[F, ...]:
        """The files that failed. They are unchanged, unless the error says more."""
        return tuple(file for file in self.files if file.status == "failed")

    @property
    def totals(self) -> dict[str, Any]:
        """The number of files, of each status too, and their sizes before and after."""
        sizes = [(file.bytes_before, file.bytes_after) for file in self.files]
        return {
            "files": len(self.files),
            "statuses": dict(Counter(file.status for file in self.files)),
            "bytes_before": sum(before or 0 for before, _ in sizes),
            # A file that failed, or was left out, stays as it is.
            "bytes_after": sum(before or 0 if after is None else after for before, after in sizes),
        }

    def _document(self) -> dict[str, Any]:
        return {
            "files": [asdict(file) for file in self.files],  # type: ignore[call-overload]
            "notes": list(self.notes),
            "dry_run": self.dry_run,
            "seconds": self.seconds,
            "totals": self.totals,
        }

    def _summary(self) -> str:
        return counted_files((file.status for file in self.files), dry_run=self.dry_run)


def counted_files(states: Iterable[str], *, dry_run: bool = False) -> str:
    """Return the numbers of files: ``3 files (2 added, 1 unchanged)``."""
    counts = Counter(map(str, states))
    each = ", ".join(f"{count:,} {state}" for state, count in counts.items())
    files = counted(counts.total(), "file") + (f" ({each})" if each else "")
    return f"{files}, dry run" if dry_run else files


def _plain(value: object) -> object:
    if isinstance(value, enum.Enum):
        return value.value
    if isinstance(value, Mapping):
        return {str(_plain(name)): _plain(part) for name, part in value.items()}
    if isinstance(value, list | tuple | set | frozenset):
        return [_plain(part) for part in value]
    # Numbers and flags of numpy are taken as arguments, and shown as Python's.
    return value.item() if hasattr(value, "item") else value


#: A number that is a name, and no amount.
_ORDINAL = "row_group"


def _exploded(document: dict[str, Any], lists: tuple[str, ...]) -> Iterator[dict[str, Any]]:
    """Yield each row of the first list, once for every row of the lists inside it.

    Amounts of the outer row are only in the first of its rows.
    """
    for part in document.get(lists[0]) or ():
        if len(lists) == 1:
            yield part
            continue
        outer = {name: value for name, value in part.items() if name != lists[1]}
        for inner in _exploded(part, lists[1:]) if part.get(lists[1]) else iter([{}]):
            named = {
                f"{lists[1]}_{name}" if name in outer else name: value
                for name, value in inner.items()
            }
            yield outer | named
            outer = {name: None if _is_amount(name, it) else it for name, it in outer.items()}


def _is_amount(name: str, value: object) -> bool:
    is_number = isinstance(value, int | float) and not isinstance(value, bool)
    return is_number and name.rpartition("s_")[2] != _ORDINAL


def _names(rows: list[dict[str, Any]]) -> list[str]:
    return list(dict.fromkeys(name for row in rows for name in row))


#: A wide table is scrolled; its rows stay low.
_ONE_LINE = ' style="text-align: left; white-space: nowrap"'


def _table(rows: list[dict[str, Any]]) -> str:
    import html

    # A column that says nothing of any row only takes room.
    names = [name for name in _names(rows) if any(_cell(row.get(name)) for row in rows)]
    head = "".join(f"<th{_ONE_LINE}>{html.escape(name)}</th>" for name in names)
    body = "".join(
        "<tr>" + "".join(f"<td{_ONE_LINE}>{_cell(row.get(name))}</td>" for name in names) + "</tr>"
        for row in rows
    )
    table = f"<table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>"
    return f'<div style="overflow-x: auto">{table}</div>'


def _cell(value: object) -> str:
    import html

    if value is None or value == []:
        return ""
    if isinstance(value, float):
        return f"{value:.4g}"
    return html.escape(json.dumps(value) if isinstance(value, list | dict) else str(value))
