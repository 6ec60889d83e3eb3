"""Name sensitive columns whatever their spelling, and mask their values in paths.

:class:`PathMask` masks the values of sensitive columns in paths, because more people see a report
than the table: ``email=user1@example.com/x.parquet`` -> ``email=***1/x.parquet``.  Equal values get
equal numbers, in the order of the files.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from urllib.parse import unquote

from secure_bloom.auditing.findings import Finding
from secure_bloom.encryption.policy import KeyPolicy

#: A longer name from a file is shortened.
_LONGEST = 100


def secret_named(path: Sequence[str], policy: KeyPolicy) -> str | None:
    """Return the sensitive column that a path means, in whatever spelling.

    Return None for another column.
    """
    if policy.own_key_for(tuple(path)) is not None:
        return ".".join(path)
    return policy.likeness.is_named(path)


def short(text: str) -> str:
    """Return a name from a file. If it is longer than any real name, its middle is left out."""
    return text if len(text) <= _LONGEST else f"{text[: _LONGEST - 30]}…{text[-29:]}"


def secret_partition(folder: str, policy: KeyPolicy) -> str | None:
    """Return the sensitive column whose value is in this folder's name, as the policy writes it."""
    name, equals, _ = folder.partition("=")
    if not equals:
        return None
    return secret_named((unquote(name),), policy)


class PathMask:
    """Masks paths. The same path is always masked in the same way.

    ``holds_value`` returns whether the name of a file or folder holds a value of a column.
    """

    def __init__(
        self, policy: KeyPolicy, holds_value: Callable[[str], bool] = lambda _: False
    ) -> None:
        self._policy = policy
        self._holds_value = holds_value
        self._numbers: dict[str, int] = {}
        self._masked: dict[str, str] = {}

    def path(self, path: str) -> str:
        """Return the path with a number for each value."""
        return "/".join(map(self._part, path.split("/")))

    def finding(self, finding: Finding) -> Finding:
        """Return the finding with its path masked."""
        if finding.path is None:
            return finding
        return replace(finding, path=self.path(finding.path))

    def _part(self, part: str) -> str:
        # Paths have most of their parts in common.
        if part not in self._masked:
            self._masked[part] = self._shown(part)
        return self._masked[part]

    def _shown(self, part: str) -> str:
        is_partition = "=" in part and secret_partition(part, self._policy) is not None
        if not is_partition and not self._holds_value(part):
            return part
        number = self._numbers.setdefault(part, len(self._numbers) + 1)
        return f"{part.partition('=')[0]}=***{number}" if is_partition else f"***{number}"
