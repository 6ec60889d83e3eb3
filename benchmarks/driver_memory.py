"""What the driver of a large job holds: a hundred thousand real files, and ten million made up.

Both run on a standalone cluster whose driver has a heap of 512 MiB.  The made-up table has the
folders and the rows of a real one; only the disk is left out: listing a folder gives names, and the
work on a file gives a report.
"""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any
from unittest import mock

import pyarrow as pa
import pyarrow.parquet as pq

from benchmarks.results import Measure, Result
from tests.spark.cluster import standalone_cluster

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

MIB = 1 << 20
#: The heap of the driver, and the most that its Python may take.
HEAP = PYTHON = 512
_FILES_OF_A_FOLDER = 1000
_CONFIG = {
    "spark.driver.memory": f"{HEAP}m",
    "spark.memory.offHeap.enabled": "false",
    "spark.speculation": "false",
}


def cases(folder: Path, *, quick: bool) -> Iterator[Result]:
    """The peaks of both runs."""
    real, made_up = (200, 20_000) if quick else (100_000, 10_000_000)
    write_tiny(folder / "tiny", real)
    (folder / "cluster").mkdir()
    with standalone_cluster(folder / "cluster") as cluster:
        seen = cluster.run(add_to_all, str(folder / "tiny"), config=_CONFIG)
        yield from peaks(f"{real:,} tiny files", real, seen)
        cluster.close()
        seen = cluster.run(add_to_none, made_up, config=_CONFIG)
        yield from peaks(f"{made_up:,} files made up", made_up, seen)


def peaks(what: str, files: int, seen: dict[str, Any]) -> Iterator[Result]:
    """Both halves of the driver, after a run that did all files."""
    if seen["added"] != files:
        raise SystemExit(f"of {files} files {seen['added']} were done")
    note = f"{seen['seconds']:.0f} s on 2 executors with 1 core each, Spark's heap -Xmx{HEAP}m"
    for part, limit in (("Python", PYTHON), ("heap", HEAP)):
        yield Result(
            case=f"memory of the driver, {what}: {part}",
            unit="MiB",
            ours=seen[part] / MIB,
            measure=Measure.VALUE,
            goal=limit,
            note=note,
        )


def write_tiny(folder: Path, files: int) -> None:
    """Copies of a file of ten rows, a hundred to a folder."""
    first = folder.with_name("tiny.parquet")
    pq.write_table(pa.table({"id": range(10)}), first)
    for i in range(files):
        if i % 100 == 0:
            (folder / f"part={i // 100:05}").mkdir(parents=True)
        shutil.copyfile(first, folder / f"part={i // 100:05}" / f"{i:07}.parquet")


# What follows runs in the driver process of the cluster.


def add_to_all(spark: SparkSession, folder: str) -> dict[str, Any]:
    """The step on real files."""
    return measured(spark, folder)


def add_to_none(spark: SparkSession, files: int) -> dict[str, Any]:
    """The step on folders that hold no file but name a thousand each."""
    from secure_bloom.spark import add_job, job_files

    with (
        mock.patch.object(job_files, "list_upper_part", return_value=made_up_folders(files)),
        mock.patch.object(job_files, "_list_branch", list_made_up),
        mock.patch.object(add_job, "_survey", made_up_survey),
        mock.patch.object(add_job, "_rewrite", made_up_report),
    ):
        return measured(spark, "/nowhere")


def made_up_folders(files: int) -> Any:
    """What the driver finds of the made-up table."""
    from secure_bloom.storage.split_listing import Branch, UpperPart

    folders = range(max(files // _FILES_OF_A_FOLDER, 1))
    return UpperPart(
        entries=(),
        branches=tuple(
            Branch(root=0, folder=f"/lake/customers/day={i:06}", deep=True) for i in folders
        ),
    )


def list_made_up(_root: int, folder: str, _deep: bool, **_: object) -> Iterator[tuple[Any, ...]]:
    """The rows of its files, by the tasks that list."""
    for i in range(_FILES_OF_A_FOLDER):
        path = f"{folder}/part-{i:05}-3f0c2a6e-8f5d-4a3e-9a55-0d4c1b0e7a11.c000.snappy.parquet"
        yield (0, path, path, False, None)


def made_up_survey(path: str, **_: object) -> Any:
    """A footer that has the column."""
    from secure_bloom.adding.preflight import Survey

    return Survey(path=path, columns=("id",))


def made_up_report(path: str, **_: object) -> Any:
    """A file that got its filter."""
    from secure_bloom.adding.report import FileAddReport, FilterReport

    done = FilterReport(row_group=0, column="id", bytes=32, values=10, action="added")
    return FileAddReport(path=path, status="added", filters=(done,))


def measured(spark: SparkSession, folder: str) -> dict[str, Any]:
    """Run the step; how many files it did, and the peaks of the driver's Python and of its heap."""
    import resource
    import time

    from secure_bloom.spark import add_bloom_filters

    started = time.perf_counter()
    report = add_bloom_filters(spark, folder, columns=["id"])
    added = report.where("status = 'added'").count()
    return {
        "added": added,
        "seconds": time.perf_counter() - started,
        "Python": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024,
        "heap": heap_peak(spark),
    }


def heap_peak(spark: SparkSession) -> int:
    """The most that the heap's pools held, each at its own time."""
    pools = spark._jvm.java.lang.management.ManagementFactory.getMemoryPoolMXBeans()
    kept = (pools.get(i) for i in range(pools.size()))
    return sum(
        pool.getPeakUsage().getUsed() for pool in kept if str(pool.getType()) == "Heap memory"
    )
