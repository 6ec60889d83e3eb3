"""Run the suites, print one table, write results.json, the pages and the pictures."""

from __future__ import annotations

import argparse
import os
import platform
import sys
import tempfile
from collections.abc import Iterator
from dataclasses import replace
from importlib import import_module
from importlib.metadata import version
from pathlib import Path
from typing import Any

from benchmarks import RESULTS, SUITES
from benchmarks.harness.results import Result, Run, read_run, write_run
from benchmarks.harness.tables import print_table
from testing.project import cpu_model

PACKAGES = ("secure-bloom", "numpy", "pyarrow", "pyspark", "duckdb", "cryptography")


def main() -> None:
    """The command; a full run alone changes what is committed."""
    arguments = parse()
    # Without bytecode each process that is measured would compile the package anew.
    os.environ.pop("PYTHONDONTWRITEBYTECODE", None)
    results: list[Result] = []
    for suite in arguments.only or SUITES:
        results += run_suite(suite, quick=arguments.quick)
    run = Run(machine=machine(), quick=arguments.quick, results=tuple(results))
    if arguments.output is not None:
        write_run(arguments.output, run)
    elif not arguments.quick:
        publish(merged(run) if arguments.only else run)
    print_table(run.results)


def parse() -> argparse.Namespace:
    """The arguments."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks", description=__doc__)
    parser.add_argument("--only", action="append", choices=SUITES, metavar="SUITE")
    parser.add_argument("--quick", action="store_true", help="small sizes; publishes nothing")
    parser.add_argument("--output", type=Path, help="write the results there and publish nothing")
    return parser.parse_args()


def run_suite(suite: str, *, quick: bool) -> Iterator[Result]:
    """The results of one suite, in a folder of its own."""
    module = import_module(f"benchmarks.suites.{suite}")
    with tempfile.TemporaryDirectory(prefix="bench-") as folder:
        for result in module.cases(Path(folder), quick=quick):
            print(f"{suite}: {result.case}", file=sys.stderr, flush=True)
            yield replace(result, suite=suite)


def merged(run: Run) -> Run:
    """The run, and of the last one what it did not measure anew, of suites that are still there."""
    measured = {result.suite for result in run.results}
    before = read_run(RESULTS).results if RESULTS.exists() else ()
    kept = [it for it in before if it.suite in SUITES and it.suite not in measured]
    every = sorted([*kept, *run.results], key=lambda result: SUITES.index(result.suite))
    return replace(run, results=tuple(every))


def publish(run: Run) -> None:
    """Write all that is said of the results."""
    from benchmarks.harness.pages import write_pages
    from benchmarks.harness.pictures import draw

    write_run(RESULTS, run)
    write_pages(read_run(RESULTS))
    draw(read_run(RESULTS))


def machine() -> dict[str, Any]:
    """What the numbers were measured on."""
    return {
        "cpu": cpu_model(Path("/proc/cpuinfo")),
        "cores": os.cpu_count(),
        "memory_gib": round(os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") / 2**30),
        "system": f"{platform.system()} {platform.machine()}",
        "python": platform.python_version(),
        "packages": {name: version(name) for name in PACKAGES},
        "load": os.getloadavg()[1],
    }


if __name__ == "__main__":
    main()
