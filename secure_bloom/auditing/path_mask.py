"""Mask the values of sensitive columns in paths, because more people see a report than the table.

    email=user1@example.com/x.parquet -> email=***1/x.parquet

Equal values get equal numbers, in the order of the files.
"""

from __future__ import annotations

from dataclasses import replace

from secure_bloom.auditing.findings import Finding
from secure_bloom.auditing.naming import secret_partition
from secure_bloom.encryption.policy import KeyPolicy


class PathMask:
    """Masks paths. The same path is always masked in the same way."""

    def __init__(self, policy: KeyPolicy) -> None:
        self._policy = policy
        self._numbers: dict[str, int] = {}

    def path(self, path: str) -> str:
        """Return the path with a number for each value."""
        return "/".join(map(self._part, path.split("/"))) if "=" in path else path

    def finding(self, finding: Finding) -> Finding:
        """Return the finding with its path masked."""
        if finding.path is None:
            return finding
        return replace(finding, path=self.path(finding.path))

    def _part(self, part: str) -> str:
        if secret_partition(part, self._policy) is None:
            return part
        number = self._numbers.setdefault(part, len(self._numbers) + 1)
        return f"{part.partition('=')[0]}=***{number}"
