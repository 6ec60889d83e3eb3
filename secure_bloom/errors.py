"""Every exception: one root, one class for each thing a caller would do differently.

The code that finds an error often does not know the file.  A caller that knows path, row group or
column adds them with :func:`located`.  Texts never hold key bytes or cell values.
"""

from __future__ import annotations

import errno
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager
from typing import Any, Final, TypedDict


class SecureBloomError(Exception):
    """The root of all errors that this package raises on purpose.

    ``message`` says what is wrong: found and wanted.  ``hint`` says what to do about it. ``path``,
    ``row_group`` and ``column`` say where, if known.  Tracebacks and notebooks show the hint below
    the message (as a note, PEP 678).
    """

    def __init__(
        self,
        message: str,
        *,
        hint: str | None = None,
        path: str | None = None,
        row_group: int | None = None,
        column: str | None = None,
    ) -> None:
        super().__init__(message)
        self.message = message
        self._hint: str | None = None
        self.hint = hint
        self.path = path
        self.row_group = row_group
        self.column = column

    @property
    def hint(self) -> str | None:
        """The advice: what to do about the error."""
        return self._hint

    @hint.setter
    def hint(self, hint: str | None) -> None:
        notes = [note for note in getattr(self, "__notes__", ()) if note != _note(self._hint)]
        self.__notes__ = notes + ([] if hint is None else [_note(hint)])
        self._hint = hint

    def __str__(self) -> str:
        place = ", ".join(
            part
            for part in (
                self.path,
                None if self.row_group is None else f"row group {self.row_group}",
                None if self.column is None else f"column {self.column}",
            )
            if part is not None
        )
        return f"{place}: {self.message}" if place else self.message


def _note(hint: str | None) -> str:
    return f"hint: {hint}"


class FormatError(SecureBloomError):
    """The bytes are not what the format says: a damaged, truncated or foreign file."""


class UnsupportedFeatureError(SecureBloomError):
    """The bytes are valid, but use a feature that this package does not support.

    The text names it.
    """


class IntegrityError(SecureBloomError):
    """An encrypted or signed module does not authenticate: altered bytes or a wrong key."""


class KeyUnavailableError(SecureBloomError):
    """A key that is needed is not available: not in the keyring, or refused by the KMS."""


class KmsUnavailableError(SecureBloomError):
    """The KMS itself failed: it is down, throttles for too long, or does not accept the login.

    This says nothing about any key, so no check may treat it as a missing key: repeat the run
    later.
    """


class FileChangedError(SecureBloomError):
    """The file is no longer the one that was read. Nothing was written. Read it again."""


class FileBusyError(SecureBloomError):
    """Another process has kept the file locked for too long. Nothing was written."""


class DriverLostError(SecureBloomError):
    """A task of a run on other machines cannot see that its driver lives. Nothing was written."""


class RunEnded(BaseException):
    """The run that a task belongs to has ended, so the task must not write. Nothing was written.

    Like Expired, it is not an error of the file that is being written, and ends the task.
    """


class TimeLimitError(SecureBloomError):
    """The work took longer than the caller allows. Nothing was changed."""


class Expired(BaseException):
    """A time limit is over. The caller gets it as TimeLimitError.

    Like KeyboardInterrupt, it is not an error of the file that is being read.
    """


class UnfinishedWriteError(SecureBloomError):
    """A write began but could be neither finished nor undone. The text says what is there now."""


class WorkerLostError(SecureBloomError):
    """A process that worked on files has died, killed or out of memory. Run again.

    Each of its files is unchanged, or done.
    """


class PlatformError(SecureBloomError):
    """The operating system lacks a call that writing needs. Reading works."""


class PolicyError(SecureBloomError):
    """The request cannot be fulfilled: a policy, option, column or value is invalid."""


class MissingPathError(PolicyError, FileNotFoundError):
    """A path leads to no file. An error of the request, and Python's ``FileNotFoundError`` too."""


class AccessDeniedError(PolicyError, PermissionError):
    """The system or the store denies access. Python's ``PermissionError`` too."""


class StoreUnavailableError(PolicyError, ConnectionError):
    """A store or catalog does not answer: repeat the run later.

    It is also a PolicyError and Python's ``ConnectionError``.
    """


class MissingExtraError(PolicyError, ImportError):
    """A package of an extra is not installed. Python's ``ImportError`` too."""


@contextmanager
def imported_for(purpose: str, extra: str) -> Iterator[None]:
    """Turn a failed import in the block into MissingExtraError, whose hint installs ``extra``."""
    try:
        yield
    except ImportError as exc:
        missing = isinstance(exc, ModuleNotFoundError)
        raise MissingExtraError(
            f"{purpose} needs {exc.name or 'its packages'}, which "
            + ("is not installed" if missing else "cannot be imported"),
            hint=install_hint(extra),
        ) from exc


def missing_package(error: ModuleNotFoundError) -> MissingExtraError | None:
    """Return the error for a missing package, or None if a module of this package is missing."""
    name = (error.name or "").partition(".")[0]
    if not name or name == __name__.partition(".")[0]:
        return None
    return MissingExtraError(f"the package {name} is not installed", hint=f"pip install {name}")


def install_hint(extra: str) -> str:
    """Return the command that installs the packages of an extra."""
    return f"pip install 'secure-bloom[{extra}]'"


#: What to do about errors of the operating system.
_HINTS: Final = {
    errno.EACCES: "check the permissions of the file and of its folder",
    errno.EPERM: "check the permissions of the file and of its folder",
    errno.EROFS: "the file system is mounted read-only; write to another place",
    errno.ENOSPC: "free some space and run again",
    errno.EDQUOT: "free some of your quota and run again",
    errno.EISDIR: "name a file: this is a folder",
    errno.EEXIST: "name a file that is not there yet",
    errno.EFBIG: "raise the file size limit (ulimit -f) and run again",
}


def refused_by_system(
    error: OSError, message: str, *, hint: str | None = None, path: str | None = None
) -> PolicyError:
    """Return the PolicyError for an error of the operating system.

    Without ``hint`` the hint is the one for the number of the error.
    """
    if hint is None and error.errno is not None:
        hint = _HINTS.get(error.errno)
    if isinstance(error, FileNotFoundError):
        return MissingPathError(message, hint=hint, path=path)
    if isinstance(error, PermissionError):
        return AccessDeniedError(message, hint=hint, path=path)
    return PolicyError(message, hint=hint, path=path)


class SparkUnavailableError(SecureBloomError):
    """Spark cannot run here: Java or PySpark is missing or too old. The hint names the remedy."""


class FilesFailedError(SecureBloomError):
    """Files of a job failed, after all were tried. ``report`` is the job's whole report."""

    def __init__(self, message: str, *, hint: str | None = None, report: Any) -> None:
        super().__init__(message, hint=hint)
        self.report = report


class ReportLostError(SecureBloomError):
    """The work is done, but its report could not be written. ``report`` has it, if that is known.

    Nothing has to be run again for the files.
    """

    def __init__(
        self, message: str, *, hint: str | None = None, path: str | None = None, report: Any
    ) -> None:
        super().__init__(message, hint=hint, path=path)
        self.report = report


def causes(error: BaseException) -> Iterator[str]:
    """Yield the errors that led to ``error``, one text for each, without secrets.

    A foreign error is named by its type and by the system's own reason.  Its text could hold a
    token or a key, so it is not shown.
    """
    seen = {id(error)}
    cause = error.__cause__
    while cause is not None and id(cause) not in seen:
        seen.add(id(cause))
        kind = f"{type(cause).__module__}.{type(cause).__qualname__}"
        if kind.startswith("secure_bloom."):
            # Without its place, which the error itself has.
            yield f"{type(cause).__name__}: {getattr(cause, 'message', cause)}"
        elif isinstance(cause, OSError) and cause.strerror:
            yield f"{kind}: {cause.strerror}"
        else:
            yield kind
        cause = cause.__cause__ or cause.__context__


class Failure(TypedDict):
    """The fields of a file's report that say why it failed."""

    error: str
    hint: str | None
    causes: tuple[str, ...]


def failure_of(error: SecureBloomError) -> Failure:
    """Return the fields of a file's report for ``error``. ``causes`` are shown with -v."""
    return {"error": str(error), "hint": error.hint, "causes": tuple(causes(error))}


class _Located:
    """Adds path, row group and column to errors that are raised in its block.

    This is a plain object, because code enters millions of them, and a generator takes three times
    as long.
    """

    __slots__ = ("_column", "_path", "_row_group")

    def __init__(self, path: str | None, row_group: int | None, column: str | None) -> None:
        self._path = path
        self._row_group = row_group
        self._column = column

    def __enter__(self) -> None:
        return None

    def __exit__(self, _kind: object, error: BaseException | None, _trace: object) -> None:
        if isinstance(error, SecureBloomError):
            error.path = error.path if error.path is not None else self._path
            error.row_group = error.row_group if error.row_group is not None else self._row_group
            error.column = error.column if error.column is not None else self._column


def located(
    *, path: str | None = None, row_group: int | None = None, column: str | None = None
) -> AbstractContextManager[None]:
    """Add the place to any :class:`SecureBloomError` of the block. Known parts stay."""
    return _Located(path, row_group, column)
