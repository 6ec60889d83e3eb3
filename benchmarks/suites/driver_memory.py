"""What the driver of a large job holds: 100,000 files, and by a model ten million.

A standalone cluster's driver has a heap of 512 MiB.  It adds filters to real files first, and then
to two made-up tables: they have the folders and the rows of real ones, but listing a folder
only gives names, and the work on a file only a report.  What the larger one takes more than the
smaller one goes on in proportion up to ten million files.
"""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any
from unittest import mock

import pyarrow as pa
import pyarrow.parquet as pq

from benchmarks.harness.results import Measure, Result
from testing.spark.cluster import standalone_cluster

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

MIB = 1 << 20
#: The heap of the driver, and the most that its Python may take.
HEAP = PYTHON = 512
_FILES_OF_A_FOLDER = 1000
_DRIVER = {
    "spark.driver.memory": f"{HEAP}m",
    "spark.speculation": "false",
    "spark.eventLog.enabled": "false",
}
_SECONDS = 3600
#: The halves of a driver, and their limits in MiB.
_LIMITS = {"Python": PYTHON, "heap": HEAP}
_MODEL = 10_000_000


def cases(folder: Path, *, quick: bool) -> Iterator[Result]:
    """The real run, and the model."""
    real, few, many = (200, 2_000, 20_000) if quick else (100_000, 20_000, 200_000)
    write_tiny(folder / "tiny", real)
    (folder / "cluster").mkdir()
    with standalone_cluster(folder / "cluster", driver=_DRIVER, seconds=_SECONDS) as cluster:
        seen = cluster.run(add_to_all, str(folder / "tiny"))
        check(seen, real)
        note = f"2 executors with 1 core each took {seen['seconds']:.0f} s; -Xmx{HEAP}m"
        yield from results(f"{real:,} tiny files", seen, note)
        less, more = cluster.run(add_to_none, [few, many])
    check(less, few)
    check(more, many)
    share = (_MODEL - many) / (many - few)
    model = {part: more[part] + max(0, more[part] - less[part]) * share for part in _LIMITS}
    note = "; ".join(
        f"{part}: {less[part] / MIB:.0f} MiB with {few:,} files made up, "
        f"{more[part] / MIB:.0f} MiB with {many:,}"
        for part in _LIMITS
    )
    yield from results(f"{_MODEL:,} files, by a model", model, note)


def check(seen: dict[str, Any], files: int) -> None:
    """All files were done."""
    if seen["added"] != files:
        raise SystemExit(f"of {files} files {seen['added']} were done")


def results(what: str, seen: dict[str, Any], note: str) -> Iterator[Result]:
    """Both halves of the driver."""
    for part, limit in _LIMITS.items():
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


def add_to_none(spark: SparkSession, sizes: list[int]) -> list[dict[str, Any]]:
    """The step on folders that hold no file but name a thousand each."""
    from secure_bloom.spark import add_task, job_files

    seen = []
    for files in sizes:
        with (
            mock.patch.object(job_files, "list_upper_part", return_value=made_up_folders(files)),
            mock.patch.object(job_files, "_list_branch", list_made_up),
            mock.patch.object(add_task, "survey", made_up_survey),
            mock.patch.object(add_task, "rewrite", made_up_report),
        ):
            seen.append(measured(spark, "/nowhere"))
    return seen


def made_up_folders(files: int) -> Any:
    """What the driver finds of the made-up table."""
    from secure_bloom.lakes.split_listing import Branch, UpperPart

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
        yield (0, path, path, 100_000, False, None)


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
    """Run the step; how many files it did, its driver's peak of Python, and what its heap holds."""
    import resource
    import time

    from secure_bloom.spark import add_bloom_filters

    started = time.perf_counter()
    report = add_bloom_filters(spark, folder, columns=["id"])
    added = report.where("status = 'added'").count()
    seconds = time.perf_counter() - started
    java = spark._jvm.java.lang
    java.System.gc()
    heap = java.management.ManagementFactory.getMemoryMXBean().getHeapMemoryUsage().getUsed()
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024
    return {"added": added, "seconds": seconds, "Python": peak, "heap": heap}
