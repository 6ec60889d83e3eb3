"""Read the findings of an earlier report, so that only new findings make an audit fail.

secure-bloom audit lake --policy FILE --json > last.json secure-bloom audit lake --policy FILE
--baseline last.json

Paths are compared as places: another spelling of the same file is the same file.
"""

from __future__ import annotations

import functools
import os
from os import PathLike
from pathlib import Path
from typing import Any, Final, TypeAlias

from secure_bloom.auditing.findings import Finding
from secure_bloom.auditing.rules.key_rules import COLUMN_WRONG_KEY, FOOTER_WRONG_KEY, KEY_RETIRED
from secure_bloom.calling.close_names import near_file
from secure_bloom.errors import PolicyError, SecureBloomError, located, refused_by_system
from secure_bloom.running.bounded_documents import parsed_json, read_bounded
from secure_bloom.storage.paths import is_object_uri, join, local_path, object_uri

#: A finding by its id, place, row group, column and table of the policy, and one about none of
#: them by its message. The wording of others may change with a version.
KnownFinding: TypeAlias = tuple[str | int | None, ...]
#: Findings that are others if another key is found. Only their messages name it.
_BY_KEY: Final = frozenset(it.id for it in (COLUMN_WRONG_KEY, FOOTER_WRONG_KEY, KEY_RETIRED))
_NAME = "the baseline"


def known_finding(finding: Finding) -> KnownFinding:
    """Return the fields by which a finding is recognised in another report."""
    return _known(finding.to_dict())


def _place(path: str | None) -> str | None:
    """Return one spelling for all spellings of a path. A relative path begins in this folder."""
    if path is None:
        return None
    try:
        if is_object_uri(path):
            uri = object_uri(path)
            return join(uri.store(), uri.key)
        folder, name = os.path.split(local_path(path))
        return f"{_real_folder(folder)}/{name}"
    except (SecureBloomError, ValueError):
        # The address of a catalog, or no path at all.
        return path


@functools.lru_cache(maxsize=1024)
def _real_folder(folder: str) -> str:
    return os.path.realpath(folder)


def known_findings(path: str | PathLike[str]) -> frozenset[KnownFinding]:
    """Return the findings in a report of ``audit --json``, including ignored ones.

    Raises PolicyError for any other file.
    """
    with located(path=os.fspath(path)):
        try:
            with Path(path).open("rb") as file:
                document = parsed_json(read_bounded(file, _NAME), _NAME)
        except OSError as exc:
            hint = near_file(Path(path)) if isinstance(exc, FileNotFoundError) else None
            message = f"the baseline cannot be read: {exc.strerror}"
            raise refused_by_system(exc, message, hint=hint) from exc
        except (ValueError, RecursionError):
            document = None
        if not isinstance(document, dict) or not isinstance(document.get("findings"), list):
            raise PolicyError(
                "the baseline is not a report of an audit",
                hint="make it with: secure-bloom audit PATH --policy FILE --json",
            )
        every = [*document["findings"], *document.get("ignored", ())]
        return frozenset(map(_known, every))


def _known(entry: Any) -> KnownFinding:
    if not isinstance(entry, dict):
        raise PolicyError("the baseline is not a report of an audit: a finding is not an object")
    found = [entry.get(word) for word in ("id", "path", "row_group", "column", "table", "message")]
    if not all(isinstance(it, str | int | None) for it in found):
        raise PolicyError("the baseline is not a report of an audit: a finding has other fields")
    name, path, row_group, column, table, message = found
    is_placed = (path is not None or column is not None) and name not in _BY_KEY
    # A message begins with the path, as it was spelled.
    what = None if is_placed or message is None else str(message).removeprefix(f"{path}: ")
    return name, _place(path), row_group, column, table, what
