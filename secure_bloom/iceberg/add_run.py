"""Add filters to an Iceberg table: on one machine, and on Spark's executors."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from importlib.metadata import version
from typing import Final

from pyiceberg.manifest import ManifestEntry
from pyiceberg.table.snapshots import Snapshot

from secure_bloom.adding.new_files import marked_name, new_paths, new_run, remove_new_file
from secure_bloom.adding.report import FileAddReport, ReplacedFile, TableCommit
from secure_bloom.adding.request import FilterRequest
from secure_bloom.adding.run import FileTask
from secure_bloom.adding.table_change import TableChange, Work, WrittenFile, check_commit_every
from secure_bloom.errors import PolicyError, SecureBloomError, UnfinishedWriteError
from secure_bloom.iceberg.catalog import CommitTable, open_table
from secure_bloom.iceberg.commit import commit
from secure_bloom.iceberg.live_files import Chosen, IcebergSelection, Manifests
from secure_bloom.iceberg.replacing_snapshot import NewDataFile, metrics, schema_of, spec_of
from secure_bloom.parquet.schema import unknown_column
from secure_bloom.storage import name_of
from secure_bloom.tables.iceberg_table import opened_location

#: The name of a commit of filters in a report.
OPERATION: Final = "replace"


@dataclass(slots=True, kw_only=True)
class IcebergRun:
    """The table, its selected data files, and what the snapshots say about the run.

    ``base`` is the snapshot in which the files were chosen.
    """

    table: CommitTable
    request: FilterRequest
    chosen: Chosen
    commit_every: int | None
    manifests: Manifests
    base: Snapshot | None
    name: str = field(default_factory=new_run)
    commits: list[TableCommit] = field(default_factory=list)
    _gone: list[str] = field(default_factory=list)
    _opened: dict[str, ManifestEntry] = field(init=False)
    #: The locations of the new files, by the paths of the old ones.
    _new: dict[str, str] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self._opened = {self.table.location(path): it for path, it in self.chosen.wanted.items()}

    @property
    def paths(self) -> list[str]:
        """The data files, as paths that can be opened."""
        return list(self._opened)

    @property
    def root(self) -> str:
        """The table's folder."""
        return opened_location(self.table.metadata.location)

    @property
    def sizes(self) -> Mapping[str, int]:
        """The sizes of the files, by their paths."""
        return {path: it.data_file.file_size_in_bytes for path, it in self._opened.items()}

    def skipped(self) -> Iterator[FileAddReport]:
        """Yield a report for each data file that gets no filter, with the reason."""
        for path, reason in self.chosen.skipped.items():
            yield FileAddReport(
                path=opened_location(path), status="unchanged", notes=(f"skipped: {reason}",)
            )

    def rewrite(self, work: Work, *, dry_run: bool) -> TableChange:
        """Do the work on the files. Commit after every ``commit_every`` files."""
        entries = list(self._opened.items())
        self._new = new_paths(self._opened, self._new_location)
        step = self.commit_every or max(1, len(entries))
        for start in range(0, len(entries), step):
            self._rewrite_some(dict(entries[start : start + step]), work, is_dry=dry_run)
        return TableChange(commits=tuple(self.commits), gone=frozenset(self._gone))

    def gone(self, change: TableChange, reports: Iterable[WrittenFile]) -> frozenset[str]:
        """Return files, also failed ones, that other writers removed from the table."""
        lost = {report.path for report in reports if report.status == "failed"}
        if lost:
            self.table.refresh()
            live = self.manifests.live(self.table.head)
            # A file that fails and is still live has failed by itself.
            lost -= {opened_location(path) for path in live}
        return change.gone | lost

    def _rewrite_some(
        self, entries: Mapping[str, ManifestEntry], work: Work, *, is_dry: bool
    ) -> None:
        if self.commits and not is_dry:
            # The run's own commit has moved the branch.
            self.table.refresh()
        replacements = self._written(entries, work)
        if not replacements:
            return
        if is_dry:
            self._report(None, replacements)
            return
        self._commit(replacements)

    def _written(self, entries: Mapping[str, ManifestEntry], work: Work) -> list[NewDataFile]:
        new = self._new
        opened = {path: self.table.new_path(new[path]) for path in entries}
        try:
            sizes = work([FileTask(path=path, target=opened[path]) for path in entries])
        except BaseException:
            _remove(opened.values())
            raise
        # Key material is written before the data, so it may be there without the data.
        _remove(opened[path] for path, size in sizes.items() if size is None)
        return [
            NewDataFile(old=entries[path], new=new[path], opened=opened[path], size=size)
            for path, size in sizes.items()
            if size is not None
        ]

    def _new_location(self, path: str, hashed: bool) -> str:
        """Return the location for the new file: beside other files of its partition.

        Without partitions, all files are in one folder. ``hashed`` is that of ``new_paths``.
        """
        old = self._opened[path].data_file
        spec = spec_of(old.spec_id, self.table)
        name = marked_name(name_of(path), self.name, unique=old.file_path, hashed=hashed)
        provider = self.table.table.location_provider()
        if spec.is_unpartitioned():
            return str(provider.new_data_location(name))
        path = spec.partition_to_path(old.partition, schema_of(spec, self.table))
        return str(provider.new_data_location(name, _PartitionPath(path)))

    def _commit(self, replacements: Sequence[NewDataFile]) -> None:
        try:
            done = commit(self.table, self.manifests, self.base, replacements, self._properties)
        except UnfinishedWriteError:
            raise  # the snapshot may be there, so what it names must stay
        # Ctrl-C may come while the catalog takes the commit: then they stay too.
        except SecureBloomError:
            _remove(it.opened for it in replacements)
            raise
        kept = {it.path for it in done.replaced}
        late = [it for it in replacements if it.path not in kept]
        _remove(it.opened for it in late)
        self._gone += (opened_location(it.path) for it in late)
        if done.snapshot_id is not None:
            self._report(done.snapshot_id, done.replaced)

    def _report(self, snapshot_id: int | None, replaced: Sequence[NewDataFile]) -> None:
        self.commits.append(
            TableCommit(
                version=snapshot_id,
                operation=OPERATION,
                metrics=metrics(replaced),
                files=tuple(ReplacedFile(removed=it.path, added=it.new) for it in replaced),
            )
        )

    @property
    def _properties(self) -> dict[str, str]:
        """Return the properties of a snapshot's summary: names of columns, no values."""
        fpps = {name: options.fpp for name, options in self.request.wanted.columns.items()}
        return {
            "secure-bloom.version": version("secure-bloom"),
            "secure-bloom.columns": json.dumps(fpps, ensure_ascii=False),
        }


@dataclass(frozen=True, slots=True)
class _PartitionPath:
    """The folder of a partition, in the form that location providers take."""

    path: str

    def to_path(self) -> str:
        return self.path


def open_run(
    path: str,
    request: FilterRequest,
    chosen: IcebergSelection,
    *,
    branch: str | None = None,
    commit_every: int | None = None,
) -> IcebergRun:
    """Return the run on a table of a catalog. Its errors come before anything is written."""
    check_commit_every(commit_every)
    table = open_table(path, branch)
    for name in request.wanted.columns:
        _require(name, table)
    manifests = Manifests(table.io)
    return IcebergRun(
        table=table,
        request=request.on_table(table.names, request.wanted.columns),
        chosen=chosen.files(table, manifests),
        commit_every=commit_every,
        manifests=manifests,
        base=table.head,
    )


def _require(name: str, table: CommitTable) -> None:
    """Raise PolicyError for a column that the table's schema lacks."""
    schema = table.metadata.schema()
    try:
        schema.find_field(name)
    except ValueError:
        raise unknown_column(name, schema.column_names, (table.path,)) from None


def refuse_options_of_files(path: str, *, in_place: bool, output: bool) -> None:
    """Raise an error for options that are not possible for a table of a catalog."""
    for is_given, option in ((in_place, "in_place"), (output, "output")):
        if is_given:
            raise PolicyError(
                f"{option} is for files: an Iceberg table gets new files and a snapshot",
                hint=f"leave out --{option.replace('_', '-')}",
                path=path,
            )


def _remove(paths: Iterable[str]) -> None:
    """Remove new files that no snapshot names."""
    for path in paths:
        # One that stays is an orphan file, which the table's own maintenance removes.
        with suppress(SecureBloomError):
            remove_new_file(path)
