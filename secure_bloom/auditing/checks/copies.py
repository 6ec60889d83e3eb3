"""Check the files that readers of a table skip: copies, old versions, and what writers left.

Every file that was not listed is checked, whatever its name.  Parquet files must obey the policy as
live files must, but only what they show of sensitive columns is a finding.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Hashable, Iterable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, field, replace
from itertools import islice
from typing import TYPE_CHECKING, NamedTuple

from secure_bloom.auditing.checks.contents import Content, begins_with_pages, content_of
from secure_bloom.auditing.checks.folders import folder_of, index_findings
from secure_bloom.auditing.checks.table_logs import check_stray_log
from secure_bloom.auditing.failures import file_failure
from secure_bloom.auditing.file_audit import FileAudit
from secure_bloom.auditing.findings import REMOVE, Finding
from secure_bloom.auditing.rules.filter_rules import FILTER_CROWDED, FILTER_IN_CLEAR, FILTER_STRAY
from secure_bloom.auditing.rules.key_rules import (
    COLUMN_ALIKE,
    COLUMN_IN_CLEAR,
    COLUMN_UNDER_FOOTER_KEY,
    COLUMN_WRONG_KEY,
    KEY_RETIRED,
    KEYS_IN_LAKE,
)
from secure_bloom.auditing.rules.leak_rules import (
    BOUNDS_STRAY,
    DELTALAKE_VACUUM,
    HUDI_KEYS_IN_CLEAR,
    ICEBERG_EXPIRY,
    PAGE_INDEX_IN_CLEAR,
    PAGES_IN_CLEAR,
    PAGES_STRAY,
    STATISTICS_IN_CLEAR,
)
from secure_bloom.auditing.rules.unchecked_rules import (
    OTHER_FILES,
    UNCHECKED_COPY,
    UNCHECKED_FEATURE,
    UNCHECKED_FIELDS,
    UNCHECKED_FILE,
    UNCHECKED_FOOTER,
)
from secure_bloom.encryption.policy import KeyPolicy
from secure_bloom.errors import SecureBloomError
from secure_bloom.lakes import TableListing
from secure_bloom.lakes.delta.history import ACTION_NAMES, is_read_as_log
from secure_bloom.lakes.delta.log_files import LOG_FOLDER
from secure_bloom.lakes.table_format import TableFormat
from secure_bloom.parquet.footer.locate import MAGIC, read_tail
from secure_bloom.parquet.footer.opened import read_unverified
from secure_bloom.parquet.key_material_files import KEY_MATERIAL_PREFIX
from secure_bloom.reports.text import counted, shell_word
from secure_bloom.storage import (
    InputFile,
    below,
    file_key,
    file_keys,
    join,
    local_path,
    name_of,
    open_input,
)
from secure_bloom.storage.column_mapping import ColumnMapping
from secure_bloom.storage.dispatch import tree_of

# Loaded to search for values alone.
if TYPE_CHECKING:
    from secure_bloom.auditing.checks.traced_values import TracedValues
    from secure_bloom.tracing.index import WordIndex

#: What counts of the audit of a copy: what it shows, and to whom: a key is retired so that nobody
#: can read its files.  Whether a copy has a filter is nobody's concern.
_COUNTS = frozenset(
    rule.id
    for rule in (
        COLUMN_IN_CLEAR,
        COLUMN_ALIKE,
        COLUMN_WRONG_KEY,
        COLUMN_UNDER_FOOTER_KEY,
        KEY_RETIRED,
        STATISTICS_IN_CLEAR,
        PAGE_INDEX_IN_CLEAR,
        PAGES_IN_CLEAR,
        PAGES_STRAY,
        BOUNDS_STRAY,
        FILTER_IN_CLEAR,
        FILTER_STRAY,
        FILTER_CROWDED,
        HUDI_KEYS_IN_CLEAR,
        KEYS_IN_LAKE,
        UNCHECKED_FEATURE,
        UNCHECKED_FIELDS,
        UNCHECKED_FOOTER,
    )
)
#: What depends on which key the table gives to the column.
_BY_KEY = frozenset({COLUMN_WRONG_KEY.id, COLUMN_UNDER_FOOTER_KEY.id})
#: What a file is called that cannot be opened, or not by the names of its table.
_UNREAD = frozenset({UNCHECKED_FILE.id, UNCHECKED_FEATURE.id})
#: The folders of logs, and that of an Iceberg table's metadata.
_LOGS, _METADATA = (LOG_FOLDER, "_spark_metadata"), "metadata"
_SUMMARIES = ("_metadata", "_common_metadata")
#: Files that belong to a data file and are read with it -> how they begin.
_OWNED = (
    (re.compile(r"\.(.+)\.crc"), b"crc\0"),
    (re.compile(re.escape(KEY_MATERIAL_PREFIX) + r"(.+)\.json"), b"{"),
    (re.compile(r"(.+)\.index"), b""),
)
#: A folder in a table -> the names of what its format keeps there: Iceberg, Hudi, Paimon.
_PARTS: Mapping[str, re.Pattern[str]] = {
    "metadata": re.compile(r".+\.(metadata\.json(\.gz)?|avro|stats|puffin)|version-hint\.text"),
    ".hoodie": re.compile(r"hoodie\.properties|\d{14,17}(_\d{14,17})?\.[a-z.]+"),
    "schema": re.compile(r"schema-\d+"),
    "snapshot": re.compile(r"snapshot-\d+|LATEST|EARLIEST"),
    "manifest": re.compile(r"(index-)?manifest-(list-)?[0-9a-f-]+"),
}
#: Delta's deletion vectors have numbers of rows, and no value.
_VECTORS = re.compile(r"deletion_vector_[0-9a-f-]{36}\.bin")
#: For each path: the most folders that are looked into, and the most files that are opened.  Files
#: of tables with a log are not counted: each table has old files, often many.
_MOST_FOLDERS, _MOST_OPENED = 1_000_000, 1_000
_MOST_NAMED = 5


@dataclass(frozen=True, slots=True, kw_only=True)
class _Table:
    """A table with a log.

    ``names`` maps its columns to their names in the log. ``fix`` says how to remove files of older
    versions, and ``files`` which files the log does not name. ``branches`` has the keys of files
    that are live in another branch, each with the branch's name.
    """

    names: ColumnMapping | None = None
    fix: str
    files: str = "a file that the current version of the table does not name"
    branches: Mapping[Hashable, str] = field(default_factory=dict)


def _of_others(form: TableFormat | None) -> _Table:
    """Return a table whose log is not read."""
    again = (
        "no command of secure-bloom writes into this table: write its rows again under the policy, "
        "with the table's own engine"
    )
    written = again if form is None else form.rewritten_by.format(verb="reencrypt")
    return _Table(
        files="a file of a table whose log is not read",
        fix=f"{written}; then let the table's own engine remove its old files",
    )


class _Candidate(NamedTuple):
    """A file that was not listed.

    ``table`` is the table in whose folder it is, and whose log does not name it, or None.
    """

    path: str
    name: str
    table: _Table | None
    in_log: bool


#: Audits a file, which an opener opens, under some rules.
AuditFile = Callable[[str, Callable[[str], InputFile], KeyPolicy], FileAudit]


@dataclass(frozen=True, slots=True, kw_only=True)
class CopySearch:
    """The files that were ``listed``, the tables, and what to do with other files.

    ``keys`` are the spellings of master keys to look for, ``words`` the index of the values of
    sensitive columns, and ``refused`` the folders of tables whose log is not read, each with the
    table's format. The search fills three fields: ``partitions`` gets the folders named by values,
    with their rules, ``traced`` the values that files hold, and ``names`` the paths of these files.
    ``copy_rules`` returns the rules of files in a folder of no table with a log.
    """

    listed: Collection[str]
    tables: TableListing
    audit: AuditFile
    policy: KeyPolicy
    copy_rules: Callable[[str], KeyPolicy]
    folders: Collection[Hashable] = ()
    refused: Mapping[str, TableFormat | None] = field(default_factory=dict)
    keys: Collection[bytes] = field(default=(), repr=False)
    words: WordIndex | None = field(default=None, repr=False)
    traced: list[TracedValues] = field(default_factory=list, repr=False)
    partitions: dict[str, KeyPolicy] = field(default_factory=dict)
    names: list[str] = field(default_factory=list, repr=False)

    def rules_of(self, folder: str, table: _Table | None) -> KeyPolicy:
        """Return the rules for files that readers skip in a folder, which may be of a table."""
        return self.copy_rules(folder) if table is None else self.policy.rules_at(folder)

    def is_looked_into(self, path: str) -> bool:
        """Return whether the check of folders reads summaries and indexes beside a file."""
        return file_key(folder_of(path)) in self.folders


def check_copies(roots: Iterable[str], search: CopySearch) -> Iterator[Finding]:
    """Yield the findings for files below ``roots`` that were not listed."""
    # Files are compared, not names: a link may lead to a file that was listed by another path.
    known = set(file_keys(search.listed))
    for root in map(local_path, roots):
        others: list[str] = []
        opened = 0
        for candidate in _candidates(root, search):
            key = file_key(candidate.path)
            if key in known:
                continue
            # Another root may lead to it too.
            known.add(key)
            opened += candidate.table is None and search.words is None
            if opened > _MOST_OPENED:
                yield UNCHECKED_COPY.finding(
                    f"more than {_MOST_OPENED:,} files that readers skip: the others were not "
                    "opened",
                    path=root,
                )
                break
            found = _findings(candidate, search)
            if found is None:
                others.append(candidate.name)
            else:
                yield from found
        if others:
            yield _others(root, others)


def _others(root: str, names: list[str]) -> Finding:
    named = ", ".join(names[:_MOST_NAMED]) + (", ..." if len(names) > _MOST_NAMED else "")
    were = "was" if len(names) == 1 else "were"
    what = f"{counted(len(names), 'other file')} {were} not looked at: {named}"
    return OTHER_FILES.finding(what, path=root)


def _findings(candidate: _Candidate, search: CopySearch) -> list[Finding] | None:
    """Return the findings for one file, or None for a file that no check knows."""
    path = candidate.path
    try:
        with open_input(path) as file:
            content = content_of(file, search.keys)
            _trace(candidate, file, content, search)
            if content is Content.FOOTER and _is_read_elsewhere(candidate, file, search):
                return []
            if content is Content.FOOTER and _is_checkpoint(file):
                return check_stray_log(path, _rules(candidate, search))
            if content is Content.OTHER:
                found = _beside(candidate, file, search)
                is_looked_at = search.words is not None or _is_known(candidate, file)
                return found or ([] if is_looked_at else None)
    except PermissionError as error:
        # Others may read it.
        return [file_failure(path, error)]
    except Exception:
        # Nobody can read this file.
        return []
    if content is Content.KEYS:
        return [KEYS_IN_LAKE.finding("the file holds keys", path=path)]
    if content is Content.PACKED:
        # The search for values has a finding for each part that it cannot unpack.
        if search.words is not None and search.traced[-1].trace.unread:
            return []
        what = "an archive that cannot be unpacked here, in which a copy may be"
        return [UNCHECKED_COPY.finding(what, path=path)]
    if content is Content.PAGES:
        return [_torn(path)]
    return [_as_copy(finding, candidate) for finding in _audited(candidate, search)]


def _trace(candidate: _Candidate, file: InputFile, content: Content, search: CopySearch) -> None:
    """Search a file for values, unless it is audited as a copy of the table's files."""
    is_audited = content is Content.FOOTER and not (
        _is_read_elsewhere(candidate, file, search) or _is_checkpoint(file)
    )
    if search.words is not None and not is_audited:
        # Imported here: without values no other check needs pyarrow.
        from secure_bloom.auditing.checks.traced_values import trace_other

        search.traced.append(trace_other(file, search.words))


def _torn(path: str) -> Finding:
    what = "pages of a Parquet file in clear, in a file that readers skip"
    # Only what shows pages and is no live file is known to be a copy.
    return replace(UNCHECKED_COPY.finding(what, path=path), fix=_DESTROY)


_DESTROY = f"destroy what a writer or a backup left: {REMOVE}"


def _is_read_elsewhere(candidate: _Candidate, file: InputFile, search: CopySearch) -> bool:
    """Return whether another check reads the file: summaries without pages, and checkpoints."""
    if candidate.in_log:
        return _is_checkpoint(file)
    is_summary = candidate.name in _SUMMARIES and read_tail(file).offset <= len(MAGIC)
    return is_summary and search.is_looked_into(candidate.path)


def _beside(candidate: _Candidate, file: InputFile, search: CopySearch) -> list[Finding]:
    """Return findings for a file that looks like a Paimon index or a part of a Delta log."""
    if not search.is_looked_into(candidate.path) or not candidate.name.endswith(".index"):
        found = list(index_findings(file, _rules(candidate, search)))
        if found:
            return found
    if candidate.in_log or file.read_at(0, 1) != b"{":
        return []
    return check_stray_log(candidate.path, _rules(candidate, search))


def _is_checkpoint(file: InputFile) -> bool:
    """Return whether a Parquet file has only the columns of a checkpoint."""
    tail = read_tail(file)
    if tail.scan is None:
        return False
    try:
        return {leaf.path[0] for leaf in read_unverified(tail).leaves} <= ACTION_NAMES
    except SecureBloomError:
        return False


def _is_known(candidate: _Candidate, file: InputFile) -> bool:
    """Return whether the file needs no search: its name says what it is, or its name and head."""
    if candidate.in_log and is_read_as_log(candidate.name):
        return True
    if candidate.table is not None:
        parts = _PARTS.get(name_of(folder_of(candidate.path)), _VECTORS)
        if parts.fullmatch(candidate.name) or _VECTORS.fullmatch(candidate.name):
            return True
    for pattern, head in _OWNED:
        if pattern.fullmatch(candidate.name) and file.size >= len(head):
            return file.read_at(0, len(head)) == head
    return False


def _rules(candidate: _Candidate, search: CopySearch) -> KeyPolicy:
    return search.rules_of(folder_of(candidate.path), candidate.table)


def _audited(candidate: _Candidate, search: CopySearch) -> list[Finding]:
    table, rules = candidate.table, _rules(candidate, search)

    def open_named(path: str) -> InputFile:
        file = open_input(path)
        file.column_names = None if table is None else table.names
        return file

    audited = search.audit(candidate.path, open_named, rules)
    if table is not None and any(finding.id in _UNREAD for finding in audited.findings):
        # The table's names, or its ids of fields, do not fit the file: it has those that it brings.
        audited = search.audit(candidate.path, open_input, rules)
    search.traced.extend(audited.traced)
    found = audited.findings
    if any(finding.id == UNCHECKED_FILE.id for finding in found):
        # A footer that is none: its pages count.
        with open_input(candidate.path) as file:
            return [_torn(file.path)] if begins_with_pages(file) else []
    return [it for it in found if it.id in _COUNTS and not _is_another_key(it, rules, search)]


def _is_another_key(finding: Finding, rules: KeyPolicy, search: CopySearch) -> bool:
    """Return whether the key may be right: which of several tables was copied is not known."""
    if finding.id not in _BY_KEY or finding.column is None or rules.table is not None:
        return False
    keys = {it.own_key_for(finding.column) for it in search.policy.tables.values()}
    return len(keys - {None}) > 1


def _as_copy(finding: Finding, candidate: _Candidate) -> Finding:
    table = candidate.table
    if table is None:
        what = f"{finding.what}, in a copy that readers skip"
        return replace(finding, what=what, fix="destroy the copy: `rm PATH`")
    branch = table.branches.get(file_key(candidate.path)) if table.branches else None
    if branch is not None:
        what = f"{finding.what}, in a file of the branch {branch}"
        fix = f"`secure-bloom reencrypt PATH --policy FILE --branch {shell_word(branch)}`"
        return replace(finding, what=what, fix=f"{fix}; then {table.fix}")
    what = f"{finding.what}, in {table.files}"
    return replace(finding, what=what, fix=table.fix)


def _tables(tables: TableListing) -> Iterator[tuple[Hashable, _Table]]:
    """Yield the folders of tables with a log, and given folders inside one."""
    for folder in tables.folders:
        logs = (it for it in tables.tables if folder == it.place or below(folder, it.place))
        log = next(logs, None)
        if log is None:
            yield file_key(folder), _Table(fix="destroy the file: `rm PATH`")
            continue
        vacuum = (
            "once no reader needs the older versions, remove the file by Spark's SQL: "
            f"VACUUM {_spark_text(log.place)} (RETAIN 0 HOURS: at once), or with deltalake: "
            f"DeltaTable.{DELTALAKE_VACUUM}"
        )
        yield file_key(folder), _Table(names=log.column_mapping, fix=vacuum)
    for table in tables.tables:
        branches: dict[Hashable, str] = {}
        # Without the metadata of the branches, their files count as old ones.
        with suppress(SecureBloomError):
            live = table.format.files_of_branches(table.state)
            branches = dict(zip(file_keys(live), live.values(), strict=True))
        for location in table.locations:
            yield (
                file_key(location),
                _Table(names=table.column_mapping, fix=ICEBERG_EXPIRY, branches=branches),
            )


def _spark_text(text: str) -> str:
    """Return a text as Spark's SQL has it. Backticks enclose a command in the text of a fix."""
    quoted = "".join(
        char if char.isprintable() and char not in "'`\\" else f"\\u{ord(char):04x}"
        for char in text
    )
    return f"'{quoted}'"


def _candidates(root: str, search: CopySearch) -> Iterator[_Candidate]:
    tree = tree_of(root)
    if not tree.find_folder(root):
        return
    tables: Mapping[Hashable, _Table] = {
        **dict(_tables(search.tables)),
        # Not copies: which of their files live is not known here.
        **{file_key(folder): _of_others(form) for folder, form in search.refused.items()},
    }
    logs = {tree.key(folder) for folder in _log_folders(search.tables)}
    # A given folder may lie in the folder of a table.
    around = (tables.get(tree.key(it)) for it in tree.parents(root)) if tables else ()
    inside: dict[str, tuple[_Table | None, bool]] = {
        root: (next(filter(None, around), None), False)
    }
    # Folders that cannot be read are findings already, from listing the files.
    for folder, folders, names in islice(tree.walk(root, []), _MOST_FOLDERS):
        above, in_log = inside.pop(folder, (None, False))
        key = tree.key(folder) if tables or logs else None
        table, in_log = tables.get(key, above), in_log or key in logs
        if table is not None or in_log:
            inside |= dict.fromkeys((tree.join(folder, name) for name in folders), (table, in_log))
        if "=" in name_of(folder):
            search.partitions[folder] = search.rules_of(folder, table)
        for name in names:
            path = tree.join(folder, name)
            if search.words is not None:
                search.names.append(path)
            if path not in search.listed:
                yield _Candidate(path, name, table, in_log)


def _log_folders(tables: TableListing) -> Iterator[str]:
    for folder in tables.folders:
        yield from (join(folder, log) for log in _LOGS)
    for table in tables.tables:
        for location in table.locations:
            yield join(location, _METADATA)
