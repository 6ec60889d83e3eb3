"""The benchmarks run, and the page says what was measured."""

from __future__ import annotations

import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest

from benchmarks import PAGE, PICTURES, RESULTS, ROOT, SUITES
from benchmarks.pages import BEGIN, END, TITLES, results_part
from benchmarks.results import Measure, Result, Run, read_run, write_run
from benchmarks.tables import cells


def test_a_quick_run_measures_both_sides(tmp_path: Path) -> None:
    output = tmp_path / "results.json"
    suites = ("dictionary", "rates")
    finished = subprocess.run(
        [sys.executable, "-m", "benchmarks", "--quick", "--output", str(output)]
        + [f"--only={suite}" for suite in suites],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=True,
    )
    run = read_run(output)
    assert run.quick
    assert {result.suite for result in run.results} == set(suites)
    assert all(result.ours > 0 for result in run.results)
    assert finished.stdout.count("reached") == 1  # one table
    # The only suite that is not about time: its goals hold at any size, on any machine.
    assert [result.reached for result in run.of("rates")] == [True] * 4


def test_what_is_written_is_read(tmp_path: Path) -> None:
    result = Result(
        case="c", against="a", unit="s", ours=0.5, other=4, goal=8, points=({"rows": 1.0},)
    )
    run = Run(machine={"cores": 2}, quick=False, results=(result,))
    write_run(tmp_path / "results.json", run)
    assert read_run(tmp_path / "results.json") == run


@pytest.mark.parametrize(
    ("measure", "ours", "other", "goal", "tolerance", "reached"),
    [
        (Measure.SPEEDUP, 1, 8, 8, 0, True),
        (Measure.SPEEDUP, 1, 7.9, 8, 0, False),
        (Measure.TIMES, 3, 2, 1.5, 0, True),
        (Measure.TIMES, 3.1, 2, 1.5, 0, False),
        (Measure.VALUE, 0.011, None, 0.01, 0.001, True),
        (Measure.VALUE, 0.012, None, 0.01, 0.001, False),
        (Measure.SPEEDUP, 1, 9, None, 0, None),
    ],
)
def test_a_goal_is_reached_or_not(
    measure: Measure,
    ours: float,
    other: float | None,
    goal: float | None,
    tolerance: float,
    reached: bool | None,
) -> None:
    result = Result(
        case="c",
        unit="s",
        measure=measure,
        ours=ours,
        other=other,
        goal=goal,
        tolerance=tolerance,
    )
    assert result.reached is reached
    assert cells(result)[-1] == {True: "yes", False: "no", None: ""}[reached]
    assert replace(result, goal=None).reached is None


def test_the_page_says_what_the_results_say() -> None:
    run = read_run(RESULTS)
    assert not run.quick
    # A suite that was never run whole has no row yet.
    assert {result.suite for result in run.results} <= set(SUITES) == set(TITLES)
    page = PAGE.read_text()
    assert page.partition(BEGIN)[2].partition(END)[0] == results_part(run)


def test_the_page_shows_pictures_that_are_there() -> None:
    named = [part.partition(")")[0] for part in PAGE.read_text().split("(pictures/")[1:]]
    assert named
    assert all((PICTURES / name).exists() for name in named)
