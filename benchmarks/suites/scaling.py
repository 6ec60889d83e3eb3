"""How the time of an add grows with the rows, beside pyarrow reading and writing them."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from benchmarks.harness.data import add, fresh_copy, write_wide
from benchmarks.harness.results import Measure, Result
from benchmarks.harness.timing import Side, medians
from benchmarks.suites.files import rewrite


def cases(folder: Path, *, quick: bool) -> Iterator[Result]:
    """Values a second, over the whole way from file to file."""
    sizes = (50_000, 100_000) if quick else (250_000, 500_000, 1_000_000, 2_000_000, 4_000_000)
    sides = [side for rows in sizes for side in both(folder, rows)]
    times = medians(*sides)
    points = [
        {"rows": rows, "ours": ours, "other": other}
        for rows, ours, other in zip(sizes, times[::2], times[1::2], strict=True)
    ]
    few, many = points[0], points[-1]
    yield Result(
        case=f"{sizes[-1] // sizes[0]} times the rows, in place",
        against=f"{sizes[-1] // sizes[0]} times the time of {sizes[0]:,}",
        unit="s",
        ours=many["ours"],
        other=few["ours"] * sizes[-1] / sizes[0],
        measure=Measure.TIMES,
        note=f"{2 * many['rows'] / many['ours'] / 1e6:.1f} million values a second, disk included",
        points=tuple(points),
    )


def both(folder: Path, rows: int) -> tuple[Side, Side]:
    """Adding to a file of so many rows, and reading and writing it."""
    plain, work = write_wide(folder / f"{rows}.parquet", rows), folder / "work.parquet"
    return (
        Side(run=lambda: add(work, in_place=True), before=lambda: fresh_copy(plain, work)),
        Side(run=lambda: rewrite(plain, folder / "other.parquet", rows)),
    )
