"""What any run over a table takes, and what became of its files."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

import pytest

import secure_bloom as sb
from secure_bloom.adding.report import FileAddReport
from secure_bloom.errors import PolicyError, UnfinishedWriteError
from secure_bloom.lakes.delta import table_run as module
from secure_bloom.lakes.delta.log_commit import open_table
from secure_bloom.lakes.delta.replacements import Operation
from secure_bloom.lakes.delta.selection import TableSelection
from secure_bloom.lakes.delta.table_run import open_run
from secure_bloom.lakes.delta.writable import WritableDelta
from secure_bloom.lakes.writable_table import TableChoice
from secure_bloom.runs.target import DirectPublication, Publication
from secure_bloom.runs.work import FileTask, new_sizes
from testing import delta_logs as logs
from testing.delta_tables import data_files


def test_ways_of_writing_that_a_log_rules_out_are_refused(tmp_path: Path) -> None:
    logs.commit(tmp_path, 0, *logs.start())
    for choice in (TableChoice(in_place=True), TableChoice(output=True)):
        with pytest.raises(sb.UnsupportedFeatureError):
            WritableDelta(str(tmp_path), choice)
    WritableDelta(str(tmp_path), TableChoice())


def test_files_that_failed_are_told_from_those_that_stay() -> None:
    reports = [
        FileAddReport(path="a", status="added", bytes_before=1, bytes_after=2),
        FileAddReport(path="b", status="failed"),
        FileAddReport(path="c", status="unchanged", bytes_before=1, bytes_after=1),
    ]
    assert new_sizes(reports) == {"a": 2, "b": None}


def test_a_file_that_failed_because_others_took_it_away_is_gone(tmp_path: Path) -> None:
    columns = [logs.column("email", "string")]
    logs.commit(tmp_path, 0, *logs.start(*columns), *(logs.add(name) for name in "abc"))
    run = open_run(
        open_table(str(tmp_path)), Operation(name="TEST", parameters={}), TableSelection()
    )
    logs.commit(tmp_path, 1, logs.remove("a"))
    publication = DirectPublication((), gone=[str(tmp_path / "c")])
    failed = [FileAddReport(path=str(tmp_path / name), status="failed") for name in "ab"]
    assert run.gone(publication, failed) == {str(tmp_path / "a"), str(tmp_path / "c")}
    assert run.gone(publication, []) == {str(tmp_path / "c")}


OPERATION = Operation(name="TEST", parameters={})


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    logs.commit(tmp_path, 0, *logs.start(), *(logs.add(f"{i}.parquet", 4) for i in range(3)))
    for i in range(3):
        (tmp_path / f"{i}.parquet").write_text("data")
    return tmp_path


def write_all(tasks: Sequence[FileTask]) -> Mapping[str, int]:
    for task in tasks:
        assert task.target is not None
        Path(task.target).write_text("data, filters")
    return {task.path: 13 for task in tasks}


#: Writes the new files of some tasks, and returns their sizes.
Work = Callable[[Sequence[FileTask]], Mapping[str, int | None]]


def run(folder: Path, work: Work, commit_every: int | None = None) -> Publication:
    table = open_run(
        open_table(str(folder)), OPERATION, TableSelection(), commit_every=commit_every
    )
    with table.publishing(dry_run=False) as publication:
        for tasks in publication.batches():
            publication.publish(
                [
                    FileAddReport(
                        path=path, status="failed" if size is None else "added", bytes_after=size
                    )
                    for path, size in work(tasks).items()
                ]
            )
    return publication


def live(folder: Path) -> set[str]:
    return {Path(file.path).name for file in open_table(str(folder)).files}


OLD = {f"{i}.parquet" for i in range(3)}


def test_files_that_change_are_exchanged_and_others_stay(folder: Path) -> None:
    change = run(folder, lambda tasks: write_all(tasks[:2]))
    assert [commit.version for commit in change.commits] == [1]
    assert data_files(folder) == OLD | live(folder)
    assert "2.parquet" in live(folder)
    assert "1.parquet" not in live(folder)


def test_where_nothing_changes_there_is_no_commit(folder: Path) -> None:
    assert run(folder, lambda _: {}).commits == []
    assert data_files(folder) == OLD == live(folder)


@pytest.mark.parametrize("error", [PolicyError("no"), KeyboardInterrupt()])
def test_work_that_fails_leaves_no_new_file(folder: Path, error: BaseException) -> None:
    def work(tasks: Sequence[FileTask]) -> Mapping[str, int]:
        write_all(tasks[:1])
        raise error

    with pytest.raises(type(error)):
        run(folder, work)
    assert data_files(folder) == OLD == live(folder)
    run(folder, write_all)
    assert data_files(folder) == OLD | live(folder)


def commit_that_raises(error: Exception) -> Callable[..., None]:
    def commit(*_: object) -> None:
        raise error

    return commit


def test_a_commit_that_fails_leaves_no_new_file(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "commit", commit_that_raises(PolicyError("the disk is full")))
    with pytest.raises(PolicyError):
        run(folder, write_all)
    assert data_files(folder) == OLD


def test_a_commit_that_may_be_there_leaves_all_files(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "commit", commit_that_raises(UnfinishedWriteError("who knows")))
    with pytest.raises(UnfinishedWriteError):
        run(folder, write_all)
    assert len(data_files(folder)) == 7  # with the record, by which the next run finds the truth


def test_what_was_written_for_a_file_that_is_gone_is_removed(folder: Path) -> None:
    def work(tasks: Sequence[FileTask]) -> Mapping[str, int]:
        sizes = write_all(tasks)
        logs.commit(folder, 1, logs.remove("1.parquet"))
        return sizes

    change = run(folder, work)
    assert change.gone == [str(folder / "1.parquet")]
    assert [commit.version for commit in change.commits] == [2]
    assert len(live(folder)) == 2
    assert data_files(folder) == OLD | live(folder)


def test_each_few_files_are_a_version(folder: Path) -> None:
    change = run(folder, write_all, commit_every=2)
    assert [commit.version for commit in change.commits] == [1, 2]
    assert data_files(folder) == OLD | live(folder)
