"""The versions of a table that a run made, as a terminal shows them."""

from __future__ import annotations

from typing import TYPE_CHECKING

from secure_bloom.cli.terminal import tell
from secure_bloom.text import counted, human_bytes

if TYPE_CHECKING:
    from collections.abc import Iterable

    from secure_bloom.adding.report import TableCommit


def print_commits(commits: Iterable[TableCommit], *, dry_run: bool) -> None:
    """A line for each commit."""
    for commit in commits:
        removed, added = commit.metrics["numRemovedBytes"], commit.metrics["numAddedBytes"]
        restated = int(commit.metrics.get("numUpdatedStatistics", 0))
        tell(
            f"{'would be ' if dry_run else 'committed '}version {commit.version}: "
            f"{commit.operation}, {counted(len(commit.files), 'file')} replaced, "
            f"{human_bytes(int(removed))} by {human_bytes(int(added))}"
            + (f", bounds of {counted(restated, 'other file')} dropped" if restated else "")
        )
