"""Where a run's new content goes, and how it becomes visible."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass, field
from typing import Any, Final, Protocol, TypeVar

from secure_bloom.errors import PolicyError
from secure_bloom.runs.work import FileReport, FileTask
from secure_bloom.storage.column_mapping import ColumnMapping
from secure_bloom.storage.store_grants import StoreGrant

#: The note of a file whose replacement was given up.
GONE: Final = "another writer took it out of the table meanwhile, so its new file was removed again"
#: The same note of several files together.
GONE_TOGETHER: Final = (
    "another writer took them out of the table meanwhile, so their new files were removed again"
)
#: The one note of a run that lost all of its new files to other writers.
NOTHING_WRITTEN: Final = (
    "nothing was written: other writers took every chosen file out of the table meanwhile; run the "
    "command again for the files that are live now"
)


@dataclass(frozen=True, slots=True, kw_only=True)
class ReplacedFile:
    """A file of a table and its replacement, by their paths in the table's log."""

    removed: str
    added: str


#: The operation of a commit that is a snapshot of an Iceberg table.
SNAPSHOT: Final = "replace"
#: The names of two sizes in the metrics of a Delta commit, and of an Iceberg snapshot.
_REMOVED: Final = ("numRemovedBytes", "removed-files-size")
_ADDED: Final = ("numAddedBytes", "added-files-size")


@dataclass(frozen=True, slots=True, kw_only=True)
class TableCommit:
    """A version of a table that a run made, or in a dry run the version that it would make.

    ``version`` is the number of a Delta version, or the id of an Iceberg snapshot.  It is None in a
    dry run on an Iceberg table, because a snapshot gets its id when it is written.  ``metrics`` are
    the commit's ``operationMetrics``, or the metrics in the snapshot's summary.
    """

    version: int | None
    operation: str
    metrics: Mapping[str, str]
    files: tuple[ReplacedFile, ...]

    @property
    def bytes_removed(self) -> int:
        """The size of the files that left the table."""
        return self._bytes(_REMOVED)

    @property
    def bytes_added(self) -> int:
        """The size of the files that took their places."""
        return self._bytes(_ADDED)

    def _bytes(self, names: Iterable[str]) -> int:
        return sum(int(self.metrics.get(name, 0)) for name in names)


class Publication(Protocol):
    """The publishing of one run, batch by batch: a batch is processed, then published.

    ``gone`` are files that other writers removed from the table meanwhile.
    """

    @property
    def commits(self) -> Sequence[TableCommit]: ...  # noqa: D102
    @property
    def gone(self) -> Iterable[str]: ...  # noqa: D102
    @property
    def notes(self) -> Sequence[str]: ...  # noqa: D102

    def batches(self) -> Iterator[Sequence[FileTask]]:
        """Yield the tasks of each batch."""

    def publish(self, reports: Sequence[Any]) -> None:
        """Make the new content of the last batch visible, by the reports of the run's work."""


P = TypeVar("P", bound=Publication)


class Target(Protocol):
    """The files of a run, and where their new content goes."""

    def listed(self) -> Sequence[str]:
        """Return the files to process. Raises the errors of their listing."""

    def publishing(self, *, dry_run: bool) -> AbstractContextManager[Publication]:
        """Return a context manager, whose publication publishes the batches.

        An exception in its block removes new files that are not published.
        """

    def gone(self, publication: Publication, reports: Iterable[FileReport]) -> frozenset[str]:
        """Return the files that other writers removed during the run, even if they failed here."""


class TableTarget(Target, Protocol):
    """The live files of a table, which get new files by commits.

    ``root`` is the table's folder. ``sizes`` maps the path of each file to its size in the log.
    Files are opened with the column names ``opened_names``, or with their own if it is None.
    ``old_files`` is the note on files that the run has replaced. ``locked_out`` names engines that
    cannot read the new files if the run encrypts them, and is empty otherwise. ``shown`` are notes
    on other places that show values of columns that the run encrypts. ``grant`` holds the settings
    to open files in a store.
    """

    @property
    def root(self) -> str: ...  # noqa: D102
    @property
    def paths(self) -> Sequence[str]: ...  # noqa: D102
    @property
    def sizes(self) -> Mapping[str, int]: ...  # noqa: D102
    @property
    def opened_names(self) -> ColumnMapping | None: ...  # noqa: D102
    @property
    def old_files(self) -> str: ...  # noqa: D102
    @property
    def locked_out(self) -> str: ...  # noqa: D102
    @property
    def shown(self) -> Sequence[str]: ...  # noqa: D102
    @property
    def grant(self) -> StoreGrant | None: ...  # noqa: D102
    def skipped(self) -> Iterable[tuple[str, str]]:
        """Return live files that a run leaves out, each with the reason."""


@dataclass(slots=True)
class DirectPublication:
    """The publication of files that are visible when they are written: one batch, no commit."""

    tasks: Sequence[FileTask]
    commits: Sequence[TableCommit] = ()
    gone: Sequence[str] = ()
    notes: list[str] = field(default_factory=list)

    def batches(self) -> Iterator[Sequence[FileTask]]:
        """Yield all tasks."""
        yield self.tasks

    def publish(self, reports: Sequence[FileReport]) -> None:
        """Do nothing: the files are visible."""


@contextmanager
def given_up_on_error(publication: P, give_up: Callable[[], None]) -> Iterator[P]:
    """Yield a publication, and call ``give_up`` after any exception, Ctrl-C too."""
    try:
        yield publication
    except BaseException:
        give_up()
        raise


def check_commit_every(commit_every: int | None) -> None:
    """Raise PolicyError unless ``commit_every`` is at least 1."""
    if commit_every is not None and commit_every < 1:
        raise PolicyError(f"commit_every is {commit_every}, it must be at least 1")
