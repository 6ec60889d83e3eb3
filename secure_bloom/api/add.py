"""Add Bloom filters to files, or to the live files of a table by a commit of its log."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import KW_ONLY, dataclass, replace
from functools import partial
from os import PathLike
from typing import TYPE_CHECKING

from secure_bloom.adding.estimate import SampledTarget, estimated
from secure_bloom.adding.report import (
    AddReport,
    CostEstimate,
    FileAddReport,
    copied_notes,
    file_notes,
    left_filters_notes,
    notes_in_table,
    skipped_file,
)
from secure_bloom.adding.request import Columns, FilterRequest, Keys, filter_request
from secure_bloom.adding.rewrite import Rewriter, WriteMode
from secure_bloom.calling.arguments import Progress, check_fields, takes
from secure_bloom.encryption.access import Access
from secure_bloom.encryption.trust import named_by
from secure_bloom.errors import PolicyError
from secure_bloom.lakes.managed_tables import table_to_write
from secure_bloom.lakes.misspelt_tables import check_tables
from secure_bloom.lakes.plain_files import FilesTarget, summary_notes
from secure_bloom.lakes.table_format import TableFormat
from secure_bloom.lakes.writable_table import IsSecret, TableChange, TableChoice
from secure_bloom.runs.loop import Done, run
from secure_bloom.runs.runner import LocalRunner
from secure_bloom.runs.target import TableTarget, Target
from secure_bloom.storage.paths import Paths, as_paths
from secure_bloom.storage.storage_options import granted
from secure_bloom.storage.table_objects import table_path

if TYPE_CHECKING:
    from secure_bloom.encryption.policy import KeyPolicy


# No repr: keys may be a client of the user's, and show themselves.
@dataclass(frozen=True, slots=True, eq=False, repr=False)
class AddRequest:
    """The arguments of :func:`secure_bloom.add_bloom_filters`, as described there."""

    paths: Paths
    _: KW_ONLY
    columns: Columns | None = None
    policy: KeyPolicy | str | PathLike[str] | None = None
    keys: Keys | None = None
    in_place: bool = False
    output: str | PathLike[str] | None = None
    replace_filters: bool = False
    dry_run: bool = False
    sample: int | None = None
    allow_unprotected: bool = False
    where: str | None = None
    since: int | None = None
    commit_every: int | None = None
    branch: str | None = None
    jobs: int | None = None
    progress: Progress | None = None
    storage_options: Mapping[str, object] | None = None

    def __post_init__(self) -> None:
        check_fields(self)

    def filters(self) -> FilterRequest:
        """Return the wanted filters. Raises PolicyError if there is none."""
        asked = filter_request(self.columns, self.policy, replace_filters=self.replace_filters)
        return asked.for_paths(as_paths(self.paths))

    def choice(self) -> TableChoice:
        """Return the options that are for tables."""
        return TableChoice(
            where=self.where,
            since=self.since,
            branch=self.branch,
            commit_every=self.commit_every,
            in_place=self.in_place,
            output=self.output is not None,
        )

    def sampled(self, target: Target) -> Target:
        """Return the target, or a sample of its files for a dry run."""
        if self.sample is not None and self.sample < 1:
            raise PolicyError(f"sample is {self.sample}, it must be at least 1")
        if self.dry_run:
            return SampledTarget(target=target, sample=self.sample)
        if self.sample is not None:
            raise PolicyError("sample is for a dry run", hint="give dry_run=True (--dry-run) too")
        return target

    def open_rewriter(self, filters: FilterRequest, mode: WriteMode) -> Callable[[], Rewriter]:
        """Return a function that makes the work on single files, in this or another process."""
        access = Access(
            keys=self.keys, policy=filters.guard.policy, allow_unprotected=self.allow_unprotected
        )
        return partial(Rewriter.opened, filters, access, mode)


@takes(AddRequest)
def add_bloom_filters(asked: AddRequest) -> AddReport:
    """Add split-block Bloom filters to existing Parquet files without changing a data page.

    Each file is replaced atomically.  A file that fails is reported and does not stop the others.
    Many small files are shared among processes, and each process asks the policy's KMS itself.

    The folder of a Delta table, given alone, gets new files beside the old ones and a commit.  A
    table of an Iceberg catalog (``iceberg://CATALOG/NAMESPACE.TABLE``), given alone, gets new data
    files and a snapshot ``replace``.  Columns have the names of the table.

    Args:
        paths: Files, folders, globs or URIs, or one Delta or Iceberg table.
        columns: Names of columns, or a mapping from names to options or to an fpp; by default the
            columns of the policy.
        policy: A KeyPolicy, or the path of one.
        keys: A keyring or KMS client, which serves several threads; by default the policy's KMS.
        in_place: Append to each file instead of replacing it.
        output: Folder for the new files. The old files stay.
        replace_filters: Build existing filters again.
        dry_run: Write nothing, but report what a run would do, and estimate what it costs.
        sample: Number of files that a dry run plans, chosen at random. By default all of up to
            1,000 files, and 128 of more.
        allow_unprotected: Accept files that are protected less than the policy says (a weaker
            algorithm, shorter keys, a footer in clear).
        where: Condition that chooses files: on partition columns of a folder or of a Delta table,
            on any columns of an Iceberg table, as far as partitions and bounds decide.
        since: Version of a Delta table or snapshot id of an Iceberg table. Only files added later
            are changed.
        commit_every: Number of files after which to commit to a table. By default once, at the end.
        branch: Branch of an Iceberg table to write to. By default main.
        jobs: Number of cores; by default all.
        progress: Called with the number of column chunks done and the number of all chunks.
        storage_options: Settings of S3, as Polars, deltalake and pandas take them.

    Returns:
        A report with a record for each file and each filter.

    Raises:
        PolicyError: The request cannot be met, for example no file has a column or the KMS lacks a
            key.  No file was written.
        UnsupportedFeatureError: The log of a table cannot be honoured.  No file was written.

    Example:
        >>> sb.add_bloom_filters("new/", policy="keys/policy.toml")
        <AddReport: 1 file (1 added)>
        >>> sb.add_bloom_filters("plain/", columns={"email": 0.001})
        <AddReport: 1 file (1 added)>
    """
    # Listed once: the paths may come from a generator.
    paths = as_paths(asked.paths, to_commit=True)
    own = asked.paths if table_path(asked.paths) else paths
    with granted(own, asked.storage_options):
        return _added(replace(asked, paths=paths), paths)


def _added(asked: AddRequest, paths: list[str]) -> AddReport:
    table = table_to_write(paths)
    if table is not None:
        opened = open_table_run(*table, asked.filters(), asked.choice())
        return _add_to_table(*opened, asked)
    asked.choice().refuse()
    return _add_to_files(asked)


def open_table_run(
    form: TableFormat, place: str, request: FilterRequest, choice: TableChoice
) -> tuple[TableTarget, FilterRequest]:
    """Return the run on a table, and the request for its files.

    Its errors come before anything is written.
    """
    table = form.open_to_write(place, choice)
    request = request.with_tables_at(table.places)
    check_tables(request.guard.policy, [place], [])
    request = request.for_file(place)
    wanted, policy = request.wanted, request.guard.policy
    with named_by(request.source):
        table.check_columns(wanted.required())
    if policy is not None:
        with named_by(policy.source):
            table.require(policy.columns.keys() - policy.shared)
    fpps = {name: options.fpp for name, options in wanted.columns.items()}
    change = TableChange(
        verb="add",
        filters=fpps,
        replace_filters=wanted.replace_filters,
        is_hidden=None if policy is None else _has_key(policy),
    )
    known = filter(table.names.has_field, wanted.columns)
    return table.target(change), request.on_table(table.opened_names, known)


def _has_key(policy: KeyPolicy) -> IsSecret:
    return lambda path, shown: any(map(policy.key_in_any_spelling, (path, shown)))


def _add_to_files(asked: AddRequest) -> AddReport:
    """Add filters to files that belong to no table, each in place or below ``output``."""
    mode = WriteMode(in_place=asked.in_place, dry_run=asked.dry_run)
    filters = asked.filters()
    open_work = asked.open_rewriter(filters, mode)
    files = FilesTarget(
        paths=asked.paths,
        policy=filters.guard.policy,
        where=asked.where,
        in_place=asked.in_place,
        output=asked.output,
    )
    target = asked.sampled(files)
    done = run(open_work, target, LocalRunner(jobs=asked.jobs), asked.progress)
    left = left_filters_notes(done.reports, in_place=asked.in_place, dry_run=asked.dry_run)
    summaries = summary_notes(done.changed, dry_run=asked.dry_run)
    taken = files.notes(dry_run=asked.dry_run)
    copied = (
        ()
        if asked.output is None
        else copied_notes(done.reports, str(asked.output), dry_run=asked.dry_run)
    )
    notes = (*file_notes(done.reports), *left, *copied, *summaries, *taken, *_sample_note(target))
    return AddReport(
        files=done.reports,
        notes=notes,
        dry_run=asked.dry_run,
        seconds=done.seconds,
        estimate=_estimate(target, done, in_place=asked.in_place),
    )


def _add_to_table(table: TableTarget, request: FilterRequest, asked: AddRequest) -> AddReport:
    """Write a new file for each live file, and commit the new files in place of the old files."""
    # Only changes: a file that has the wanted filters stays in the log as it is.
    mode = WriteMode(dry_run=asked.dry_run, only_changes=True)
    open_work = asked.open_rewriter(request, mode)
    target = asked.sampled(table)
    done = run(open_work, target, LocalRunner(jobs=asked.jobs), asked.progress)
    files = [it.taken_meanwhile() if it.path in done.gone else it for it in done.reports]
    shown = (*files, *(skipped_file(path, reason) for path, reason in table.skipped()))
    own = notes_in_table(shown, done.gone, done.commits)
    notes = (*own, *done.notes, *_sample_note(target))
    return AddReport(
        files=shown,
        notes=notes,
        dry_run=asked.dry_run,
        seconds=done.seconds,
        commits=done.commits,
        estimate=_estimate(target, done, sizes=table.sizes),
    )


def _sample_note(target: Target) -> Iterator[str]:
    if isinstance(target, SampledTarget) and target.is_part:
        yield (
            f"only {len(target.chosen):,} of {len(target.every):,} files were planned, chosen at "
            "random: sample=N (--sample N) plans N of them"
        )


def _estimate(
    target: Target,
    done: Done[FileAddReport],
    *,
    sizes: Mapping[str, int] | None = None,
    in_place: bool = False,
) -> CostEstimate | None:
    """Return what a run costs, computed from its dry run, or None for a run that has written."""
    if not isinstance(target, SampledTarget):
        return None
    return estimated(target, done.reports, done.cpu_seconds, sizes=sizes, in_place=in_place)
