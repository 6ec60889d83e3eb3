"""The target of files that belong to no table: in place, or below another folder.

A summary file, ``_metadata``, repeats the footers of other files, and is stale when they change.
Each of its column chunks names its file in ``file_path``, relative to the folder of the summary.
Summary files are left unchanged, because other writers own them.
"""

from __future__ import annotations

import os
from collections.abc import Hashable, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, field
from os import PathLike

from secure_bloom.encryption.policy import KeyPolicy
from secure_bloom.errors import PolicyError, SecureBloomError
from secure_bloom.lakes.managed_tables import refuse_linked, refuse_managed, refuse_output
from secure_bloom.lakes.misspelt_tables import check_tables
from secure_bloom.parquet.footer.locate import read_tail
from secure_bloom.reports.text import counted
from secure_bloom.runs.target import DirectPublication, Publication
from secure_bloom.runs.work import FileReport, FileTask
from secure_bloom.storage import (
    file_keys,
    is_object_uri,
    open_input,
    refuse_append,
    sibling,
    summary_files,
)
from secure_bloom.storage.dispatch import tree_of
from secure_bloom.storage.listing import find_by_key, output_paths, refuse_inside
from secure_bloom.storage.paths import Paths, as_path, as_paths


@dataclass(slots=True, kw_only=True)
class FilesTarget:
    """Files that are replaced, appended to (``in_place``), or written anew below ``output``.

    ``where`` chooses files by the values in the names of their folders.  Under a ``policy`` with
    several tables, a misspelt pattern is an error.
    """

    paths: Paths
    policy: KeyPolicy | None = None
    where: str | None = None
    in_place: bool = False
    output: str | PathLike[str] | None = None
    tasks: Sequence[FileTask] = field(default=(), init=False)
    #: Files that are at the new paths before the run.
    taken: int = field(default=0, init=False)

    def listed(self) -> Sequence[str]:
        """Return the files. Raises the errors of :func:`files_to_write`."""
        files, targets = files_to_write(
            self.paths, where=self.where, in_place=self.in_place, output=self.output
        )
        check_tables(self.policy, as_paths(self.paths), files)
        self.tasks = [FileTask(path=path, target=targets.get(path)) for path in files]
        return files

    def notes(self, *, dry_run: bool) -> tuple[str, ...]:
        """Return the note that no file matches ``where``, or that old output is replaced."""
        if self.where is not None and not self.tasks:
            # Imported here: without a condition nothing needs pyarrow.
            from secure_bloom.lakes.file_selection import unmatched_note

            return (unmatched_note(self.where, {}),)
        if not self.taken:
            return ()
        be = "would be" if dry_run else "were" if self.taken > 1 else "was"
        place = as_path(self.output or "")
        return (f"{counted(self.taken, 'file')} below {place} {be} replaced",)

    def publishing(self, *, dry_run: bool) -> AbstractContextManager[Publication]:
        """Return a publication that does nothing: each file is visible when it is written."""
        del dry_run
        places = [task.target for task in self.tasks if task.target is not None]
        # Only a note depends on it: a place that cannot be looked at is found by the write.
        self.taken = sum(not is_object_uri(it) and os.path.exists(it) for it in places)  # noqa: PTH110
        return nullcontext(DirectPublication(self.tasks))

    def gone(self, publication: Publication, reports: Iterable[FileReport]) -> frozenset[str]:
        """Return an empty set. A file that was removed meanwhile counts as failed."""
        del publication, reports
        return frozenset()


def files_to_write(
    paths: Paths,
    *,
    where: str | None = None,
    in_place: bool,
    output: str | PathLike[str] | None,
) -> tuple[list[str], Mapping[str, str]]:
    """Return the chosen files at ``paths``, and with ``output`` the new path of each.

    Raises UnsupportedFeatureError for files, links to files, and outputs in a table with a log of
    its own.  Raises PolicyError for a condition on a column that is no partition column of a file
    and, with ``in_place``, for files that cannot be appended to.
    """
    if in_place and output is not None:
        raise PolicyError("in_place and output exclude each other", hint="leave one of them out")
    every = as_paths(paths)
    refuse_managed(every)
    found = find_by_key(every)
    refuse_linked(found.items(), every)
    files = sorted(found.values())
    if where is not None:
        # Imported here: without a condition nothing needs pyarrow.
        from secure_bloom.lakes.file_selection import file_selection

        selection = file_selection(every, where)
        files = [file for file in files if selection.file(tree_of(file), file)]
    if in_place:
        refuse_append(files)
    if output is None:
        return files, {}
    targets = output_paths(files, every, as_path(output))
    refuse_inside(as_path(output), every)
    refuse_output(as_path(output))
    return files, targets


def summary_notes(
    changed: Iterable[str], *, what: str = "got filters", dry_run: bool = False
) -> tuple[str, ...]:
    """Return one sentence for each summary file that describes one of the changed files.

    ``what`` says how the files were changed. With ``dry_run`` they have not been changed yet.
    """
    files = list(changed)
    return tuple(
        note
        for summary in summary_files(files)
        for note in stale_summary_notes(summary, files, what=None if dry_run else what)
    )


def stale_summary_notes(summary: str, changed: Iterable[str], *, what: str | None) -> Iterator[str]:
    """Yield the sentence on a summary file if it describes one of the changed files.

    ``what`` is None if the files have not changed yet.
    """
    described = _described(summary)
    # A summary that cannot be read may describe any file, so it gets a note too.
    if any(described is None or key in described for key in file_keys(changed)):
        changes, is_out = ("would change", "would be") if what is None else (what, "is")
        yield (
            f"{summary} describes files that {changes}, and what it says of their footers {is_out} "
            "out of date: write it anew, or remove it"
        )


def _described(summary: str) -> set[Hashable] | None:
    """Return the files that a summary describes, or None if it cannot be read."""
    try:
        with open_input(summary) as file:
            found = read_tail(file).scan
    except SecureBloomError:
        return None
    # Encrypted, so it cannot be looked into.
    if found is None:
        return None
    paths = {chunk.file_path for group in found.row_groups for chunk in group.columns}
    return set(file_keys(sibling(summary, path) for path in paths if path is not None))
