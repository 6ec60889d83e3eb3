"""The benchmarks run, and their pages say what was measured."""

from __future__ import annotations

import re
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest

from benchmarks import PAGE, PICTURES, RESULTS, ROOT, SUITE_PAGES, SUITES
from benchmarks.__main__ import merged
from benchmarks.harness.pages import (
    BEGIN,
    END,
    TITLES,
    file_name,
    overview,
    suite_page,
    write_pages,
)
from benchmarks.harness.results import Measure, Result, Run, read_run, write_run
from benchmarks.harness.tables import cells


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


def test_the_pages_say_what_the_results_say() -> None:
    run = read_run(RESULTS)
    assert not run.quick
    # A suite that was never run whole has no page yet.
    measured = {result.suite for result in run.results}
    assert measured <= set(SUITES) == set(TITLES)
    assert PAGE.read_text().partition(BEGIN)[2].partition(END)[0] == overview(run)
    pages = {path.name: path.read_text() for path in SUITE_PAGES.glob("*.md")}
    assert pages == {file_name(suite): suite_page(suite, run.of(suite)) for suite in measured}


def test_every_suite_is_in_the_contents_of_the_site() -> None:
    contents = (ROOT / "mkdocs.yml").read_text()
    for path in SUITE_PAGES.glob("*.md"):
        assert f"benchmarks/{path.name}\n" in contents


def test_the_overview_tells_of_every_goal_that_was_missed() -> None:
    missed = Result(case="far off", unit="s", ours=9, measure=Measure.VALUE, goal=1, suite="spark")
    reached = replace(missed, case="well below", ours=0.5)
    machine = read_run(RESULTS).machine
    said = overview(Run(machine=machine, quick=False, results=(missed, reached)))
    assert "(benchmarks/spark.md) | 1 of 2 | 2 |" in said
    assert "far off" in said
    assert "well below" not in said
    none = overview(Run(machine=machine, quick=False, results=(reached,)))
    assert "No goal was missed." in none


def test_a_run_of_some_suites_writes_the_pages_of_all(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    page = tmp_path / "benchmarks.md"
    page.write_text(f"before\n{BEGIN}{END}after\n")
    monkeypatch.setattr("benchmarks.harness.pages.PAGE", page)
    monkeypatch.setattr("benchmarks.harness.pages.SUITE_PAGES", tmp_path / "benchmarks")
    run = read_run(RESULTS)
    [result] = run.of("scaling")
    measured = Run(machine=run.machine, quick=False, results=(replace(result, case="anew"),))
    write_pages(merged(measured))
    assert page.read_text().startswith(f"before\n{BEGIN}")
    assert page.read_text().endswith(f"{END}after\n")
    written = {path.name: path.read_text() for path in (tmp_path / "benchmarks").glob("*.md")}
    assert "anew" in written.pop("scaling.md")
    assert written == {
        path.name: path.read_text() for path in SUITE_PAGES.glob("*.md") if path.name in written
    }
    assert len(written) == len({result.suite for result in run.results}) - 1


def test_the_pages_show_pictures_that_are_there() -> None:
    pages = [PAGE, *SUITE_PAGES.glob("*.md")]
    named = {name for page in pages for name in re.findall(r"pictures/([^)]+)", page.read_text())}
    assert named
    assert all((PICTURES / name).exists() for name in named)
