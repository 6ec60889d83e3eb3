"""Pictures of the results, for pages that are read at the width of a README."""

from __future__ import annotations

import textwrap
from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from benchmarks import PICTURES
from benchmarks.harness.data import OURS, PYARROW, PYARROW_TOLD, SPARK_TOLD
from benchmarks.harness.results import Measure, Point, Result, Run
from benchmarks.harness.tables import quantity
from secure_bloom.bloom.sizing import expected_fpp
from secure_bloom.bloom.split_block import BYTES_PER_BLOCK

TEAL, GRAY, AMBER, VIOLET = "#0f766e", "#9ca3af", "#b45309", "#7c3aed"
INK = "#374151"
#: The requests at which both sides of a comparison were told all.
TOLD = (0.1, 0.01, 0.001, 0.0001)
STYLES: dict[str, dict[str, Any]] = {
    OURS: {"color": TEAL, "marker": "o", "markersize": 4},
    PYARROW_TOLD: {"color": VIOLET, "marker": "s", "markerfacecolor": "none", "markersize": 8},
    SPARK_TOLD: {"color": AMBER, "marker": "D", "markerfacecolor": "none", "markersize": 8},
    PYARROW: {"color": VIOLET, "marker": "s", "markersize": 4},
    "Spark's default": {"color": AMBER, "marker": "D", "markersize": 4},
    "Spark's adaptive filters": {
        "color": AMBER,
        "marker": "^",
        "markersize": 4,
        "linestyle": "--",
    },
}


def draw(run: Run) -> None:
    """All pictures whose suites were run."""
    PICTURES.mkdir(exist_ok=True)
    pictures = {
        "bench-peers": (peers, ("files", "encrypted", "probing")),
        "bench-sizes": (sizes, ("sizes",)),
        "bench-scaling": (scaling, ("scaling",)),
        "bench-reading": (reading, ("reading",)),
    }
    for name, (picture, suites) in pictures.items():
        results = [result for suite in suites for result in run.of(suite)]
        if results:
            figure = picture(results)
            figure.savefig(PICTURES / f"{name}.png", dpi=120, metadata={"Software": None})


def titled(figure: Figure, title: str) -> None:
    """The finding, at the left."""
    figure.suptitle(title, x=0.01, ha="left", fontsize=12.5, fontweight="bold", color=INK)


def plain(axes: Axes) -> None:
    """Two thin axes and nothing else."""
    axes.spines[["top", "right"]].set_visible(False)
    axes.spines[["left", "bottom"]].set_color(GRAY)
    axes.tick_params(colors=INK, labelsize=9)


def note(axes: Axes, text: str, at: tuple[float, float], color: str, **options: Any) -> None:
    """A word beside a line instead of a legend."""
    options = {"xytext": (6, 0), "ha": "left", "va": "center", **options}
    axes.annotate(text, at, textcoords="offset points", fontsize=9.5, color=color, **options)


def peers(results: Sequence[Result]) -> Figure:
    """Filters added beside data written again."""
    shares = [1 / r.ratio for r in bars_of(results) if r.ratio and r.goal and r.goal > 1]
    return bars(
        results,
        f"Filters added in {100 * min(shares):.0f} to {100 * max(shares):.0f} %"
        " of the time that writing the data again takes",
    )


def reading(results: Sequence[Result]) -> Figure:
    """Rows found beside full scans and other engines."""
    return bars(results, "Keys found in a large table: what filters save, and where they cannot")


def bars_of(results: Sequence[Result]) -> list[Result]:
    """The results that are times of two sides."""
    return [r for r in results if r.measure is Measure.SPEEDUP and r.unit == "s"]


def bars(results: Sequence[Result], title: str) -> Figure:
    """Bars of the time of either side; the other's is the whole width."""
    timed = bars_of(results)[::-1]
    figure = Figure(figsize=(9.5, 0.68 * len(timed) + 0.6), layout="constrained")
    axes = figure.subplots()
    for y, result in enumerate(timed):
        two_bars(axes, y, result)
    axes.set_yticks(range(len(timed)), [wrapped(result.case) for result in timed])
    axes.set_xlim(0, 1.0)
    axes.xaxis.set_visible(False)
    axes.tick_params(length=0, labelsize=9, labelcolor=INK)
    axes.spines[:].set_visible(False)
    titled(figure, title)
    return figure


def wrapped(case: str) -> str:
    """A case's name in lines that leave the bars their room."""
    return "\n".join(textwrap.wrap(case, 38))


def two_bars(axes: Axes, y: int, result: Result) -> None:
    """Ours above, the other's below."""
    share = result.ours / (result.other or 1)
    axes.barh(y + 0.18, min(share, 1), height=0.34, color=TEAL)
    axes.barh(y - 0.18, 1, height=0.34, color="#e5e7eb")
    factor = f"{1 / share:.1f} x faster" if share < 1 else f"{share:.2f} x its time"
    ours = f"{quantity(result.ours, 's')}: {factor}"
    if share < 0.6:
        axes.text(share + 0.01, y + 0.18, ours, va="center", fontsize=9, color=TEAL)
    else:
        axes.text(0.01, y + 0.18, ours, va="center", fontsize=9, color="white")
    other = f"{result.against}: {quantity(result.other or 0, 's')}"
    axes.text(0.01, y - 0.18, other, va="center", fontsize=9, color=INK)


def sizes(results: Sequence[Result]) -> Figure:
    """Bytes a value of what nobody was told about, and what a byte buys."""
    dots = [dict(point) for result in results for point in result.points]
    figure = Figure(figsize=(9.5, 4.2), layout="constrained", dpi=100)
    untold, told = figure.subplots(1, 2)
    untold_sizes(untold, dots)
    bytes_and_rates(told, dots)
    titled(
        figure,
        "No count of distinct values is needed: filters fit their column and keep the request",
    )
    return figure


def untold_sizes(axes: Axes, dots: Sequence[Point]) -> None:
    """Bytes a value over distinct values, for those who are told nothing."""
    wanted = {OURS: 0.01, "Spark's default": 0.01, "Spark's adaptive filters": 0.01, PYARROW: 0.05}
    for maker, request in wanted.items():
        own = unique(dot for dot in dots if (dot["maker"], dot["request"]) == (maker, request))
        axes.plot(
            [dot["distinct"] for dot in own],
            [dot["bytes"] / dot["distinct"] for dot in own],
            linewidth=1.6,
            label=f"{maker}, {100 * request:g} %",
            **STYLES[maker],
        )
    axes.set_xscale("log")
    axes.set_yscale("log")
    axes.yaxis.set_major_formatter(lambda value, _: f"{value:,g}")
    axes.set_xlabel("distinct values of a row group of 1,000,000 rows", color=INK)
    axes.set_ylabel("bytes a distinct value", color=INK)
    axes.legend(frameon=False, fontsize=9, labelcolor=INK)
    plain(axes)


def unique(dots: Iterable[Point]) -> list[Point]:
    """One dot for each number of distinct values."""
    return list({dot["distinct"]: dot for dot in dots}.values())


def bytes_and_rates(axes: Axes, dots: Sequence[Point]) -> None:
    """False positives over bytes a value: measured, by the exact formula and by the usual one."""
    bytes_a_value = np.geomspace(0.4, 6, 60)
    exact = [expected_fpp(100_000, round(100_000 * b / BYTES_PER_BLOCK)) for b in bytes_a_value]
    axes.plot(bytes_a_value, exact, color=INK, linewidth=1, label="exact formula")
    usual = (1 - np.exp(-1 / bytes_a_value)) ** 8
    axes.plot(
        bytes_a_value, usual, color=INK, linewidth=1, linestyle=":", label="the formula others use"
    )
    for maker in (PYARROW_TOLD, SPARK_TOLD, OURS):
        own = [dot for dot in dots if dot["maker"] == maker and dot["request"] in TOLD]
        axes.plot(
            [dot["bytes"] / dot["distinct"] for dot in own],
            [dot["fpp"] or np.nan for dot in own],
            label=f"{maker}, measured",
            **{**STYLES[maker], "linestyle": ""},
        )
    axes.set_xscale("log")
    axes.set_yscale("log")
    axes.set_xticks([0.5, 1, 2, 4], ["0.5", "1", "2", "4"])
    axes.minorticks_off()
    axes.set_xlim(0.4, 6)
    axes.set_ylim(1e-6, 1)
    axes.yaxis.set_major_formatter(lambda value, _: f"{100 * value:g} %")
    axes.set_xlabel("bytes a distinct value", color=INK)
    axes.set_ylabel("false positives", color=INK)
    axes.legend(frameon=False, fontsize=9, labelcolor=INK, loc="lower left")
    plain(axes)


def scaling(results: Sequence[Result]) -> Figure:
    """Seconds over rows."""
    (result,) = results
    rows = [point["rows"] / 1e6 for point in result.points]
    figure = Figure(figsize=(9.5, 3.6), layout="constrained")
    axes = figure.subplots()
    sides = (
        ("other", "pyarrow reads and writes the file", INK),
        ("ours", "secure-bloom adds to it", TEAL),
    )
    for side, label, color in sides:
        seconds = [point[side] for point in result.points]
        axes.plot(rows, seconds, color=color, marker="o", markersize=4, linewidth=1.8)
        note(axes, f"{label}\n{quantity(seconds[-1], 's')}", (rows[-1], seconds[-1]), color)
    axes.set_xlim(0, 1.35 * rows[-1])
    axes.set_xticks([0, *rows[1:]])
    axes.set_ylim(0)
    axes.set_xlabel("million rows, filters on 2 of 11 columns", color=INK)
    axes.set_ylabel("seconds", color=INK)
    plain(axes)
    times = [point["other"] / point["ours"] for point in result.points]
    titled(figure, f"{min(times):.0f} to {max(times):.0f} times faster than writing the file again")
    return figure
