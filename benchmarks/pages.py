"""The page on the benchmarks: what stands between its marks comes from the results."""

from __future__ import annotations

from collections.abc import Iterable

from benchmarks import PAGE
from benchmarks.results import Result, Run
from benchmarks.tables import markdown

BEGIN, END = "<!-- results: `make bench` writes what follows -->\n", "<!-- end of results -->\n"


def write_page(run: Run) -> None:
    """Put the results into the page; what stands around them stays."""
    before, _, rest = PAGE.read_text().partition(BEGIN)
    _, _, after = rest.partition(END)
    PAGE.write_text(f"{before}{BEGIN}{results_part(run)}{END}{after}")


def results_part(run: Run) -> str:
    """What stands between the marks."""
    return f"\n{machine(run)}\n\n{markdown(run.results)}\n{notes(run.results)}\n"


def machine(run: Run) -> str:
    """What the numbers were measured on, in a sentence or two."""
    it = run.machine
    packages = ", ".join(f"{name} {version}" for name, version in it["packages"].items())
    judged = [result for result in run.results if result.reached is not None]
    reached = sum(result.reached is True for result in judged)
    return (
        f"{it['cpu']}, {it['cores']} cores, {it['memory_gib']} GiB, {it['system']};"
        f" Python {it['python']}, {packages}; load average at the end {it['load']:.1f}."
        f" Goals reached: {reached} of {len(judged)}."
    )


def notes(results: Iterable[Result]) -> str:
    """What has to be known of single cases."""
    said = (
        f"- {r.case}{r.against and ', against '}{r.against}: {r.note}" for r in results if r.note
    )
    return "\n".join(said) + "\n"
