"""False positives as a filter gets fuller: `python -m benchmarks.suites.hudi_growth`.

Hudi's SIMPLE and DYNAMIC_V0 and our folded split-block filter, all bounded by the same bytes, with
0.1 to 20 times the keys that they were made for.  Needs the extra "bench".  Prints the table of
docs/hudi.md and draws its picture.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from secure_bloom.bloom import xxh64
from secure_bloom.bloom.sizing import block_count_for
from secure_bloom.bloom.split_block import SplitBlockBloomFilter
from secure_bloom.hudi import DynamicBoundedBloomFilter, SimpleBloomFilter
from secure_bloom.hudi.record_keys.bloom_filter import HudiBloomFilter
from secure_bloom.hudi.record_keys.packed_keys import PackedKeys

PICTURE = Path(__file__).parents[2] / "docs" / "pictures" / "hudi-growth.png"
FPP = 0.01
BYTES = 65_536
ROWS = 4
#: Rows of so many keys take BYTES together at FPP, and so does one filter for all of them.
EXPECTED = 4 * 13_674
LOADS = (0.1, 0.2, 0.3, 0.5, 0.75, 1, 1.25, 1.5, 2, 3, 4, 5, 7.5, 10, 15, 20)
PROBES = 1_000_000
LENGTH = 32


@dataclass(frozen=True, slots=True, kw_only=True)
class Point:
    """A filter at one load: its bytes, and the share of absent keys that it lets pass."""

    load: float
    size: int
    fpp: float


def main() -> None:
    """Measure, print and draw."""
    curves = measure()
    print_table(curves)
    draw(curves)


def random_keys(count: int, seed: int) -> PackedKeys:
    """Keys of 32 hexadecimal digits, as a UUID without its dashes."""
    digits = np.frombuffer(b"0123456789abcdef", np.uint8)
    data = digits[np.random.default_rng(seed).integers(0, 16, count * LENGTH, np.uint8)]
    return PackedKeys(offsets=np.arange(0, len(data) + 1, LENGTH), data=data)


def measure() -> dict[str, list[Point]]:
    """The curve of every filter."""
    keys, absent = random_keys(int(EXPECTED * LOADS[-1]), 1), random_keys(PROBES, 2)
    return {
        "SIMPLE": list(grow(SimpleBloomFilter(EXPECTED, FPP), keys, absent)),
        "DYNAMIC_V0": list(
            grow(DynamicBoundedBloomFilter(EXPECTED // ROWS, FPP, EXPECTED), keys, absent)
        ),
        "split block, folded": list(fold(keys, absent)),
    }


def grow(bloom_filter: HudiBloomFilter, keys: PackedKeys, absent: PackedKeys) -> Iterator[Point]:
    """One filter that gets the keys as they come."""
    start = 0
    for load in LOADS:
        stop = int(EXPECTED * load)
        bloom_filter.insert_packed(keys.part(start, stop))
        start = stop
        passing = float(bloom_filter.check_packed(absent).mean())
        yield Point(load=load, size=bloom_filter.byte_count, fpp=passing)


def fold(keys: PackedKeys, absent: PackedKeys) -> Iterator[Point]:
    """A filter for each load, built when all keys are there, as for files already written."""
    hashes = xxh64.hash_binary(absent.offsets, absent.data)
    for load in LOADS:
        count = int(EXPECTED * load)
        built = SplitBlockBloomFilter(block_count_for(count, FPP, BYTES))
        built.insert_binary(keys.offsets[: count + 1], keys.data)
        folded = built.folded_to(FPP)
        yield Point(
            load=load, size=folded.byte_count, fpp=float(folded.check_hashes(hashes).mean())
        )


def print_table(curves: dict[str, list[Point]]) -> None:
    """The table of docs/hudi.md."""
    print("| keys | " + " | ".join(f"{name} | bytes" for name in curves) + " |")
    print("| ---: " * (1 + 2 * len(curves)) + "|")
    for points in zip(*curves.values(), strict=True):
        cells = (f"{percent(point.fpp)} | {point.size:,}" for point in points)
        print(f"| {points[0].load:g} x | {' | '.join(cells)} |")


def percent(share: float) -> str:
    """Two or three digits of a share; none was seen where it is 0."""
    return f"< {100 / PROBES:.4f} %" if share == 0 else f"{100 * share:.3g} %"


COLORS = {"SIMPLE": "#b45309", "DYNAMIC_V0": "#7c3aed", "split block, folded": "#0f766e"}


def draw(curves: dict[str, list[Point]]) -> None:
    """False positives, and the bytes they cost, over the number of keys."""
    figure = Figure(figsize=(9.5, 4.2), layout="constrained")
    rates, sizes = figure.subplots(1, 2)
    plot(rates, curves, lambda point: 100 * point.fpp, "false positives, %")
    rates.set_yscale("log")
    mark_unseen(rates, curves)
    rates.yaxis.set_major_formatter(lambda value, _: f"{value:g}")
    rates.axhline(100 * FPP, color="#9ca3af", linewidth=0.8, linestyle="--")
    rates.annotate("asked for", (0.1, 100 * FPP), xytext=(0, 3), textcoords="offset points")
    plot(sizes, curves, lambda point: point.size / 1024, "KiB")
    sizes.set_ylim(0, 72)
    for axes in (rates, sizes):
        axes.legend(frameon=False, loc="lower right")
    figure.suptitle(f"Filters bounded by {BYTES // 1024} KiB, made for {EXPECTED:,} keys")
    PICTURE.parent.mkdir(exist_ok=True)
    figure.savefig(PICTURE, dpi=110, metadata={"Software": None})


def mark_unseen(axes: Axes, curves: dict[str, list[Point]]) -> None:
    """Open marks at the bound where no false positive was seen; no line leads there."""
    for name, points in curves.items():
        loads = [point.load for point in points if not point.fpp]
        bound = [100 / PROBES] * len(loads)
        axes.plot(loads, bound, "v", color=COLORS[name], fillstyle="none", markersize=5)


def plot(
    axes: Axes, curves: dict[str, list[Point]], value: Callable[[Point], float], label: str
) -> None:
    """One panel."""
    style: dict[str, Any] = {"marker": "o", "markersize": 3.5, "linewidth": 1.6}
    for name, points in curves.items():
        # What is 0 has no place on a logarithmic scale.
        seen = [point for point in points if value(point)]
        loads = [point.load for point in seen]
        axes.plot(loads, list(map(value, seen)), color=COLORS[name], label=name, **style)
    axes.set_xscale("log")
    ticks = (0.1, 0.2, 0.5, 1, 2, 5, 10, 20)
    axes.set_xticks(ticks, [f"{tick:g} x" for tick in ticks])
    axes.minorticks_off()
    axes.axvline(1, color="#9ca3af", linewidth=0.8)
    axes.set_xlabel("keys, of the expected number")
    axes.set_ylabel(label)
    axes.spines[["top", "right"]].set_visible(False)


if __name__ == "__main__":
    main()
