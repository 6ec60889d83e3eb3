"""Indexes of a Paimon table that executors build and the driver commits."""

from __future__ import annotations

import signal
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

pytest.importorskip("pypaimon_rust")

import secure_bloom as sb
from secure_bloom.spark import build_paimon_index
from secure_bloom.spark import paimon as module
from testing.paimon_tables import Warehouse, damage, files_below, latest
from tests.spark.test_jobs_of_call import interrupted_when, is_idle

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = pytest.mark.spark
_done = module._done


def slow(*args: Any) -> object:
    time.sleep(0.1)
    return _done(*args)


@pytest.mark.parametrize("threshold", ["0 b", "1 kb"])
def test_executors_build_and_the_driver_commits(
    spark: SparkSession, tmp_path: Path, threshold: str
) -> None:
    lake = Warehouse(path=str(tmp_path))
    folder = lake.create("id bigint, name string", file_index__in_manifest_threshold=threshold)
    for number in range(4):
        lake.insert([(number, "a"), (100 + number, "b")])
    options = {"id": sb.paimon.IndexOptions(items=100, fpp=1e-6)}
    with pytest.raises(sb.PolicyError, match="there is no column nmae"):
        build_paimon_index(spark, folder, ["nmae"])
    report = build_paimon_index(spark, folder, options)
    assert [file.status for file in report.files] == ["built"] * 4
    assert latest(folder)["commitKind"] == "COMPACT"
    assert len(lake.rows()) == 8
    for path in Path(folder).rglob("data-*.parquet"):
        damage(str(path))
    assert lake.rows("id = 57") == []
    again = build_paimon_index(spark, f"paimon://{lake.path}/default.t", options)
    assert {file.status for file in again.files} == {"unchanged"}
    assert again.commits == ()


def test_after_ctrl_c_no_task_writes_an_index(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "_done", slow)
    lake = Warehouse(path=str(tmp_path))
    days = ", ".join(f"({number}, 'p{number}')" for number in range(60))
    folder = lake.create(
        "id bigint, part string", partitioned="part", file_index__in_manifest_threshold="0 b"
    )
    lake.sql(f"insert into t values {days}")
    before = files_below(folder)
    assert len(before) > 60
    # As in a notebook, where it is not PySpark that handles the signal.
    handler = signal.signal(signal.SIGINT, signal.default_int_handler)
    try:
        thread = interrupted_when(lambda: bool([*Path(folder).rglob("*.index")]))
        with pytest.raises(KeyboardInterrupt):
            build_paimon_index(spark, folder, ["id"])
        thread.join()
    finally:
        signal.signal(signal.SIGINT, handler)
    assert files_below(folder) == before
    time.sleep(3)
    assert is_idle(spark)
    assert files_below(folder) == before
