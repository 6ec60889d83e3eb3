"""A thousand small files through the step on Spark, beside one process that does them in turn.

`python -m benchmarks.small_files FOLDER CORES RUNS` is the process of the step: it prints the
median seconds.  Spark's start-up and its first run do not count.
"""

from __future__ import annotations

import shutil
import sys
from collections.abc import Iterator
from pathlib import Path

from benchmarks.data import POLICY, add, fresh_copy, write_policy
from benchmarks.results import Measure, Result
from benchmarks.sessions import local_session
from benchmarks.timing import Side, medians, python
from secure_bloom.encryption.policy import KeyPolicy
from secure_bloom.spark import add_bloom_filters, session_config
from tests.tables import Mode, customers, write

KEYS = {"email": "k_pii", "iban": "k_finance"}


def cases(folder: Path, *, quick: bool) -> Iterator[Result]:
    """How the step grows with cores, and what it costs over the work itself."""
    files, runs = (20, 1) if quick else (1000, 3)
    policy = write_policy(folder, KEYS)
    write_files(folder / "table", files)
    one, two = (step_seconds(folder, cores, runs) for cores in (1, 2))
    work = folder / "in-turn"
    (alone,) = medians(
        Side(
            run=lambda: add(work, None, policy=policy),
            before=lambda: fresh_copy(folder / "table", work),
        ),
        runs=runs,
    )
    yield Result(
        case=f"{files:,} small encrypted files, the step on Spark with 2 cores",
        against="with 1 core",
        unit="s",
        ours=two,
        other=one,
        goal=1.6,
        note="the step's own time; Spark's start-up is not counted",
    )
    yield Result(
        case=f"{files:,} small encrypted files, the step on Spark with 2 cores",
        against="one process, in turn",
        unit="s",
        ours=two,
        other=alone,
    )
    yield Result(
        case="overhead of the step, one core, a file",
        against="one process, in turn",
        unit="s",
        ours=(one - alone) / files,
        measure=Measure.VALUE,
        goal=0.02,
        note=f"{one:.2f} s with 1 core, {alone:.2f} s in turn",
    )


def write_files(folder: Path, files: int) -> None:
    """So many copies of one encrypted file of 1,000 customers."""
    folder.mkdir()
    first = write(folder / "part-0000.parquet", customers(1000), Mode.ENCRYPTED)
    for i in range(1, files):
        shutil.copyfile(first, folder / f"part-{i:04}.parquet")


def step_seconds(folder: Path, cores: int, runs: int) -> float:
    """The step's seconds, in a process of its own."""
    return float(python("-m", __spec__.name, folder, str(cores), str(runs)))


def main() -> None:
    """The process of the step."""
    folder, cores, runs = Path(sys.argv[1]), int(sys.argv[2]), int(sys.argv[3])
    policy = KeyPolicy.load(folder / POLICY)
    work = folder / f"work-{cores}"
    with local_session(cores, folder, session_config(policy)) as spark:

        def step() -> None:
            report = add_bloom_filters(spark, work, policy)
            if report.where("status != 'added'").count():
                raise SystemExit("the step did not add")

        (seconds,) = medians(
            Side(run=step, before=lambda: fresh_copy(folder / "table", work)), runs=runs
        )
    print(seconds)


if __name__ == "__main__":
    main()
