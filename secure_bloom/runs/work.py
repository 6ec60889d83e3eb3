"""What a run does to each file, and what it must know of a file's report."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple, Protocol, TypeAlias, TypeVar

from secure_bloom.errors import SecureBloomError
from secure_bloom.parquet.key_prefetch import KeyPrefetch
from secure_bloom.storage.paths import shown_beside


class FileTask(NamedTuple):
    """One file that is to be rewritten, in place or to ``target``.

    ``listed`` is what a table says of the file, for a work that needs more than its content.
    """

    path: str
    target: str | None = None
    listed: Any = None


class FileReport(Protocol):
    """The report of a file that a run may have rewritten."""

    @property
    def path(self) -> str: ...  # noqa: D102
    @property
    def status(self) -> str: ...  # noqa: D102
    @property
    def bytes_after(self) -> int | None: ...  # noqa: D102
    @property
    def changes(self) -> bool: ...  # noqa: D102


R = TypeVar("R", bound=FileReport)
#: Like ``map``: calls a function for each step of a file, perhaps in parallel, and counts them.
Steps: TypeAlias = Callable[[Callable[[Any], Any], Sequence[Any]], Iterator[Any]]


class Work(Protocol[R]):
    """One kind of change to a file, with the keys that it needs.

    ``asks_for_each_key`` is whether each file needs calls to a KMS. Then the files are shared
    among threads, which wait for the KMS in parallel.
    """

    @property
    def writes_nothing(self) -> bool: ...  # noqa: D102
    @property
    def asks_for_each_key(self) -> bool: ...  # noqa: D102

    def check(self, files: Sequence[str]) -> int | None:
        """Check the request against files, before anything is written.

        Return about how many steps a file has, or None if each file is one step.  Raises the errors
        of the request.
        """

    def in_threads(self, threads: int) -> Work[R]:
        """Return the same work for files that this number of threads share."""

    def prefetch(self, targets: Mapping[str, str | None]) -> KeyPrefetch:
        """Return an object that makes the calls to the KMS for later files in advance."""

    def process(self, task: FileTask, steps: Steps) -> R:
        """Process one file. Errors of this package become a failed report."""

    def steps_of(self, report: R) -> int:
        """Return the number of steps that a file had, by its report."""

    @staticmethod
    def failed(task: FileTask, error: SecureBloomError) -> R:
        """Return the report of a file that another process could not finish."""


#: Opens the same work in any process.
OpenWork: TypeAlias = Callable[[], Work[R]]


def new_path(task: FileTask, report: FileReport, *, is_copied: bool) -> str | None:
    """Return the path of the new file that a task has written, as reports show it, or None.

    ``is_copied`` is whether a file that needs no change is written to the target too.
    """
    is_written = report.changes or (is_copied and report.status != "failed")
    return shown_beside(task.target, task.path) if is_written and task.target else None


def new_sizes(reports: Iterable[FileReport]) -> dict[str, int | None]:
    """Return the result of each file by its old path: the new size, or None for a failure.

    A file that needs no new content is left out.
    """
    return {
        report.path: report.bytes_after if report.changes else None
        for report in reports
        if report.changes or report.status == "failed"
    }
