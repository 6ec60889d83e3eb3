"""Turn the fix of a finding into commands that run: each names the table that the finding is about.

    targets = Targets(plan.tables, plan.given, refused)
    targets.fix_of(finding, policy="policy.toml")

A lake may have tables of several formats, and a command cannot mix a table with a log with other
files. So a command names the table of the file, or, for plain files, the highest folder that holds
no table with a log. Where no command of this package can write, the fix says what can.
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Collection, Iterable, Sequence
from dataclasses import dataclass
from itertools import accumulate

from secure_bloom.auditing.findings import Finding
from secure_bloom.auditing.rules.key_rules import KEYS_IN_LAKE
from secure_bloom.auditing.rules.leak_rules import (
    ICEBERG_CALLS,
    PAIMON_INDEX_FIX,
    PAIMON_INDEX_IN_CLEAR,
)
from secure_bloom.encryption.policy import KeyPolicy
from secure_bloom.encryption.table_patterns import is_catalog_address
from secure_bloom.lakes import TableListing
from secure_bloom.lakes.formats import PAIMON
from secure_bloom.lakes.table_format import ListedTable, TableFormat
from secure_bloom.reports.text import legible, shell_word
from secure_bloom.storage import below, is_object_uri, join, local_path

#: A command in the fix of a rule, for the table of the finding.
_COMMAND = re.compile(r"`secure-bloom (?P<verb>\w+) PATH(?P<rest>[^`]*)`")
#: Findings that are about all tables.
_OF_ALL = frozenset({KEYS_IN_LAKE.id})
_PATTERN = re.compile(r"[*?\[]")


@dataclass(frozen=True, slots=True)
class NamedPlace:
    """The path that a command names, and the format of the table there, None for plain files."""

    path: str
    format: TableFormat | None = None


#: The fix of files of an older version: a command would change those of the current one.
_OLDER_VERSION = (
    "audit the current version, without an option for a version; once it is clean and no reader "
    "needs older ones, let the table's engine remove their files (Delta: VACUUM; Paimon: CALL "
    f"sys.expire_snapshots; Iceberg, by {ICEBERG_CALLS})"
)
#: Columns that a fix names.
_MOST_NAMED = 5
#: The verbs of fixes that write files.
_REKEYING = frozenset({"reencrypt", "rotate"})
_WRITING = _REKEYING | {"add"}


class Targets:
    """The tables of an audit, and the columns of each place that commands name.

    ``given`` are the paths of the audit. ``refused`` are the places of tables that it cannot
    read. If the policy names ``unknown_keys``, which the KMS lacks, fixes contain no command that
    needs them.
    """

    def __init__(
        self,
        tables: TableListing,
        given: Sequence[str],
        refused: Iterable[str],
        unknown_keys: Sequence[str] = (),
        *,
        is_latest: bool = True,
    ) -> None:
        #: Hides the values of sensitive columns in the paths of commands.
        self.mask: Callable[[str], str] = str
        self._tables = tables.logs
        self._unknown_keys = unknown_keys
        self._is_latest = is_latest
        # A table of a catalog has no plain files.
        paths = (local_path(path) for path in given if not is_catalog_address(path))
        self._given = [(path, _place(path)) for path in paths]
        self._places = [
            (_place(place), it) for it in self._tables for place in (it.place, *it.locations)
        ]
        self._managed = [*(place for place, _ in self._places), *map(_place, refused)]
        self._found: dict[str, NamedPlace] = {}
        #: The names of the columns of each target, and of all structures that they are in.
        self._columns: dict[NamedPlace, set[str]] = {}
        #: The columns in clear of each target that are named like sensitive ones.
        self._alike: dict[NamedPlace, set[str]] = {}
        self._lacking: dict[NamedPlace, bool] = {}

    def add_columns(self, path: str, columns: Collection[str]) -> None:
        """Add the columns of one data file to the columns of its target."""
        target = self.of(path)
        if target is not None:
            known = self._columns.setdefault(target, set())
            # The files of a table have the same columns.
            for name in () if known.issuperset(columns) else columns:
                known.update(accumulate(name.split("."), "{}.{}".format))

    def add_alike(self, finding: Finding) -> None:
        """Add a column that is named like a sensitive one. No file that has it gets other keys."""
        target = self.of(finding.path or "")
        if target is not None and finding.column is not None:
            self._alike.setdefault(target, set()).add(finding.column)

    def of(self, path: str) -> NamedPlace | None:
        """Return the place that a command names for the file or table at ``path``, or None."""
        if path not in self._found:
            table = self.table_at(path)
            found = self._plain(path) if table is None else _named(table)
            if found is None:
                return None
            self._found[path] = found
        return self._found[path]

    def fix_of(self, finding: Finding, policy: KeyPolicy, policy_path: str | None) -> str:
        """Return the finding's fix, with a command for each table that it is for."""

        def commands(match: re.Match[str]) -> str:
            own = None if finding.path is None else self.of(finding.path)
            every = own is None or finding.id in _OF_ALL
            targets = list(self._columns) if every else [own]
            said = [
                self._command(match, it, finding.column, policy.for_paths([it.path]), policy_path)
                for it in targets
                if it is not None
            ]
            return "; ".join(dict.fromkeys(said)) or match[0]

        table = None if finding.path is None else self.table_at(finding.path)
        if finding.id == PAIMON_INDEX_IN_CLEAR.id and table and table.format is PAIMON:
            # A manifest has the index, or names its file: without it Paimon could not read on.
            return PAIMON_INDEX_FIX
        if not self._is_latest and table is not None and _COMMAND.search(finding.fix):
            return _OLDER_VERSION
        fix, count = _COMMAND.subn(commands, finding.fix)
        if count and self._unknown_keys:
            keys = ", ".join(map(legible, self._unknown_keys))
            return f"policy first: the KMS has no master key {keys}; then {fix}"
        return fix

    def table_at(self, path: str) -> ListedTable | None:
        """Return the innermost table with a log to which a path belongs."""
        if not self._places:
            return None
        at = _place(path)
        found = [
            (len(place), table)
            for place, table in self._places
            if _holds(place, at) or path in table.files
        ]
        return max(found, key=lambda it: it[0])[1] if found else None

    def _command(
        self,
        match: re.Match[str],
        target: NamedPlace,
        column: str | None,
        policy: KeyPolicy,
        policy_path: str | None,
    ) -> str:
        verb, rest = match["verb"], match["rest"]
        form = target.format
        if verb in _WRITING and form is not None and not form.takes_verb(verb, target.path):
            if verb == "add" and form is PAIMON and column is not None:
                return self._paimon_index(target, column, policy)
            return form.rewritten_by.format(verb=verb)
        # A policy that was made in Python has no file, so the command is a sketch all the same.
        if policy_path is not None:
            if verb == "rotate" and column and policy.key_for(column.split(".")) is None:
                return "give the column a key in the policy, then rotate the keys of the table"
            rest = rest.replace("--policy FILE", f"--policy {shell_word(policy_path)}")
            if verb == "add" and column and not _has_filter(policy, column):
                rest += f" --column {shell_word(column)}"
            if verb in _REKEYING and target not in self._lacking:
                # Once: each column may have a finding.
                self._lacking[target] = self._lacks_a_column(target, policy)
            if verb in _REKEYING and self._lacking[target]:
                # `rotate` takes no file that lacks a column of the policy.
                verb, rest = "reencrypt", f"{rest} --allow-missing-columns"
        # A name that begins with a minus would be an option.
        path = self.mask(target.path)
        if path != target.path:
            return f"run {verb} on the files: the name of their folder shows a value"
        path = f"./{path}" if path.startswith("-") else path
        command = f"`secure-bloom {verb} {shell_word(path)}{rest}`"
        if verb in _REKEYING and target in self._alike:
            alike = ", ".join(map(legible, sorted(self._alike[target])[:_MOST_NAMED]))
            return f"policy first: name {alike}, which is like a sensitive column; then {command}"
        return command

    def _paimon_index(self, target: NamedPlace, column: str, policy: KeyPolicy) -> str:
        """Return what gives a column of a Paimon table a filter: an index, which is in clear."""
        if policy.key_for(column.split(".")) is not None:
            return (
                "Paimon asks an index of its own alone, which is in clear: take bloom out of the "
                "rule of this column"
            )
        path = shell_word(self.mask(target.path))
        return f"`secure-bloom paimon build {path} --column {shell_word(column)}`"

    def _lacks_a_column(self, target: NamedPlace, policy: KeyPolicy) -> bool:
        """Return whether a target may lack a column to which the policy gives a key."""
        # Each file below a folder of several tables has the rules of its own.
        if policy.tables:
            return False
        known = self._columns.get(target, set())
        alike = [tuple(it.split(".")) for it in self._alike.get(target, ())]
        # Misspelt in the policy: once it is corrected, no column is missing.
        misspelt = policy.likeness.lookalikes(alike, [tuple(it.split(".")) for it in known])
        sensitive = [
            name
            for name, rule in policy.columns.items()
            if rule.key is not None and name not in (*policy.shared, *misspelt.values())
        ]
        table = next((it for it in self._tables if _named(it) == target), None)
        lacks = None if table is None else table.format.lacks_a_column(table.state, sensitive)
        if lacks is not None:
            return lacks
        return not known.issuperset(sensitive)

    def _plain(self, path: str) -> NamedPlace | None:
        at = _place(path)
        root, top = next((it for it in self._given if _holds(it[1], at)), (None, at))
        if root is None:
            patterns = [it for it, _ in self._given if _PATTERN.search(it)]
            whole = len(patterns) == len(self._given) == 1 and not self._managed
            return NamedPlace(patterns[0] if whole else path)
        # From the given path down: the first one that no table with a log is in.
        step = root
        for part in (None, *(below(at, top) or "").split("/")):
            step = step if not part else join(step, part)
            if not any(_holds(_place(step), it) for it in self._managed):
                return NamedPlace(step)
        return None


def _place(path: str) -> str:
    """Return a form of a path by which places are compared."""
    return path.rstrip("/") if is_object_uri(path) else os.path.realpath(path)


def _holds(folder: str, place: str) -> bool:
    return place == folder or below(place, folder) is not None


def _has_filter(policy: KeyPolicy, column: str) -> bool:
    return any(column == it or column.startswith(f"{it}.") for it in policy.bloom_columns())


def _named(table: ListedTable) -> NamedPlace:
    return NamedPlace(table.named or table.place, table.format)
