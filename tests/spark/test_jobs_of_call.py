"""Ctrl-C, or any error, in a session that lives on: nothing is written after the call has ended."""

from __future__ import annotations

import os
import signal
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from secure_bloom.errors import DriverLostError
from secure_bloom.runs.work import FileTask
from secure_bloom.spark import add_bloom_filters, file_task, job_files, jobs_of_call
from testing.delta_tables import batch, data_files, deltalake
from tests.storage.test_write_permit import content

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = pytest.mark.spark

FILES = 80


def slow_process(task: FileTask, **options: Any) -> object:
    time.sleep(0.1)
    return file_task.process(task, **options)


@pytest.fixture(autouse=True)
def _slow(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.setattr(file_task, "process", slow_process)
    # As in a notebook, where it is not PySpark that handles the signal.
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)


def files(folder: Path) -> Path:
    folder.mkdir()
    for number in range(FILES):
        pq.write_table(pa.table({"id": range(10)}), folder / f"{number:02}.parquet")
    return folder


def interrupted_when(begun: Callable[[], bool]) -> threading.Thread:
    def interrupt() -> None:
        deadline = time.monotonic() + 60
        while not begun() and time.monotonic() < deadline:
            time.sleep(0.01)
        os.kill(os.getpid(), signal.SIGINT)

    thread = threading.Thread(target=interrupt)
    thread.start()
    return thread


def is_idle(spark: SparkSession) -> bool:
    return not spark.sparkContext.statusTracker().getActiveJobsIds()


def test_after_ctrl_c_no_file_is_written(spark: SparkSession, tmp_path: Path) -> None:
    table = files(tmp_path / "t")
    before = content(table)
    thread = interrupted_when(
        lambda: any(Path(p).stat().st_size != len(b) for p, b in before.items())
    )
    with pytest.raises(KeyboardInterrupt):
        add_bloom_filters(spark, table, columns=["id"])
    after = content(table)
    assert is_idle(spark)
    thread.join()
    time.sleep(3)
    assert content(table) == after
    assert after.keys() == before.keys()
    assert 0 < sum(after[path] != before[path] for path in before) < FILES


def test_a_second_ctrl_c_does_not_leave_the_work_to_the_executors(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It comes while the call waits for the tasks that it has cancelled."""
    table = files(tmp_path / "t")
    before = content(table)
    thread = interrupted_when(
        lambda: any(Path(p).stat().st_size != len(b) for p, b in before.items())
    )
    cancel = jobs_of_call._cancel

    def again(*args: Any, **options: Any) -> None:
        os.kill(os.getpid(), signal.SIGINT)
        time.sleep(0.1)
        cancel(*args, **options)

    monkeypatch.setattr(jobs_of_call, "_cancel", again)
    with pytest.raises(KeyboardInterrupt):
        add_bloom_filters(spark, table, columns=["id"])
    thread.join()
    assert is_idle(spark)
    # The session lives on.
    monkeypatch.undo()
    assert spark.range(3).count() == 3


@pytest.mark.parametrize("few", [256, 0])
def test_a_permit_that_another_program_removes_ends_the_call_with_one_sentence(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, few: int
) -> None:
    """As a job does that overwrites the folder meanwhile."""
    table = files(tmp_path / "t")

    def removing(task: FileTask, **options: Any) -> object:
        for permit in Path(task.path).parent.glob(".call-*"):
            permit.unlink(missing_ok=True)
        return file_task.process(task, **options)

    monkeypatch.setattr(file_task, "process", removing)
    monkeypatch.setattr(job_files, "_FEW", few)
    before = content(table)
    with pytest.raises(DriverLostError, match="another program removed the file") as caught:
        add_bloom_filters(spark, table, columns=["id"])
    assert len(str(caught.value)) < 300
    assert content(table) == before


def test_an_error_of_the_callers_own_code_ends_the_work(
    spark: SparkSession, tmp_path: Path
) -> None:
    table = files(tmp_path / "t")
    before = content(table)
    calls: list[int] = []

    def progress(done: int, _total: int) -> None:
        calls.append(done)
        raise RuntimeError("of the caller")

    with pytest.raises(RuntimeError, match="of the caller"):
        add_bloom_filters(spark, table, columns=["id"], progress=progress)
    assert is_idle(spark)
    time.sleep(1)
    assert content(table) == before


def test_after_ctrl_c_a_table_has_no_orphans(spark: SparkSession, tmp_path: Path) -> None:
    table = str(tmp_path / "t")
    for number in range(20):
        deltalake.write_deltalake(table, batch(6 * number), mode="append")
    live = data_files(table)
    thread = interrupted_when(lambda: any(".sb-" in p.name for p in Path(table).iterdir()))
    with pytest.raises(KeyboardInterrupt):
        add_bloom_filters(spark, table, columns=["id"])
    thread.join()
    time.sleep(3)
    assert is_idle(spark)
    assert {str(path.name) for path in Path(table).iterdir() if path.is_file()} == {
        Path(path).name for path in live
    }
