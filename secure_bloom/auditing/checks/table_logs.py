"""Check of a Delta table's log: it is in clear, and shows what encrypted files hide.

PROTOCOL.md, "Per-file Statistics": each ``add`` action may hold the smallest and largest values of
a file's columns.  Whoever writes the log knows nothing of the files' encryption.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from secure_bloom.auditing.findings import Finding
from secure_bloom.auditing.rules.leak_rules import TABLE_LOG_IN_CLEAR
from secure_bloom.encryption.policy import KeyPolicy
from secure_bloom.errors import FormatError
from secure_bloom.tables import LiveFile, Snapshot
from secure_bloom.text import counted

_BOUNDS = ("minValues", "maxValues")
#: What statistics call a column, in both modes of column mapping.
_PHYSICAL_NAME = "delta.columnMapping.physicalName"
#: Structures are not nested so deeply; a hostile log would exhaust Python's stack.
_DEEPEST = 100


def check_table_logs(tables: Iterable[Snapshot], policy: KeyPolicy) -> Iterator[Finding]:
    """One finding for each table and sensitive column whose bounds its log shows."""
    for table in tables:
        shown: Counter[str] = Counter()
        for file in table.files:
            shown.update(_shown(file, table.metadata.schema, policy))
        for column, files in sorted(shown.items()):
            yield TABLE_LOG_IN_CLEAR.finding(
                "the log shows the column's smallest and largest values in "
                f"{counted(files, 'file')}",
                path=table.folder,
                column=column,
            )


def _shown(file: LiveFile, schema: Mapping[str, Any], policy: KeyPolicy) -> set[str]:
    """The sensitive columns of which the file's action has a bound."""
    statistics = _statistics(file)
    return {
        ".".join(path)
        for bounds in _BOUNDS
        for path in _leaves(statistics.get(bounds), schema, (), _DEEPEST)
        if policy.key_for(path) is not None
    }


def _statistics(file: LiveFile) -> Mapping[str, Any]:
    text = file.add.get("stats")
    if not text:
        return {}
    try:
        found = json.loads(text)
    except (ValueError, RecursionError):
        # Without the text: it may quote values.
        raise FormatError("the statistics of a file in the log are no JSON") from None
    return found if isinstance(found, dict) else {}


def _leaves(
    values: object, kind: object, above: tuple[str, ...], depth: int
) -> Iterator[tuple[str, ...]]:
    """The paths of the columns that have a bound, by the names that people use."""
    if not isinstance(values, dict) or depth == 0:
        return
    fields = _fields(kind)
    for stored, value in values.items():
        field = fields.get(stored, {})
        path = (*above, str(field.get("name", stored)))
        if isinstance(value, dict):
            yield from _leaves(value, field.get("type"), path, depth - 1)
        elif value is not None:
            yield path


def _fields(kind: object) -> Mapping[str, Mapping[str, Any]]:
    """The fields of a structure in the table's schema, by what statistics call them."""
    fields = kind.get("fields") if isinstance(kind, Mapping) else None
    named = [field for field in fields or () if isinstance(field, Mapping)]
    return {
        str((field.get("metadata") or {}).get(_PHYSICAL_NAME, field.get("name"))): field
        for field in named
    }
