"""What every target has, and what people are shown of a commit."""

from __future__ import annotations

import pytest

from secure_bloom.errors import PolicyError
from secure_bloom.runs.target import (
    DirectPublication,
    ReplacedFile,
    TableCommit,
    check_commit_every,
)
from secure_bloom.runs.work import FileTask


@pytest.mark.parametrize(
    "metrics",
    [
        {"numRemovedBytes": "3", "numAddedBytes": "5"},
        {"removed-files-size": "3", "added-files-size": "5"},
    ],
)
def test_a_commit_of_any_format_has_its_sizes(metrics: dict[str, str]) -> None:
    files = (ReplacedFile(removed="a", added="b"),)
    commit = TableCommit(version=1, operation="x", metrics=metrics, files=files)
    assert (commit.bytes_removed, commit.bytes_added) == (3, 5)


def test_files_of_no_table_are_one_batch() -> None:
    tasks = [FileTask("a"), FileTask("b", "c")]
    publication = DirectPublication(tasks)
    assert list(publication.batches()) == [tasks]
    publication.publish([])
    assert publication.commits == ()


@pytest.mark.parametrize("number", [0, -1])
def test_a_commit_after_no_file_is_refused(number: int) -> None:
    with pytest.raises(PolicyError, match="commit_every"):
        check_commit_every(number)
