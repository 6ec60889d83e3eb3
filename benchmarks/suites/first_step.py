"""The step beside the command line as a whole new process: first, warm, and with nothing to do.

`python -m benchmarks.suites.first_step FOLDER RUNS [SETTING=VALUE...]` is one session with two
cores: it prints the seconds of the clock and of all CPUs of each way as JSON.  FOLDER has a policy
and a table, which stays as it is: each run is given a copy.  Spark's own start does not count.
"""

from __future__ import annotations

import json
import os
import statistics
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

from benchmarks.harness.data import POLICY, copy_beside
from benchmarks.harness.sessions import local_session
from secure_bloom.encryption.policy import KeyPolicy
from secure_bloom.spark import add_bloom_filters, session_config

_TICKS = os.sysconf("SC_CLK_TCK")


@dataclass(frozen=True, slots=True, kw_only=True)
class Cost:
    """Seconds of the clock, and of the CPUs of this process and all processes below it."""

    wall: float
    cpu: float


def cost(run: Callable[[], object]) -> Cost:
    """Return what a call costs."""
    wall, cpu = time.perf_counter(), _cpu_of_all()
    run()
    return Cost(wall=time.perf_counter() - wall, cpu=_cpu_of_all() - cpu)


def _cpu_of_all() -> float:
    """Return the CPU seconds of this process, of those below it, and of their ended children."""
    stats = list(_stats())
    below = {os.getpid()}
    # Parents have lower numbers, but for those that were adopted or came after the last number.
    for pid, parent, _ in sorted(stats):
        if parent in below:
            below.add(pid)
    return sum(seconds for pid, _, seconds in stats if pid in below)


def _stats() -> Iterator[tuple[int, int, float]]:
    for folder in Path("/proc").glob("[0-9]*"):
        try:
            fields = (folder / "stat").read_text().rpartition(")")[2].split()
        except OSError:
            continue
        yield int(folder.name), int(fields[1]), sum(map(int, fields[11:15])) / _TICKS


def median(costs: Sequence[Cost]) -> dict[str, float]:
    """Return the medians of the clock and of the CPUs."""
    return {
        name: statistics.median(asdict(cost)[name] for cost in costs) for name in ("wall", "cpu")
    }


def main() -> None:
    """The process of one session."""
    folder, runs = Path(sys.argv[1]), int(sys.argv[2])
    settings = dict(setting.split("=", 1) for setting in sys.argv[3:])
    work = folder / "work"
    command = [sys.executable, "-m", "secure_bloom", "add", str(work)]
    command += ["--policy", str(folder / POLICY), "--quiet"]

    def process() -> None:
        subprocess.run(command, check=True, stdout=subprocess.DEVNULL)

    def fresh(run: Callable[[], object]) -> Cost:
        copy_beside(folder / "table", work)
        return cost(run)

    with local_session(
        2, folder, session_config(KeyPolicy.load(folder / POLICY)) | settings
    ) as spark:

        def step() -> None:
            add_bloom_filters(spark, work, folder / POLICY).where("status = 'failed'").count()

        processes = [fresh(process)]
        first = fresh(step)
        idle = []
        warm = []
        for _ in range(runs):
            processes.append(fresh(process))
            warm.append(fresh(step))
            idle.append((cost(process), cost(step)))
    print(
        json.dumps(
            {
                "process": median(processes),
                "first": asdict(first),
                "warm": median(warm),
                "warm_all": [round(each.cpu, 2) for each in warm],
                "idle process": median([each[0] for each in idle]),
                "idle": median([each[1] for each in idle]),
            }
        )
    )


if __name__ == "__main__":
    main()
