"""The pages on the benchmarks, from the results: an overview between its marks, and one a suite."""

from __future__ import annotations

import ast
from collections.abc import Iterable

from benchmarks import PAGE, SUITE_FILES, SUITE_PAGES, SUITES
from benchmarks.harness.results import Result, Run
from benchmarks.harness.tables import markdown

BEGIN, END = "<!-- results: `make bench` writes what follows -->\n", "<!-- end of results -->\n"


#: Suite -> the heading over its table.
TITLES = {
    "kernels": "Hashing and inserting, beside C",
    "files": "Filters for plain files, beside pyarrow",
    "dictionary": "Columns of few values",
    "scaling": "Larger files",
    "probing": "Asking for one value",
    "footers": "Files of many chunks",
    "memory": "Memory",
    "rates": "False positives",
    "sizes": "Sizes of filters, beside pyarrow and Spark",
    "encrypted": "Filters for encrypted files, beside Spark",
    "spark": "The step on Spark",
    "rekeying": "Files under other keys, beside Spark, pyarrow and cp",
    "kms_calls": "Calls to a KMS",
    "small_files": "Many small files, and wide ones",
    "different_files": "Small files that differ from each other",
    "delta": "Delta tables",
    "reading": "Finding rows, beside other engines",
    "lookups": "Single rows of an open table",
    "other_filters": "Filters of Hudi and Paimon",
    "tracing": "Searches for values in a CSV",
    "objects": "Object stores",
}


#: The table takes the room of the contents, which a page without sections has not.
_WIDE = "---\nhide: [toc]\n---\n\n"

#: Suite -> pictures of its results, with what they show.
PICTURES_OF = {
    "files": [("bench-peers", "Time against the peers")],
    "encrypted": [("bench-peers", "Time against the peers")],
    "scaling": [("bench-scaling", "Time over rows")],
    "reading": [("bench-reading", "Time to find rows beside other engines")],
    "sizes": [("bench-sizes", "Bytes and false positives")],
}


def write_pages(run: Run) -> None:
    """Put the results into all pages; what stands around the marks of the overview stays."""
    before, _, rest = PAGE.read_text().partition(BEGIN)
    _, _, after = rest.partition(END)
    PAGE.write_text(f"{before}{BEGIN}{overview(run)}{END}{after}")
    SUITE_PAGES.mkdir(exist_ok=True)
    for suite in SUITES:
        if run.of(suite):
            (SUITE_PAGES / file_name(suite)).write_text(suite_page(suite, run.of(suite)))


def overview(run: Run) -> str:
    """What stands between the marks: each suite with its page, and the goals that were missed."""
    suites = [suite for suite in SUITES if run.of(suite)]
    rows = "".join(overview_row(suite, run.of(suite)) for suite in suites)
    missed = [result for result in run.results if result.reached is False]
    table = f"| suite | goals reached | cases |\n| --- | ---: | ---: |\n{rows}"
    return f"\n{machine(run)}\n\n{table}\n{not_reached(missed)}\n"


def overview_row(suite: str, results: list[Result]) -> str:
    """One suite in the table of all."""
    judged = [result.reached for result in results if result.reached is not None]
    goals = f"{sum(judged)} of {len(judged)}" if judged else "no goal"
    return f"| [{TITLES[suite]}](benchmarks/{file_name(suite)}) | {goals} | {len(results)} |\n"


def not_reached(missed: list[Result]) -> str:
    """The cases whose goal was not reached."""
    if not missed:
        return "No goal was missed."
    return f"## Goals that were not reached\n\n{markdown(missed)}"


def file_name(suite: str) -> str:
    """Of the suite's page."""
    return f"{suite.replace('_', '-')}.md"


def suite_page(suite: str, results: list[Result]) -> str:
    """What was measured, its pictures, its table, and what has to be known of single cases."""
    pictures = "".join(
        f"![{shown}](../pictures/{name}.png)\n\n" for name, shown in PICTURES_OF.get(suite, ())
    )
    said = notes(results)
    return (
        f"{_WIDE}# {TITLES[suite]}\n\n{about(suite)} On which machine, and how it was measured:"
        f" [benchmarks](../benchmarks.md).\nAgain: `make bench SUITE={suite}`.\n\n"
        f"{pictures}{markdown(results)}{said and chr(10)}{said}"
    )


def about(suite: str) -> str:
    """The first line of the suite's docstring; the suite itself is not imported."""
    source = (SUITE_FILES / f"{suite}.py").read_text()
    docstring = ast.get_docstring(ast.parse(source)) or ""
    return docstring.partition("\n\n")[0].replace("\n", " ")


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
    results = list(results)
    told: dict[str, dict[str, None]] = {}
    for result in results:
        if result.note:
            told.setdefault(result.note, {})[_told_of(result, results)] = None
    return "".join(f"- {'; '.join(named)}: {note}\n" for note, named in told.items())


def _told_of(result: Result, results: Iterable[Result]) -> str:
    """The case, with what it is held against where the note is not of all its lines."""
    is_of_all = all(other.note == result.note for other in results if other.case == result.case)
    return result.case if is_of_all or not result.against else f"{result.case}, {result.against}"
