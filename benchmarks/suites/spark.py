"""The step on Spark: what it costs beside one process, and what its driver holds.

`python -m benchmarks.suites.spark FOLDER CORES RUNS [SETTING=VALUE...]` is the process of the step:
it prints the median seconds of the step, and of one process that does the same files in turn, as
JSON. Spark's start-up and its first run do not count.
"""

from __future__ import annotations

import json
import shutil
import sys
from collections.abc import Iterator
from pathlib import Path

from benchmarks.harness.data import POLICY, add, copy_beside, write_policy
from benchmarks.harness.results import Measure, Result
from benchmarks.harness.sessions import local_session
from benchmarks.harness.timing import Side, medians, python
from benchmarks.suites import driver_memory
from secure_bloom.encryption.policy import KeyPolicy
from secure_bloom.spark import add_bloom_filters, session_config
from testing.tables import Mode, customers, write

KEYS = {"email": "k_pii", "iban": "k_finance"}
_UNIX_SOCKETS = "spark.python.unix.domain.socket.enabled"


def cases(folder: Path, *, quick: bool) -> Iterator[Result]:
    """What the step costs on one core and on two, and the memory of the driver."""
    yield from costs(folder / "few", *((20, 1) if quick else (1000, 3)))
    yield from many_files(folder / "many", *((40, 1) if quick else (10_000, 2)))
    yield from driver_memory.cases(folder, quick=quick)


def costs(folder: Path, files: int, runs: int) -> Iterator[Result]:
    """Small encrypted files: in a step with so many cores, and in one process."""
    write_table(folder, files)
    one, alone_beside_one = seconds(folder, 1, runs)
    two, alone = seconds(folder, 2, runs)
    case = case_of(files)
    note = "in turns in one process; Spark's start-up is not counted"
    yield Result(
        case=case,
        against="one process, in turn",
        unit="s",
        ours=two,
        other=alone,
        goal=1.5,
        note=note,
    )
    yield Result(case=case, against="with 1 core", unit="s", ours=two, other=one, note=note)
    by_sockets, alone_beside_sockets = seconds(folder, 2, runs, f"{_UNIX_SOCKETS}=true")
    yield Result(
        case=f"{case}, its workers reached by Unix sockets",
        against="one process, in turn",
        unit="s",
        ours=by_sockets,
        other=alone_beside_sockets,
        note=f"{_UNIX_SOCKETS} is true",
    )
    yield Result(
        case="cost of the step, one core, a file",
        against="beyond one process, in turn",
        unit="s",
        ours=(one - alone_beside_one) / files,
        measure=Measure.VALUE,
        goal=0.0015,
        note=f"{one:.2f} s with 1 core, {alone_beside_one:.2f} s in turn, {files:,} files",
    )


def many_files(folder: Path, files: int, runs: int) -> Iterator[Result]:
    """Where what any job costs no longer counts."""
    write_table(folder, files)
    two, alone = seconds(folder, 2, runs)
    yield Result(
        case=case_of(files),
        against="one process, in turn",
        unit="s",
        ours=two,
        other=alone,
        goal=1.5,
        note=f"the second and later runs of a session, {runs} of them",
    )


def case_of(files: int) -> str:
    """The name of the case."""
    return f"{files:,} small encrypted files, the step on Spark with 2 cores"


def write_table(folder: Path, files: int) -> None:
    """A policy, and so many copies of one encrypted file of 1,000 customers."""
    table = folder / "table"
    table.mkdir(parents=True)
    write_policy(folder, KEYS)
    first = write(table / "part-0000.parquet", customers(1000), Mode.ENCRYPTED)
    for i in range(1, files):
        shutil.copyfile(first, table / f"part-{i:04}.parquet")


def seconds(folder: Path, cores: int, runs: int, *settings: str) -> tuple[float, float]:
    """Of the step with so many cores, and of one process."""
    step, alone = json.loads(python("-m", __spec__.name, folder, str(cores), str(runs), *settings))
    return step, alone


def main() -> None:
    """The process of the step."""
    folder, cores, runs = Path(sys.argv[1]), int(sys.argv[2]), int(sys.argv[3])
    settings = dict(setting.split("=", 1) for setting in sys.argv[4:])
    policy = KeyPolicy.load(folder / POLICY)
    work = folder / f"work-{cores}"
    with local_session(cores, folder, session_config(policy) | settings) as spark:

        def step() -> None:
            report = add_bloom_filters(spark, work, policy)
            if report.where("status != 'added'").count():
                raise SystemExit("the step did not add")

        sides = [
            Side(run=run, before=lambda: copy_beside(folder / "table", work))
            for run in (step, lambda: add(work, None, policy=policy, jobs=1))
        ]
        print(json.dumps(medians(*sides, runs=runs)))


if __name__ == "__main__":
    main()
