"""No attempt at a task writes after its call has ended, on a cluster with stopped executors."""

from __future__ import annotations

import hashlib
import os
import shutil
import signal
import time
from collections.abc import Callable
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any
from unittest import mock

import pyarrow.parquet as pq
import pytest

import secure_bloom as sb
from secure_bloom.runs.work import FileTask
from secure_bloom.spark import (
    add_bloom_filters,
    file_task,
    job_reports,
    reencrypt,
    rotate_keys,
)
from testing.spark.cluster import POLICY, Cluster
from testing.tables import customers

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

pytestmark = pytest.mark.spark

FILES = 40
#: Files that a task has done before its process is stopped.
BEGUN = 5
_TEXT = """
[kms]
client = "keyring"
keyring = "{keyring}"
[footer]
key = "k_footer"
[columns.email]
key = "{key}"
"""


def policy(folder: Path, key: str) -> Path:
    path = folder / f"{key}.toml"
    path.write_text(_TEXT.format(keyring=POLICY.parent / "dev-keyring.json", key=key))
    return path


@pytest.fixture
def lake(tmp_path: Path) -> Path:
    """Many encrypted files, and two policies beside them."""
    lake = tmp_path / "lake"
    lake.mkdir()
    pq.write_table(customers(500), lake / "0.parquet")
    for key in ("k_pii", "k_finance"):
        policy(tmp_path, key)
    assert not sb.reencrypt(lake, policy=tmp_path / "k_pii.toml").failed
    for number in range(1, FILES):
        shutil.copy(lake / "0.parquet", lake / f"{number}.parquet")
    shutil.copytree(lake, tmp_path / "anew")
    return lake


# The rest of this file runs in the driver of the cluster.


def snapshot(folder: Path) -> dict[str, str]:
    return {
        str(path.relative_to(folder)): hashlib.sha256(path.read_bytes()).hexdigest()
        for path in folder.rglob("*")
        if path.is_file()
    }


def wait_until(condition: Callable[[], bool]) -> None:
    deadline = time.monotonic() + 60
    while not condition():
        assert time.monotonic() < deadline, "nothing happened"
        time.sleep(0.01)


def sleepy(task: FileTask, *, marks: str, **options: Any) -> object:
    from secure_bloom.spark.file_task import process

    fall_asleep(Path(marks))
    return process(task, **options)


def fall_asleep(marks: Path) -> None:
    """Stop one executor's Python before its sixth file, with the daemon that could end it."""
    # The first that comes.  Not the one numbered 0, which an earlier case may have lost.
    with suppress(FileExistsError):
        (marks / "executor").symlink_to(Path.cwd())
    if (marks / "executor").readlink() != Path.cwd() or (marks / "asleep").exists():
        return
    begun = len(list(marks.glob("begun-*")))
    (marks / f"begun-{begun}").touch()
    if begun == BEGUN:
        (marks / "pid").write_text(f"{os.getpid()} {os.getppid()}")
        (marks / "pid").rename(marks / "asleep")
        for pid in (os.getppid(), os.getpid()):
            os.kill(pid, signal.SIGSTOP)


def made_anew(_spark: SparkSession, lake: Path) -> None:
    shutil.rmtree(lake)
    shutil.copytree(lake.parent / "anew", lake)


def rotated(key: str) -> Callable[[SparkSession, Path], DataFrame]:
    return lambda spark, lake: rotate_keys(spark, lake, lake.parent / f"{key}.toml")


def reencrypted(key: str) -> Callable[[SparkSession, Path], DataFrame]:
    return lambda spark, lake: reencrypt(spark, lake, lake.parent / f"{key}.toml")


def renewed(spark: SparkSession, lake: Path) -> DataFrame:
    return reencrypt(spark, lake, lake.parent / "k_pii.toml", new_data_keys=True)


def added(*, in_place: bool) -> Callable[[SparkSession, Path], DataFrame]:
    return lambda spark, lake: add_bloom_filters(
        spark, lake, lake.parent / "k_pii.toml", columns=["email"], in_place=in_place
    )


#: A call, and what happens between its return and the moment when a stopped executor goes on.
CASES: dict[str, tuple[Callable[..., Any], Callable[..., Any]]] = {
    "rotate": (rotated("k_finance"), rotated("k_pii")),
    "reencrypt": (reencrypted("k_finance"), reencrypted("k_pii")),
    "the same policy twice": (renewed, renewed),
    "add": (added(in_place=False), made_anew),
    "add in place": (added(in_place=True), made_anew),
}


def stopped(spark: SparkSession, case: str, folder: str, marks: str) -> dict[str, Any]:
    """Stop the Python of one executor in mid-work, and let it go on when the call is over."""
    lake = Path(folder)
    first, then = CASES[case]
    with (
        mock.patch.object(file_task, "process", partial(sleepy, marks=marks)),
        # Another thread would be stopped with a file locked, for which the copy would wait.
        mock.patch.object(job_reports, "AT_ONCE", 1),
    ):
        statuses = {row.status for row in first(spark, lake).collect()}
    worker, daemon = map(int, Path(marks, "asleep").read_text().split())
    try:
        then(spark, lake)
        after = snapshot(lake)
        os.kill(worker, signal.SIGCONT)
        # Far more than its files take.
        time.sleep(3)
    finally:
        os.kill(daemon, signal.SIGCONT)
    late = set(snapshot(lake).items()) ^ set(after.items())
    return {"statuses": sorted(statuses), "late": sorted(name for name, _ in late)}


@pytest.mark.slow
@pytest.mark.parametrize("case", CASES)
def test_an_executor_that_was_stopped_writes_nothing_after_the_call(
    cluster: Cluster, lake: Path, case: str
) -> None:
    marks = lake.parent / "marks"
    marks.mkdir()
    seen = cluster.run(stopped, case, str(lake), str(marks))
    assert "failed" not in seen["statuses"]
    assert seen["late"] == []
    assert not [path for path in lake.iterdir() if path.suffix != ".parquet"]
