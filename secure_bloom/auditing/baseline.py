"""Read the findings of an earlier report, so that an audit fails by what is new alone.

secure-bloom audit lake --policy FILE --json > last.json
secure-bloom audit lake --policy FILE --baseline last.json
"""

from __future__ import annotations

import os
from os import PathLike
from pathlib import Path
from typing import Any, TypeAlias

from secure_bloom.auditing.findings import Finding
from secure_bloom.calling.close_names import near_file
from secure_bloom.errors import PolicyError, located, refused_by_system
from secure_bloom.running.bounded_documents import parsed_json, read_bounded

#: A finding by its id, path, row group and column. Its wording may change with a version.
KnownFinding: TypeAlias = tuple[str, str | None, int | None, str | None]
_NAME = "the baseline"


def known_finding(finding: Finding) -> KnownFinding:
    """Return what identifies a finding in another report."""
    return finding.id, finding.path, finding.row_group, finding.column


def known_findings(path: str | PathLike[str]) -> frozenset[KnownFinding]:
    """Return the findings of a report of ``audit --json``, those that were ignored too.

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
                "the baseline is no report of an audit",
                hint="make it with: secure-bloom audit PATH --policy FILE --json",
            )
        every = [*document["findings"], *document.get("ignored", ())]
        return frozenset(map(_known, every))


def _known(entry: Any) -> KnownFinding:
    if not isinstance(entry, dict):
        raise PolicyError("the baseline is no report of an audit: a finding is no object")
    found = tuple(entry.get(word) for word in ("id", "path", "row_group", "column"))
    if not all(isinstance(it, str | int | None) for it in found):
        raise PolicyError("the baseline is no report of an audit: a finding has other fields")
    return found  # type: ignore[return-value]
