"""Audit a dataset: the policy, then each file, then what only all files together show."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from itertools import chain
from typing import TYPE_CHECKING

from secure_bloom.auditing.audit_plan import AuditPlan
from secure_bloom.auditing.checks import copies, folders
from secure_bloom.auditing.checks.classification import check_partitions_classified
from secure_bloom.auditing.checks.folders import folder_of
from secure_bloom.auditing.checks.mixed_protection import Mixture
from secure_bloom.auditing.checks.session_properties import check_properties
from secure_bloom.auditing.checks.subjects import AuditRequest, AuditRun
from secure_bloom.auditing.checks.table_logs import check_table_keys, check_table_logs
from secure_bloom.auditing.failures import guarded
from secure_bloom.auditing.file_audit import FileAudit, SensitiveChunks, audit_file
from secure_bloom.auditing.findings import AuditReport, Finding
from secure_bloom.auditing.fixes import Targets
from secure_bloom.auditing.naming import PathMask, secret_partition
from secure_bloom.auditing.rules.key_rules import COLUMN_ALIKE
from secure_bloom.auditing.rules.policy_rules import (
    POLICY_COLUMN_UNKNOWN,
    POLICY_TABLE_MISSPELT,
    POLICY_TABLE_UNUSED,
)
from secure_bloom.auditing.rules.unchecked_rules import UNCHECKED_SAMPLE
from secure_bloom.auditing.table_places import CopyRules, NamedTables, OlderNames, above_partitions
from secure_bloom.calling.arguments import Progress
from secure_bloom.calling.close_names import CloseNames
from secure_bloom.encryption.access import GivenKeys
from secure_bloom.encryption.file_keys import KeyResolver
from secure_bloom.encryption.policy import KeyPolicy
from secure_bloom.lakes.formats import PAIMON
from secure_bloom.lakes.misspelt_tables import misspelt_tables
from secure_bloom.lakes.table_format import ListedTable
from secure_bloom.parquet.key_prefetch import KeyPrefetch
from secure_bloom.parquet.schema import partition_names, unknown_column
from secure_bloom.running.ordered_pool import in_order
from secure_bloom.storage import InputFile, file_keys, open_input
from secure_bloom.storage.paths import is_object_uri

# Loaded to search for values alone.
if TYPE_CHECKING:
    from secure_bloom.auditing.checks.traced_values import TracedValues
    from secure_bloom.lakes.paimon.table import PaimonFile
    from secure_bloom.tracing.index import WordIndex

#: The requests to an object store that wait at a time.  On a local disk one thread is faster: an
#: audit computes in Python, and several threads took 2.9 s where one took 2.3 s.
_THREADS = 16
#: The files whose audit may be done before that of an earlier file.
_WAITING = 16


def audit_files(plan: AuditPlan, progress: Progress | None = None) -> AuditReport:
    """Return the report of a plan. ``progress`` gets the numbers of files done and of all files."""
    words = searched_words(plan.request, plan.keys, plan.files, plan.tables.open)
    if words is not None:
        # Of columns that do not fit into memory the words of the lake are asked first, in an audit
        # of which nothing is reported.
        words = words.narrowed(lambda asked: conclude(plan, _audits(plan, None, asked), asked))
    return conclude(plan, _audits(plan, progress, words), words)


def searched_words(
    request: AuditRequest | None,
    keys: GivenKeys,
    files: Sequence[str],
    open_file: Callable[[str], InputFile] = open_input,
) -> WordIndex | None:
    """Return the words of all values of sensitive columns, if they are searched for."""
    if request is None or not (request.check_values and request.with_keys):
        return None
    # Imported here: the other checks need no pyarrow.
    from secure_bloom.auditing.checks.traced_values import sensitive_words

    run = AuditRun(request=request, resolver=KeyResolver(keys))
    chunks = SensitiveChunks(files, run, open_file=open_file)
    return sensitive_words(chunks.columns(), chunks.of, request.policy, chunks.unread)


def _audits(
    plan: AuditPlan, progress: Progress | None, words: WordIndex | None
) -> Iterator[FileAudit]:
    """Yield the results of the files in their order, each when it is done."""
    request, total = plan.request, len(plan.files)
    if request is None:
        return
    resolver = KeyResolver(plan.keys)
    older = OlderNames(plan.tables)
    run = AuditRun(
        request=request,
        resolver=resolver,
        older_names=older.of,
        paimon_file=_paimon_files(plan).get,
        words=words,
    )
    work = partial(audit_file, run=run, open_file=plan.tables.open)
    paths = KeyPrefetch(resolver).each(plan.files) if request.with_keys else plan.files
    are_remote = any(map(is_object_uri, plan.files))
    audits = in_order(work, paths, _THREADS if are_remote else 1, room=_WAITING)
    for done, file in enumerate(audits):
        if progress is not None:
            progress(done + 1, total)
        yield file


def conclude(
    plan: AuditPlan, files: Iterable[FileAudit], words: WordIndex | None = None
) -> AuditReport:
    """Return the report of all files, with the findings that only all files together show.

    ``words`` are the words of sensitive columns. They are searched for in other files and in names.
    """
    if plan.request is None:
        return _report(plan, list(plan.findings), 0, PathMask(KeyPolicy()))
    found, summed = list(plan.findings), _Summary(plan.request.policy)
    traced: list[TracedValues] = []
    targets = Targets(
        plan.tables, plan.given, plan.refused, plan.unknown_keys, is_latest=plan.is_latest
    )
    for file in files:
        found += file.findings
        traced += file.traced
        summed.add(file)
        if file.columns:
            targets.add_columns(file.path, file.columns)
    for finding in found:
        if finding.id == COLUMN_ALIKE.id:
            targets.add_alike(finding)
    policy = plan.request.policy
    found += chain.from_iterable(it.mixture.findings() for it in summed.tables.values())
    found += guarded(folders.check_folders(plan.files, plan.roots, policy))
    found += guarded(check_table_keys(plan.tables))
    if plan.request.has_secrets:
        found += guarded(check_table_logs(plan.tables, policy))
        search = _copy_search(plan, plan.request, words, summed.file_columns)
        found += guarded(copies.check_copies(plan.all_roots, search))
        found += folders.check_partitions(plan.files, search.partitions, policy)
        traced += search.traced
        names = (*plan.files, *search.names)
    else:
        names = plan.files
    mask, leaks = PathMask(policy), None
    if words is not None:
        from secure_bloom.auditing.checks import traced_values

        searched = traced_values.SearchedNames(names, policy, words)
        mask = PathMask(policy, searched.has_value)
        traced.append(searched.trace(plan.roots, mask.path))
        found += list(traced_values.confirmed_findings(traced, words, found))
        found += traced_values.partly_searched(words)
        found += traced_values.not_searched(words)
        found += traced_values.unread_values(traced, words, found)
        leaks = traced_values.leak_search(traced, words, mask.path)
    left_out = len(plan.listed) - len(plan.files)
    found += _table_findings(summed, plan)
    if left_out:
        found.append(UNCHECKED_SAMPLE.finding("files outside the sample were not looked at"))
    report = _report(plan, found, summed.checked, mask, targets)
    return replace(
        report,
        leak_search=leaks,
        file_columns={mask.path(path): columns for path, columns in summed.file_columns.items()},
        table_of=_tables_of_places(plan, found, targets, mask),
        bytes=summed.bytes,
        filters=summed.filters,
        left_out=tuple(map(mask.path, sorted(set(plan.listed).difference(plan.files)))),
    )


def _paimon_files(plan: AuditPlan) -> dict[str, PaimonFile]:
    found: dict[str, PaimonFile] = {}
    for table in plan.tables.tables:
        found |= table.state.files if table.format is PAIMON else {}
    return found


def _tables_of_places(
    plan: AuditPlan, found: Iterable[Finding], targets: Targets, mask: PathMask
) -> dict[str, str]:
    """Return the table of each file, and of each other place with a finding, by masked paths."""
    policy = KeyPolicy() if plan.request is None else plan.request.policy
    places = NamedTables(policy, plan.files, plan.refused, targets.table_at)
    others = (it.path for it in found if it.path is not None)
    tables = {path: places.name_of(path) for path in (*plan.files, *others)}
    return {mask.path(path): mask.path(name) for path, name in tables.items() if name is not None}


def _copy_search(
    plan: AuditPlan,
    request: AuditRequest,
    words: WordIndex | None,
    live: Mapping[str, tuple[str, ...]],
) -> copies.CopySearch:
    older = OlderNames(plan.tables)
    run = AuditRun(
        request=request,
        resolver=KeyResolver(plan.keys),
        older_names=older.of,
        words=words,
    )
    rules = CopyRules(request.policy, live)

    def audit_copy(
        path: str, open_file: Callable[[str], InputFile], policy: KeyPolicy
    ) -> FileAudit:
        return audit_file(path, run.under(policy), open_file)

    return copies.CopySearch(
        listed=frozenset(plan.listed),
        tables=plan.tables,
        audit=audit_copy,
        policy=request.policy,
        copy_rules=rules.at,
        refused=plan.refused,
        folders=set(file_keys(folders.looked_into(plan.files, plan.roots))),
        keys=run.key_forms,
        words=words,
    )


class _Summary:
    """Sums over the files of an audit, by their tables in the policy."""

    def __init__(self, policy: KeyPolicy) -> None:
        self._policy = policy
        self.tables: dict[str | None, _TableSums] = {}
        self.checked = 0
        self.bytes = 0
        self.filters = 0
        #: The columns of each file that could be read. Files with the same ones share a tuple.
        self.file_columns: dict[str, tuple[str, ...]] = {}
        self._shared: dict[tuple[str, ...], tuple[str, ...]] = {}

    def add(self, file: FileAudit) -> None:
        """Add the result of one file."""
        self.checked += file.columns_checked
        self.bytes += file.bytes
        self.filters += file.filters
        if file.columns:
            names = tuple(file.columns)
            self.file_columns[file.path] = self._shared.setdefault(names, names)
        policy = self._policy.rules_at(file.path)
        if policy.table not in self.tables:
            self.tables[policy.table] = _TableSums(policy=policy)
        self.tables[policy.table].add(file)


@dataclass(slots=True, kw_only=True)
class _TableSums:
    """Sums over the files of one table. Of 10,000 equal files only the paths take memory."""

    policy: KeyPolicy
    paths: list[str] = field(default_factory=list)
    columns: dict[str, tuple[str, ...]] = field(default_factory=dict)
    all_read: bool = True
    mixture: Mixture = field(default_factory=Mixture)

    def add(self, file: FileAudit) -> None:
        """Add the result of one file."""
        self.paths.append(file.path)
        self.columns.update(file.columns)
        self.all_read = self.all_read and bool(file.columns)
        if file.protection is not None:
            self.mixture.add(file.path, file.protection)

    def partition_columns(self, plan: AuditPlan) -> set[str]:
        """Return the partition columns of the tables with a log that have files here."""
        return {column for table in self._logs(plan) for column in table.partition_columns}

    def partitions(self, plan: AuditPlan) -> dict[str, set[str]]:
        """Return the columns that partition each table, by its folder."""
        logs = list(self._logs(plan))
        found = {table.place: set(table.partition_columns) for table in logs}
        places = {file: table.place for table in logs for file in table.files}
        folders = {folder_of(path): places.get(path) for path in self.paths}
        for folder, place in folders.items():
            own = found.setdefault(place or above_partitions(folder), set())
            own |= partition_names(folder)
        return found

    def has_named(self, column: str, plan: AuditPlan, older: OlderNames) -> bool:
        """Return whether a table with a log, which has files here, has the column in a schema."""
        return any(
            column in table.schema()
            or any(names.stored(column) is not None for names in older.of_table(table))
            for table in self._logs(plan)
        )

    def _logs(self, plan: AuditPlan) -> Iterator[ListedTable]:
        files = set(self.paths)
        return (it for it in plan.tables.tables if not files.isdisjoint(it.files) or not it.files)


def _table_findings(summed: _Summary, plan: AuditPlan) -> Iterator[Finding]:
    """Yield findings that need all files of a table, and one for each table without a file."""
    request = plan.request or AuditRequest(policy=KeyPolicy())
    is_whole = len(plan.listed) == len(plan.files)
    for table in summed.tables.values():
        # An empty table of a log has a schema, but no file that shows its columns.
        if table.all_read and is_whole:
            yield from _unknown_columns(table, plan)
        if request.strict:
            yield from check_partitions_classified(table.partitions(plan), table.policy)
        if plan.properties is not None:
            yield from check_properties(plan.properties, table.policy, table.columns)
    if plan.properties is not None and not summed.tables:
        yield from check_properties(plan.properties, request.policy, {})
    misspelt = set[str]()
    for pattern, error in misspelt_tables(request.policy, plan.given, plan.listed):
        misspelt.add(pattern)
        yield POLICY_TABLE_MISSPELT.finding(error.message)
    # Whoever audits one table of a lake does not ask about the other ones.
    if all(any(it.strip("*/") for it in request.policy.tables_at(root)) for root in plan.given):
        return
    # A table whose files a sample left out has files; an empty table of a log has none.
    logs = (it.named or it.place for it in plan.tables.logs)
    places = (*plan.listed, *plan.refused, *logs)
    used = {name for path in places for name in request.policy.tables_at(path)}
    for pattern in sorted(request.policy.tables.keys() - used - misspelt):
        yield POLICY_TABLE_UNUSED.finding(f'no file belongs to [tables."{pattern}"]')


def _unknown_columns(table: _TableSums, plan: AuditPlan) -> Iterator[Finding]:
    policy, columns = table.policy, set(table.columns)
    parents = {
        ".".join(parts[:depth])
        for parts in (column.split(".") for column in columns)
        for depth in range(1, len(parts))
    }
    # One folder for each name of a column: a table may have a million values of it.
    parts = {part for file in table.paths for part in file.split("/") if "=" in part}
    folders = {f"{part.partition('=')[0]}=" for part in parts}
    partitions = {secret_partition(folder, policy) for folder in folders}
    partitions.update(table.partition_columns(plan))
    names, older = CloseNames(columns), OlderNames(plan.tables)
    for path, rule in policy.columns.items():
        if path in columns or path in parents or path in policy.shared:
            continue
        # Its files may keep a column that the table has dropped or renamed, or not have a new one.
        if table.has_named(path, plan, older):
            continue
        if rule.key is not None and path in partitions:
            # Another rule reports it: values in names of folders, or in the table's log.
            continue
        error = unknown_column(path, names, folders)
        found = POLICY_COLUMN_UNKNOWN.finding(f"{error.message} ({error.hint})", column=path)
        yield replace(found, table=policy.table)


def _report(
    plan: AuditPlan,
    found: Iterable[Finding],
    checked: int,
    mask: PathMask,
    targets: Targets | None = None,
) -> AuditReport:
    """Return the report, with commands to copy as fixes."""
    targets = targets or Targets(plan.tables, plan.given, plan.refused)
    targets.mask = mask.path
    policy = KeyPolicy() if plan.request is None else plan.request.policy
    paths = tuple(map(mask.path, plan.files))
    findings: list[Finding] = []
    ignored: list[Finding] = []
    notes: list[Finding] = []
    for made in found:
        fix = targets.fix_of(made, policy, plan.scope.policy)
        finding = mask.finding(replace(made, fix=fix))
        if plan.selection.counts(finding):
            findings.append(finding)
        else:
            (notes if plan.selection.is_note(finding) else ignored).append(finding)
    return AuditReport(
        findings=tuple(findings),
        ignored=tuple(ignored),
        notes=tuple(notes),
        paths=paths,
        columns=tuple(policy.columns),
        columns_checked=checked,
        scope=replace(plan.scope, files_left_out=len(plan.listed) - len(plan.files)),
    )
