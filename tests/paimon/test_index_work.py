"""The work on one data file of a table: attempts at the same task, and what they leave."""

from __future__ import annotations

from pathlib import Path

import pytest

from secure_bloom.encryption.access import Access
from secure_bloom.errors import FileChangedError
from secure_bloom.paimon import IndexOptions
from secure_bloom.paimon.index_work import TableFile, TableWork, table_work
from secure_bloom.runs.work import FileTask


@pytest.fixture
def work() -> TableWork:
    access = Access.of(None, None, allow_unverified=False, allow_unprotected=False)
    return table_work(
        0,
        access,
        allow_clear_index=False,
        replace_damaged=False,
        replace_filters=False,
        dry_run=False,
        syncs_folders=True,
    )


@pytest.fixture
def task(data_file: Path) -> FileTask:
    target = f"{data_file}.sb-1.index"
    options = {"id": IndexOptions()}
    listed = TableFile(
        root=str(data_file.parent),
        target=target,
        options=options,
        stored={"id": "id"},
        names=None,
        size=data_file.stat().st_size,
    )
    return FileTask(str(data_file), target, listed)


def test_another_attempt_at_a_task_has_the_same_result(work: TableWork, task: FileTask) -> None:
    """Spark runs a task twice, and the first attempt may have written the index."""
    assert work.build(task) == work.build(task)


def test_another_file_in_the_place_of_an_index_is_an_error(work: TableWork, task: FileTask) -> None:
    Path(str(task.target)).write_bytes(b"of somebody else")
    with pytest.raises(FileChangedError):
        work.build(task)
    assert work.process(task, map).status == "failed"
