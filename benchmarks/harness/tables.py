"""Results as one table, on a terminal and as Markdown: the same cells in both."""

from __future__ import annotations

from collections.abc import Iterable

from rich import box
from rich.console import Console
from rich.table import Table

from benchmarks.harness.results import Measure, Result

HEADINGS = ("case", "ours", "against", "other", "ratio", "goal", "reached")


def print_table(results: Iterable[Result]) -> None:
    """Print them; a terminal narrower than the table wraps its cells."""
    table = Table(*HEADINGS, box=box.SIMPLE_HEAD)
    for result in results:
        table.add_row(*cells(result))
    Console().print(table)


def markdown(results: Iterable[Result]) -> str:
    """The table of a page."""
    rows = [HEADINGS, ("---", "---:", "---", "---:", "---:", "---:", "---"), *map(cells, results)]
    return "".join(f"| {' | '.join(row)} |\n" for row in rows)


def cells(result: Result) -> tuple[str, ...]:
    """One case as texts."""
    return (
        result.case,
        quantity(result.ours, result.unit),
        result.against,
        "" if result.other is None else quantity(result.other, result.unit),
        ratio(result),
        goal(result),
        {None: "", True: "yes", False: "no"}[result.reached],
    )


def quantity(number: float, unit: str) -> str:
    """A number as people read it."""
    if unit == "s":
        return f"{number:.2f} s" if number >= 1 else f"{digits(1000 * number)} ms"
    if unit == "share":
        return f"{digits(100 * number)} %"
    return f"{digits(number)} {unit}".rstrip()


def digits(number: float) -> str:
    """Three digits, or all of a whole number."""
    if abs(number) >= 100 or number == int(number):
        return f"{number:,.0f}"
    return f"{number:.3g}"


def ratio(result: Result) -> str:
    """How many times faster, or how many times as much."""
    if result.ratio is None:
        return ""
    kind = "faster" if result.measure is Measure.SPEEDUP else "as much"
    return f"{result.ratio:.3g} x {kind}" if result.ratio < 100 else f"{result.ratio:.0f} x {kind}"


def goal(result: Result) -> str:
    """What the ratio, or ours, should be."""
    if result.goal is None:
        return ""
    if result.measure is Measure.VALUE:
        allowed = f" + {quantity(result.tolerance, result.unit)}" if result.tolerance else ""
        return f"<= {quantity(result.goal, result.unit)}{allowed}"
    sign = ">=" if result.measure is Measure.SPEEDUP else "<="
    return f"{sign} {digits(result.goal)} x"
