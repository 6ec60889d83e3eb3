"""Process one file of a run: plan in memory, write once, and report, even if it fails."""

from __future__ import annotations

import threading
import time
from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Self, TypeAlias

from secure_bloom.adding.preflight import check_few
from secure_bloom.adding.report import FileAddReport, hard_link_note
from secure_bloom.adding.request import FilterRequest
from secure_bloom.calling.options import ALLOW_UNPROTECTED
from secure_bloom.encryption.access import Access
from secure_bloom.encryption.file_keys import FileKeys, KeyResolver
from secure_bloom.encryption.trust import AS_IT_IS
from secure_bloom.errors import FileChangedError, FormatError, SecureBloomError, failure_of, located
from secure_bloom.parquet.key_material_files import (
    changed_before_missing,
    file_keys,
    outside_material,
)
from secure_bloom.parquet.key_material_writes import (
    remove_leftovers,
    replace_with_material,
    write_new_with_material,
)
from secure_bloom.parquet.key_prefetch import KeyPrefetch
from secure_bloom.runs.work import FileTask, Steps, new_path
from secure_bloom.storage import InputFile, append_tail, open_input, replace_tail

# Few files are torn, and to recover one takes more than to write one.
if TYPE_CHECKING:
    from secure_bloom.adding.in_place import Recovered, Truncation
    from secure_bloom.adding.rewrite_plan import Mapper, RewritePlan

#: The plan, the old file, and notes on what could not be tidied up.
_Rewritten: TypeAlias = "tuple[RewritePlan, InputFile, tuple[str, ...]]"


@dataclass(frozen=True, slots=True, kw_only=True)
class WriteMode:
    """How files are written: replaced, appended to (``in_place``), or not at all (``dry_run``).

    With ``only_changes`` a target is written only if something changes.
    """

    in_place: bool = False
    dry_run: bool = False
    only_changes: bool = False

    @property
    def repairs(self) -> bool:
        """Whether the leftover of a killed ``in_place`` run may be cut off."""
        return self.in_place and not self.dry_run


@dataclass(frozen=True, slots=True, kw_only=True)
class FileRewriter(ABC):
    """Rewrites the files of one run: one set of keys, one way to write, one kind of plan.

    It is safe to process one file twice, also at the same time: the later one finds the file
    changed, reads it again, and finds nothing left to do.
    """

    resolver: KeyResolver
    mode: WriteMode
    #: Held while a file is computed, and not while it is written.
    turn: AbstractContextManager[object] = field(default_factory=nullcontext)

    @abstractmethod
    def plan(self, file: InputFile, keys: FileKeys, run: Mapper, /) -> RewritePlan:
        """Return the plan of one file, made in memory. ``run`` may work in parallel."""

    @property
    def writes_nothing(self) -> bool:
        """Whether the run only reports what it would do."""
        return self.mode.dry_run

    @property
    def asks_for_each_key(self) -> bool:
        """Return False: most tables use a few keys for all of their files."""
        return False

    def check(self, files: Sequence[str]) -> int | None:
        """Check nothing.

        Return 0, because the number of steps, one for each column chunk, is unknown.
        """
        del files
        return 0

    def in_threads(self, threads: int) -> Self:
        """Return the work for this number of threads.

        With one thread, a lock makes files wait: only one at a time is decoded and hashed.
        """
        return replace(self, turn=threading.Lock()) if threads == 1 else self

    def prefetch(self, targets: Mapping[str, str | None]) -> KeyPrefetch:
        """Return an object that unwraps keys of later files ahead of time."""
        del targets
        return KeyPrefetch(self.resolver)

    def process(self, task: FileTask, steps: Steps) -> FileAddReport:
        """Process one file. Its column chunks are the steps."""
        report = self.rewrite(task.path, target=task.target, run=steps)
        if self.mode.dry_run or task.target is None:
            return report
        return replace(
            report, new_path=new_path(task, report, is_copied=not self.mode.only_changes)
        )

    def steps_of(self, report: FileAddReport) -> int:
        """Return the number of column chunks that were worked on."""
        return sum(it.row_group is not None for it in report.filters)

    @staticmethod
    def failed(task: FileTask, error: SecureBloomError) -> FileAddReport:
        """Return the report of a file that another process could not finish."""
        error.path = error.path or task.path
        return failed_report(task.path, error)

    def open(self, path: str) -> InputFile:
        """Open a file of the run."""
        return open_input(path)

    def rewrite(
        self,
        path: str,
        *,
        target: str | None = None,
        run: Mapper = map,
    ) -> FileAddReport:
        """Process one file, in place or to ``target``.

        An error of this package is returned as a failed report.
        """
        started = time.perf_counter()
        cuts: list[Truncation] = []
        try:
            with located(path=path):
                plan, file, left = self._rewrite(path, target, run, cuts)
        except SecureBloomError as error:
            return failed_report(path, error, time.perf_counter() - started, cuts)
        # Forgotten only now: until the new footer is written, what was cut may be the only copy of
        # something.
        told_of_cuts = [cut.note(forgotten=cut.forget()) for cut in cuts]
        return FileAddReport(
            path=path,
            status="unchanged" if plan.is_empty else "added",
            bytes_before=file.size,
            bytes_after=plan.size,
            seconds=round(time.perf_counter() - started, 6),
            filters=plan.filters,
            notes=(*told_of_cuts, *left, *plan.notes, *self._broken_links(file, plan, target)),
        )

    def _rewrite(
        self, path: str, target: str | None, run: Mapper, cuts: list[Truncation]
    ) -> _Rewritten:
        """Plan and write, and repeat both if another writer was faster."""
        # Another writer may be faster twice, or a torn file may need to be recovered first.  After
        # that the error goes to the report: the other writer may never stop.
        for _ in range(2):
            try:
                return self._rewrite_once(path, target, run)
            except FileChangedError:
                continue
            except FormatError:
                recovered = self._recovered(path)
                if recovered is None:
                    raise
                cuts += [recovered.truncation] if recovered.truncation else []
        return self._rewrite_once(path, target, run)

    def _recovered(self, path: str) -> Recovered | None:
        if not self.mode.repairs:
            return None
        from secure_bloom.adding.in_place import recover

        return recover(path, self.resolver)

    def _rewrite_once(self, path: str, target: str | None, run: Mapper) -> _Rewritten:
        with self.open(path) as file, changed_before_missing(file):
            # Threads that compute side by side would hand over Python's lock at each system call.
            with self.turn:
                keys = file_keys(self.resolver, file)
                plan = self.plan(file, keys, run)
            return plan, file, self._write(file, plan, target)

    def _write(self, file: InputFile, plan: RewritePlan, target: str | None) -> tuple[str, ...]:
        """Carry the plan out. Return notes on old files that could not be removed."""
        # With a target even an empty plan writes: the output folder gets all files.
        if self.mode.dry_run:
            return ()
        if plan.is_empty and (target is None or self.mode.only_changes):
            # A table's files are never replaced, and their paths may lead through links.
            if target is None:
                remove_leftovers(file.path)
            return ()
        if self.mode.in_place:
            append_tail(file, plan.tail)
        elif target is None:
            replace_tail(file, plan.keep, plan.tail)
        elif self.mode.only_changes:
            _write_once(file, plan, target)
        else:
            material = outside_material(file)
            if not material:
                replace_tail(file, plan.keep, plan.tail, output=target)
                return ()
            return replace_with_material(file, plan.keep, plan.tail, material, output=target)[1]
        return ()

    def _broken_links(
        self, file: InputFile, plan: RewritePlan, target: str | None
    ) -> Iterator[str]:
        is_replaced = target is None and not (self.mode.in_place or self.mode.dry_run)
        if is_replaced and not plan.is_empty and file.names > 1:
            yield hard_link_note(file.names)


@dataclass(frozen=True, slots=True, kw_only=True)
class Rewriter(FileRewriter):
    """Adds the split-block filters that ``request`` asks for."""

    request: FilterRequest

    @classmethod
    def opened(cls, request: FilterRequest, access: Access, mode: WriteMode) -> Self:
        """Return the work. Any process can call this. Raises the errors of the access."""
        return cls(request=request, resolver=access.checked_resolver(), mode=mode)

    def check(self, files: Sequence[str]) -> int | None:
        """Check the request against a few files. Return an estimate of the chunks of a file."""
        return check_few(files, self.request, self.resolver)

    def open(self, path: str) -> InputFile:
        """Open a file of the run. Its columns have the names of its table."""
        return self.request.wanted.open(path)

    def plan(self, file: InputFile, keys: FileKeys, run: Mapper, /) -> RewritePlan:
        """Return the plan of :func:`.rewrite_plan.plan_rewrite`."""
        # With numpy and Arrow, which a process that only hands out files does not need.
        from secure_bloom.adding.rewrite_plan import plan_rewrite

        request = self.request.for_file(file.path)
        return plan_rewrite(file, keys, request, append=self.mode.in_place, run=run)


def _write_once(file: InputFile, plan: RewritePlan, target: str) -> None:
    """Write a new file, or accept a file of the same size that another attempt has written."""
    material = outside_material(file)
    if write_new_with_material(file, plan.keep, plan.tail, material, target) != plan.size:
        raise FileChangedError("the path of the new file is taken by another file")


#: What an option for weaker files does in a run that adds filters.
_WITHOUT_KEY = f"for filters of columns without a key alone: {ALLOW_UNPROTECTED}"


def failed_report(
    path: str, error: SecureBloomError, seconds: float = 0.0, cuts: Iterable[Truncation] = ()
) -> FileAddReport:
    """Return the report of a file that failed.

    The file is unchanged, unless the error says more.
    """
    if error.hint is not None:
        # Nothing makes a filter in clear of a column with a key.
        error.hint = error.hint.replace(AS_IT_IS, _WITHOUT_KEY)
    return FileAddReport(
        path=path,
        status="failed",
        seconds=round(seconds, 6),
        notes=tuple(cut.note(forgotten=False) for cut in cuts),
        **failure_of(error),
    )
