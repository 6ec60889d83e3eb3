"""The page on the benchmarks: what stands between its marks comes from the results."""

from __future__ import annotations

from collections.abc import Iterable

from benchmarks import PAGE, SUITES
from benchmarks.results import Result, Run
from benchmarks.tables import markdown

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
    "compiling": "The first run",
    "sizes": "Sizes of filters, beside pyarrow and Spark",
    "encrypted": "Filters for encrypted files, beside Spark",
    "spark": "The step on Spark",
    "rekeying": "Files under other keys, beside Spark, pyarrow and cp",
    "kms_calls": "Calls to a KMS",
    "small_files": "Many small files, and wide ones",
    "delta": "Delta tables",
    "reading": "Finding rows, beside other engines",
    "other_filters": "Filters of Hudi and Paimon",
    "objects": "Object stores",
}


def write_page(run: Run) -> None:
    """Put the results into the page; what stands around them stays."""
    before, _, rest = PAGE.read_text().partition(BEGIN)
    _, _, after = rest.partition(END)
    PAGE.write_text(f"{before}{BEGIN}{results_part(run)}{END}{after}")


def results_part(run: Run) -> str:
    """What stands between the marks."""
    sections = (section(suite, run.of(suite)) for suite in SUITES if run.of(suite))
    return f"\n{machine(run)}\n\n{''.join(sections)}"


def section(suite: str, results: list[Result]) -> str:
    """The table of one suite, and what has to be known of it."""
    said = notes(results)
    return f"### {TITLES[suite]}\n\n{markdown(results)}\n{said}{said and chr(10)}"


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
