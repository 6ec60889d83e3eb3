"""Check what the log of a table shows: bounds, values of partitions, conditions, defaults.

Logs are in clear, and their writers do not know about the files' encryption.  Everything in a log
counts, including older versions, because anyone can read it until the log is cleaned up.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import suppress
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from secure_bloom.auditing.failures import guarded
from secure_bloom.auditing.findings import Finding
from secure_bloom.auditing.naming import secret_named
from secure_bloom.auditing.rules.key_rules import COLUMN_DERIVED, TABLE_KEY_IGNORED
from secure_bloom.auditing.rules.leak_rules import (
    DELTA_LOG_FIX,
    ICEBERG_DEFAULT_FIX,
    ICEBERG_EXPIRY,
    ICEBERG_LOG_FIX,
    ICEBERG_SKETCH_FIX,
    PAIMON_DEFAULT_FIX,
    PAIMON_LOG_FIX,
    PAIMON_STATISTICS_FIX,
    PARTITION_IN_CLEAR,
    TABLE_LOG_IN_CLEAR,
)
from secure_bloom.calling.options import FooterMode
from secure_bloom.encryption.policy import KeyPolicy
from secure_bloom.errors import SecureBloomError, located
from secure_bloom.lakes import Snapshot, TableListing
from secure_bloom.lakes.delta.actions import PHYSICAL_NAME, Action
from secure_bloom.lakes.delta.history import actions_in, log_paths, stray_actions, texts_of
from secure_bloom.lakes.delta.log_bounds import (
    bounded_columns,
    fields_inside,
    named_path,
    stored_path,
)
from secure_bloom.lakes.formats import DELTA, ICEBERG, PAIMON
from secure_bloom.lakes.table_format import TableFormat
from secure_bloom.parquet.footer.locate import read_tail
from secure_bloom.predicates.from_text import from_text
from secure_bloom.predicates.tree import leaves
from secure_bloom.reports.text import counted
from secure_bloom.running.bounded_documents import parsed_json
from secure_bloom.running.memory_budget import DecodedBytes, json_size
from secure_bloom.storage import open_input

if TYPE_CHECKING:
    from secure_bloom.lakes.iceberg.table import IcebergTable
    from secure_bloom.lakes.paimon.table import PaimonTable

#: What Spark writes after the name of a column: ``email#12``.
_NUMBER = re.compile(r"(?<=\w)#\d+L?")
#: A word in a condition, and what a literal begins with.
_WORD = re.compile(r"`([^`]+)`|([^\W\d][\w.]*)")
#: Names of types in a condition, which are no columns: ``date '...'``, ``cast(... as date)``.
_TYPE = re.compile(r"\b[^\W\d]\w*+(?=\s*'')|(?:\bas\s+|::\s*)[^\W\d]\w*", re.IGNORECASE)
#: Words of SQL that a column is called by in backticks alone.
_RESERVED = frozenset({"and", "between", "cast", "in", "is", "like", "not", "null", "or"})
_QUOTED = re.compile(r"'(?:[^'\\]|\\.|'')*'", re.DOTALL)
_DEFAULT = "the column's default value"
_SKETCH = "hashes of the column's values, in a statistics file: anyone can ask for a value"
_OLD = "entries of older versions in the log show"
#: What the path of a column in a text takes in memory, beside its letters.
_PATH_BYTES = 200
_LITERAL = re.compile(r"['\"]|=\s*-?\d|[<>]\s*-?\d")


def check_stray_log(path: str, policy: KeyPolicy) -> list[Finding]:
    """Yield findings for a file that looks like a part of a log but belongs to no table's log."""
    shown = _Shown(policy)
    # A file of any kind: only what was understood of it counts.
    with suppress(SecureBloomError):
        shown.take_actions(stray_actions(path))
    return list(shown.findings(path))


def check_table_logs(tables: TableListing, policy: KeyPolicy) -> Iterator[Finding]:
    """Yield one finding for each table, sensitive column, and kind of what the log shows of it."""
    for table in tables.tables:
        check = _CHECKS.get(table.format)
        if check is not None:
            yield from check(table.state, policy.rules_at(table.named or table.place))


def _delta_log(table: Snapshot, policy: KeyPolicy) -> Iterator[Finding]:
    shown = _Shown(policy, table)
    for path in log_paths(table.folder):
        yield from guarded(shown.take(path))
    yield from shown.findings(table.folder)


def _iceberg_metadata(table: IcebergTable, policy: KeyPolicy) -> Iterator[Finding]:
    yield from _bounds(table.path, table.files_with_bounds, policy, ICEBERG_LOG_FIX)
    yield from _partitions(table.path, table.partition_columns, policy)
    yield from guarded(_old_metadata_of_iceberg(table, policy))


def _paimon_metadata(table: PaimonTable, policy: KeyPolicy) -> Iterator[Finding]:
    # Imported here: only if a Paimon table was read.
    from secure_bloom.auditing.checks.paimon_tables import (
        OtherNames,
        check_indexes,
        check_manifest_indexes,
        columns_with_defaults,
        shown_in_manifests,
    )

    partitions = table.schema.partition_keys if table.files else ()
    yield from _partitions(table.folder, partitions, policy)
    shown = shown_in_manifests(table)
    yield from _bounds(table.folder, shown.live, policy, PAIMON_LOG_FIX)
    yield from _bounds(table.folder, shown.old, policy, PAIMON_LOG_FIX, where=_OLD)
    yield from check_manifest_indexes(shown.indexed, policy, table.folder)
    defaults = columns_with_defaults(table)
    yield from _shown(table.folder, defaults, policy, _DEFAULT, PAIMON_DEFAULT_FIX)
    yield from guarded(_paimon_statistics(table, policy))
    names = OtherNames(table.folder)
    for file in table.files.values():
        yield from guarded(check_indexes(file, names, policy))


def _paimon_statistics(table: PaimonTable, policy: KeyPolicy) -> Iterator[Finding]:
    from secure_bloom.auditing.checks.paimon_tables import columns_with_statistics

    found = columns_with_statistics(table)
    what = "the column's smallest and largest values, in a file of statistics"
    yield from _shown(table.folder, found, policy, what, PAIMON_STATISTICS_FIX)


#: What is checked of a table's log, by its format.
_CHECKS: Mapping[TableFormat, Callable[[Any, KeyPolicy], Iterator[Finding]]] = {
    DELTA: _delta_log,
    ICEBERG: _iceberg_metadata,
    PAIMON: _paimon_metadata,
}


def check_table_keys(tables: TableListing) -> Iterator[Finding]:
    """Yield a finding for each table that names a key and has a data file without encryption."""
    for table in tables.tables:
        if table.format is ICEBERG and table.state.key_id is not None:
            clear = next(filter(_is_in_clear, table.files), None)
            if clear is not None:
                what = "the table's encryption.key-id is ignored: a live data file is in clear"
                yield TABLE_KEY_IGNORED.finding(what, path=clear)


def _is_in_clear(path: str) -> bool:
    with located(path=path), open_input(path) as file:
        return read_tail(file).mode is FooterMode.PLAINTEXT


def _old_metadata_of_iceberg(table: IcebergTable, policy: KeyPolicy) -> Iterator[Finding]:
    # Imported here: only if an Iceberg table was read.
    from secure_bloom.lakes.iceberg.old_metadata import old_metadata

    old = old_metadata(table)
    yield from _bounds(table.path, old.bounds, policy, ICEBERG_EXPIRY, where=_OLD)
    yield from _partitions(table.path, old.partitions.difference(table.partition_columns), policy)
    yield from _shown(table.path, old.defaults, policy, _DEFAULT, ICEBERG_DEFAULT_FIX)
    yield from _shown(table.path, old.sketches, policy, _SKETCH, ICEBERG_SKETCH_FIX)


class _Shown:
    """What the log of one Delta table, or a stray part of a log, shows of sensitive columns."""

    def __init__(self, policy: KeyPolicy, table: Snapshot | None = None) -> None:
        self._policy = policy
        self._live = set() if table is None else {it.add.get("path") for it in table.files}
        #: The schemas of all versions: a column keeps its name in the log when it gets another.
        self._schemas = [] if table is None else [table.metadata.schema]
        self._kept = DecodedBytes("the schemas of the log")
        has_files = table is not None and table.files
        self._partitions = set(table.metadata.partition_columns if table and has_files else ())
        #: For each column, as the log calls it, the files with bounds, by their names there.
        self._bounds: defaultdict[tuple[str, ...], set[str]] = defaultdict(set)
        #: The paths that texts with values name, as each version calls them, and the text's kind.
        self._texts: dict[tuple[tuple[str, ...], str], None] = {}
        #: Columns in clear that the table computes, and the paths that they are computed from.
        self._derived: dict[tuple[str, tuple[str, ...]], None] = {}

    def take(self, path: str) -> Iterator[Finding]:
        """Read all actions in one file of the log."""
        with located(path=path):
            self.take_actions(actions_in(path))
        yield from ()

    def take_actions(self, actions: Iterable[Action]) -> None:
        """Record what actions show."""
        for action in actions:
            for name in ("add", "remove", "cdc"):
                fields = action.get(name)
                if isinstance(fields, dict):
                    self._take_file(fields)
            self._take_texts(action)
            self._take_schema(action)

    def findings(self, folder: str) -> Iterator[Finding]:
        """Yield a finding for each column and kind. No value is quoted."""
        policy = self._policy
        partitions = {name for stored in self._partitions for name in self._named((stored,))}
        yield from _partitions(folder, sorted(partitions), policy)
        bounds: defaultdict[str, set[str]] = defaultdict(set)
        for path, files in self._bounds.items():
            for name in self._named(path):
                bounds[name] |= files
        live = {name: len(found & self._live) for name, found in bounds.items()}
        old = {name: len(found - self._live) for name, found in bounds.items()}
        yield from _bounds(folder, live, policy, DELTA_LOG_FIX)
        yield from _bounds(folder, old, policy, DELTA_LOG_FIX, where=_OLD)
        texts = ((self._secret(it), kind) for it, kind in self._texts)
        for column, kind in dict.fromkeys(texts):
            if column is not None:
                what = f"the log shows values of the column in {kind}"
                found = TABLE_LOG_IN_CLEAR.finding(what, path=folder, column=column)
                yield replace(found, fix=DELTA_LOG_FIX)
        derived = ((name, self._secret(it)) for name, it in self._derived)
        for name, source in dict.fromkeys(derived):
            if source is not None:
                what = f"the table computes it from {source}, and the policy gives it no key"
                yield COLUMN_DERIVED.finding(what, path=folder, column=name)

    def _take_file(self, fields: Mapping[str, Any]) -> None:
        for name in ("partitionValues", "partitionValues_parsed"):
            values = fields.get(name)
            if isinstance(values, dict):
                self._partitions.update(name for name, it in values.items() if it is not None)
        for path in bounded_columns(fields, {}):
            self._bounds[path].add(str(fields.get("path")))

    def _named(self, path: tuple[str, ...]) -> set[str]:
        """Return the names that a column of the log has, or had in any version of the table."""
        return {".".join(path), *(".".join(named_path(path, it)) for it in self._schemas)}

    def _secret(self, path: tuple[str, ...]) -> str | None:
        """Return the sensitive column that a text calls by a path, in any version of the table."""
        # A condition may have the name of the table before that of the column.
        for place in range(len(path)):
            stored = {stored_path(path[place:], it) for it in self._schemas}
            names = [path[place:]] + [named_path(one, it) for one in stored for it in self._schemas]
            found = (secret_named(name, self._policy) for name in dict.fromkeys(names))
            column = min(filter(None, found), default=None)
            if column is not None:
                return column
        return None

    def _take_texts(self, action: Action) -> None:
        for kind, text in texts_of(action):
            if _LITERAL.search(text):
                for path in _condition_columns(text):
                    self._take_text(tuple(path), kind)

    def _take_text(self, path: tuple[str, ...], kind: str) -> None:
        if (path, kind) not in self._texts:
            self._kept.add(_PATH_BYTES + sum(map(len, path)))
            self._texts[path, kind] = None

    def _take_schema(self, action: Action) -> None:
        metadata = action.get("metaData")
        text = metadata.get("schemaString") if isinstance(metadata, dict) else None
        try:
            schema = parsed_json(text, "a schema") if isinstance(text, str) else {}
        except (ValueError, RecursionError):
            return
        # Without physical names the log calls a column as the table does.
        is_mapped = isinstance(schema, dict) and PHYSICAL_NAME in str(text)
        if is_mapped and schema not in self._schemas:
            self._kept.add(json_size(str(text).encode()))
            self._schemas.append(schema)
        for path, said in fields_inside(schema):
            if said.keys() & _WITH_VALUES:
                self._take_text(path, "the column's default")
            name = ".".join(path)
            if secret_named(path, self._policy) is None and name not in self._policy.columns:
                for found in _WORD.finditer(str(said.get("delta.generationExpression") or "")):
                    source = found[1] or found[2]
                    self._kept.add(_PATH_BYTES + len(name) + len(source))
                    self._derived[name, tuple(source.split("."))] = None


def _condition_columns(text: str) -> Iterator[list[str]]:
    """Yield the paths in a condition that may be columns."""
    text = _NUMBER.sub("", text)
    try:
        # A condition of ``--where``, as commits of this program record it.
        yield from [list(it.path or it.column.split(".")) for it in leaves(from_text(text))]
        return
    except SecureBloomError:
        pass
    # Words inside a literal are no names; one in double quotes may be a name.
    for found in _WORD.finditer(_TYPE.sub("''", _QUOTED.sub("''", text))):
        if found[1] or found[2].lower() not in _RESERVED:
            yield (found[1] or found[2]).split(".")


#: Metadata of a column that quote values of it.
_WITH_VALUES = frozenset({"CURRENT_DEFAULT", "EXISTS_DEFAULT", "delta.generationExpression"})


def _partitions(path: str, columns: Any, policy: KeyPolicy) -> Iterator[Finding]:
    for column in columns:
        name = secret_named(column.split("."), policy)
        if name is not None:
            what = "the log shows the column's values, which partition the table"
            found = TABLE_LOG_IN_CLEAR.finding(what, path=path, column=name)
            yield replace(found, fix=PARTITION_IN_CLEAR.fix)


def _shown(
    path: str, columns: Iterable[str], policy: KeyPolicy, what: str, fix: str
) -> Iterator[Finding]:
    """Yield a finding for each sensitive column among ``columns``: the metadata shows ``what``."""
    for name in sorted({secret_named(it.split("."), policy) or "" for it in columns} - {""}):
        found = TABLE_LOG_IN_CLEAR.finding(f"the metadata show {what}", path=path, column=name)
        yield replace(found, fix=fix)


def _bounds(
    path: str,
    files: Mapping[str, int],
    policy: KeyPolicy,
    fix: str,
    *,
    where: str = "the log shows",
) -> Iterator[Finding]:
    for column, count in sorted(files.items()):
        name = secret_named(column.split("."), policy)
        if count and name is not None:
            what = f"{where} the column's smallest and largest values in {counted(count, 'file')}"
            own_fix = fix.replace(".NAME", f".{column}")
            yield replace(TABLE_LOG_IN_CLEAR.finding(what, path=path, column=name), fix=own_fix)
