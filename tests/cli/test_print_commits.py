"""What a terminal shows of the versions that a run made."""

from __future__ import annotations

import pytest

from secure_bloom.adding.report import ReplacedFile, TableCommit
from secure_bloom.cli.print_commits import print_commits

COMMIT = TableCommit(
    version=7,
    operation="REENCRYPT",
    metrics={
        "numAddedFiles": "1",
        "numRemovedFiles": "1",
        "numAddedBytes": "2048",
        "numRemovedBytes": "1024",
        "numUpdatedStatistics": "3",
    },
    files=(ReplacedFile(removed="a", added="b"),),
)


@pytest.mark.parametrize(("dry_run", "first"), [(False, "committed"), (True, "would be")])
def test_each_version_has_a_line(
    capsys: pytest.CaptureFixture[str], dry_run: bool, first: str
) -> None:
    print_commits([COMMIT], dry_run=dry_run)
    line = capsys.readouterr().out
    assert line.startswith(f"{first} version 7: REENCRYPT, 1 file replaced, ")
    assert "bounds of 3 other files dropped" in line
