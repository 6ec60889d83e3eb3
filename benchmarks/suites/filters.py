"""The three filters of the lake side by side.

`python -m benchmarks.suites.filters`, extra "bench".

Parquet's split-block filter, Paimon's BloomFilter64 and Hudi's DYNAMIC_V0 with the same keys, in
turns in one process and on one thread.  Sizes and false positives are what they are anywhere; of
times only the ratios mean something.  Prints the tables of docs/filters.md and draws its pictures.
Goal: building and asking Paimon's filter costs at most 3 times the split-block kernel per hash
function that is worked out.
"""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from numpy.typing import NDArray

from secure_bloom.bloom import xxh64
from secure_bloom.bloom.sizing import block_count_for
from secure_bloom.bloom.split_block import SplitBlockBloomFilter
from secure_bloom.hudi import DynamicBoundedBloomFilter, SimpleBloomFilter
from secure_bloom.hudi.record_keys.bloom_filter import HudiBloomFilter
from secure_bloom.hudi.record_keys.packed_keys import PackedKeys
from secure_bloom.paimon import BloomFilter64, hash_longs, sizing

PICTURES = Path(__file__).parents[2] / "docs" / "pictures"
KEYS, ABSENT, LENGTH = 100_000, 1_000_000, 36
RUNS = 9
FPPS = (0.2, 0.1, 0.05, 0.02, 0.01, 1e-3, 1e-4, 1e-5)
LOADS = (0.1, 0.2, 0.5, 1, 1.5, 2, 3, 5, 10)
COUNTS = (1, 10, 100, 1_000, 10_000, 100_000, 1_000_000, 3_000_000)
#: More than the caches hold.
MANY_KEYS = 5_000_000
ROWS = 4

SPLIT, PAIMON, HUDI = "split block", "Paimon", "Hudi DYNAMIC_V0"
COUNTED = "Paimon, items counted"
COLORS = {SPLIT: "#0f766e", PAIMON: "#1d4ed8", COUNTED: "#60a5fa", HUDI: "#7c3aed"}

Hashes: TypeAlias = NDArray[Any]


@dataclass(frozen=True, slots=True, kw_only=True)
class Point:
    """A filter of so many bytes a key (or bytes), and the share of absent keys it lets pass."""

    x: float
    y: float


Curves: TypeAlias = Mapping[str, Sequence[Point]]


def main() -> None:
    """Measure, print and draw everything."""
    keys, absent = random_keys(KEYS, 1), random_keys(ABSENT, 2)
    sizes = measure_sizes(keys, absent)
    print_sizes(sizes)
    print_numbers()
    growth = measure_growth(random_keys(int(KEYS * LOADS[-1]), 1), absent)
    print_growth(growth)
    print_costs(keys, random_keys(KEYS, 2))
    print_ratios()
    PICTURES.mkdir(exist_ok=True)
    draw_sizes(sizes)
    draw_growth(growth)


def random_keys(count: int, seed: int) -> PackedKeys:
    """Texts as long as a UUID's."""
    data = np.random.default_rng(seed).integers(ord("a"), ord("z"), count * LENGTH, np.uint8)
    return PackedKeys(offsets=np.arange(0, len(data) + 1, LENGTH), data=data)


def hashes_of(keys: PackedKeys) -> NDArray[np.uint64]:
    """XXH64 of each key, which is what split blocks and Paimon take of a text."""
    return xxh64.hash_binary(keys.offsets, keys.data)


def split_block(blocks: int, hashes: Hashes) -> SplitBlockBloomFilter:
    """A filled split-block filter."""
    made = SplitBlockBloomFilter(blocks)
    made.insert_hashes(hashes)
    return made


def paimon(items: int, fpp: float, hashes: Hashes) -> BloomFilter64:
    """A filled filter of Paimon's, sized by its rule."""
    made = BloomFilter64.sized(items, fpp)
    made.insert_hashes(hashes.view(np.int64))
    return made


def hudi_dynamic(fpp: float, keys: PackedKeys, expected: int, bound: int) -> HudiBloomFilter:
    """A filled filter of Hudi's that starts with a row for a quarter of the expected keys."""
    made = DynamicBoundedBloomFilter(expected // ROWS, fpp, bound)
    made.insert_packed(keys)
    return made


def measure_sizes(keys: PackedKeys, absent: PackedKeys) -> Curves:
    """Bytes a key against the false positives that are seen."""
    present, others = hashes_of(keys), hashes_of(absent)
    curves: dict[str, list[Point]] = {SPLIT: [], PAIMON: [], HUDI: []}
    for fpp in FPPS:
        bits, _ = sizing(KEYS, fpp)
        split = split_block(bits // 256, present)
        curves[SPLIT].append(point(split.byte_count, split.check_hashes(others)))
        made = paimon(KEYS, fpp, present)
        passing = made.check_hashes(others.view(np.int64))
        curves[PAIMON].append(point(len(made.bitset), passing))
        grown = hudi_dynamic(fpp, keys, KEYS, KEYS)
        curves[HUDI].append(point(grown.byte_count, grown.check_packed(absent)))
    return curves


def point(size: int, passing: NDArray[np.bool_]) -> Point:
    """A filter of KEYS keys on the first picture."""
    return Point(x=size / KEYS, y=float(passing.mean()))


def print_sizes(curves: Curves) -> None:
    """The first table."""
    print(
        "| fpp asked for | " + " | ".join(f"{name}: bytes a key | seen" for name in curves) + " |"
    )
    print("| ---: " * (1 + 2 * len(curves)) + "|")
    for fpp, *points in zip(FPPS, *curves.values(), strict=True):
        cells = (f"{each.x:.2f} | {percent(each.y)}" for each in points)
        print(f"| {100 * fpp:g} % | {' | '.join(cells)} |")
    print()


def print_numbers() -> None:
    """What Paimon's hash of numbers does with ids that follow one another, and with 0."""
    made = BloomFilter64.sized(KEYS, 0.01)
    made.insert_hashes(hash_longs(np.arange(1, KEYS + 1)))
    others = made.check_hashes(hash_longs(np.arange(KEYS + 1, KEYS + 1 + ABSENT)))
    zeros = 0
    for seed in range(200):
        few = BloomFilter64.sized(1000, 0.01)
        start = 1 + 1000 * seed
        few.insert_hashes(hash_longs(np.arange(start, start + 1000)))
        zeros += few.check_hash(0)
    print(
        f"ids in a row: {percent(float(others.mean()))}; an absent 0: {zeros / 2:.0f} % of files\n"
    )


def measure_growth(keys: PackedKeys, absent: PackedKeys) -> tuple[Curves, Curves]:
    """False positives, and bytes, of filters that were made for KEYS keys at 1 %."""
    rates: dict[str, list[Point]] = {name: [] for name in COLORS}
    sizes: dict[str, list[Point]] = {name: [] for name in COLORS}
    others, hashes = hashes_of(absent), hashes_of(keys)
    for load in LOADS:
        count = int(KEYS * load)
        # Made when the values are there, so for as many as there are.
        built = split_block(block_count_for(count, 0.01, 1 << 27), hashes[:count]).folded_to(0.01)
        fixed = paimon(KEYS, 0.01, hashes[:count])
        counted = paimon(count, 0.01, hashes[:count])
        grown = hudi_dynamic(0.01, keys.part(0, count), KEYS, KEYS)
        for name, size, passing in (
            (SPLIT, built.byte_count, built.check_hashes(others)),
            (PAIMON, len(fixed.bitset), fixed.check_hashes(others.view(np.int64))),
            (COUNTED, len(counted.bitset), counted.check_hashes(others.view(np.int64))),
            (HUDI, grown.byte_count, grown.check_packed(absent)),
        ):
            rates[name].append(Point(x=load, y=float(passing.mean())))
            sizes[name].append(Point(x=load, y=size))
    return rates, sizes


def print_growth(growth: tuple[Curves, Curves]) -> None:
    """The second table."""
    rates, sizes = growth
    print("| values | " + " | ".join(f"{name} | bytes" for name in rates) + " |")
    print("| ---: " * (1 + 2 * len(rates)) + "|")
    for i, load in enumerate(LOADS):
        cells = (f"{percent(rates[name][i].y)} | {sizes[name][i].y:,.0f}" for name in rates)
        print(f"| {load:g} x | {' | '.join(cells)} |")
    print()


def print_costs(keys: PackedKeys, absent: PackedKeys) -> None:
    """Nanoseconds a key, hashing included, at 1 %."""
    bits, functions = sizing(KEYS, 0.01)
    split, made = SplitBlockBloomFilter(bits // 256), BloomFilter64.sized(KEYS, 0.01)
    grown = DynamicBoundedBloomFilter(KEYS // ROWS, 0.01, KEYS)
    simple = SimpleBloomFilter(KEYS, 0.01)
    ids, other_ids = np.arange(1, KEYS + 1), np.arange(KEYS + 1, 2 * KEYS + 1)

    def grow() -> None:
        DynamicBoundedBloomFilter(KEYS // ROWS, 0.01, KEYS).insert_packed(keys)

    grow()
    grown.insert_packed(keys)
    rows: list[tuple[str, object, list[Callable[[], object]]]] = [
        ("split block, text", 1, [
            lambda: split.insert_hashes(hashes_of(keys)),
            lambda: split.check_hashes(hashes_of(keys)),
            lambda: split.check_hashes(hashes_of(absent)),
        ]),
        ("Paimon, text", functions, [
            lambda: made.insert_hashes(hashes_of(keys).view(np.int64)),
            lambda: made.check_hashes(hashes_of(keys).view(np.int64)),
            lambda: made.check_hashes(hashes_of(absent).view(np.int64)),
        ]),
        ("Hudi SIMPLE, text", simple.num_hashes, [
            lambda: simple.insert_packed(keys),
            lambda: simple.check_packed(keys),
            lambda: simple.check_packed(absent),
        ]),
        ("Hudi DYNAMIC_V0, 4 rows, text", grown.num_hashes, [
            grow,
            lambda: grown.check_packed(keys),
            lambda: grown.check_packed(absent),
        ]),
        ("split block, BIGINT", 1, [
            lambda: split.insert_hashes(xxh64.hash_fixed(ids)),
            lambda: split.check_hashes(xxh64.hash_fixed(ids)),
            lambda: split.check_hashes(xxh64.hash_fixed(other_ids)),
        ]),
        ("Paimon, BIGINT", functions, [
            lambda: made.insert_hashes(hash_longs(ids)),
            lambda: made.check_hashes(hash_longs(ids)),
            lambda: made.check_hashes(hash_longs(other_ids)),
        ]),
    ]  # fmt: skip
    print(
        "| filter | hashes a key | build | present | absent |\n| --- | ---: | ---: | ---: | ---: |"
    )
    for name, count, runs in rows:
        times = " | ".join(f"{each:.1f} ns" for each in medians(runs, KEYS))
        print(f"| {name} | {count} | {times} |")
    print()


def print_ratios() -> None:
    """The kernels alone, on hashes that are there: Paimon's to the split block's."""
    print("| values | fpp | k | split block: build | ask | Paimon: build | ask | per function |")
    print("| ---: " * 8 + "|")
    for count in (KEYS, MANY_KEYS):
        rng = np.random.default_rng(3)
        hashes = rng.integers(0, 1 << 64, count, np.uint64)
        others = rng.integers(0, 1 << 64, count, np.uint64)
        for fpp in (0.1, 0.01):
            print_ratio(count, fpp, hashes, others)


def print_ratio(count: int, fpp: float, hashes: Hashes, others: Hashes) -> None:
    """One row: nanoseconds a value, and Paimon's per hash function to the split block's."""
    bits, functions = sizing(count, fpp)
    split, made = SplitBlockBloomFilter(bits // 256), BloomFilter64.sized(count, fpp)
    signed, other_signed = hashes.view(np.int64), others.view(np.int64)
    times = medians(
        [
            lambda: split.insert_hashes(hashes),
            lambda: split.check_hashes(others),
            lambda: made.insert_hashes(signed),
            lambda: made.check_hashes(other_signed),
        ],
        count,
    )
    ratios = ", ".join(f"{times[i + 2] / functions / times[i]:.2f} x" for i in range(2))
    cells = " | ".join(f"{each:.1f} ns" for each in times)
    print(f"| {count:,} | {100 * fpp:g} % | {functions} | {cells} | {ratios} |")


def medians(runs: Sequence[Callable[[], object]], keys: int) -> list[float]:
    """The median of each in nanoseconds a key; they run in turns, the first round not counted."""
    rounds = [[seconds(run) for run in runs] for _ in range(RUNS + 1)]
    return [1e9 * statistics.median(each) / keys for each in zip(*rounds[1:], strict=True)]


def seconds(run: Callable[[], object]) -> float:
    """The time of one call."""
    start = time.perf_counter()
    run()
    return time.perf_counter() - start


def percent(share: float) -> str:
    """Three digits of a share; none was seen where it is 0."""
    return f"< {100 / ABSENT:.4f} %" if share == 0 else f"{100 * share:.3g} %"


def draw_sizes(curves: Curves) -> None:
    """Bytes a key over false positives; bytes of a file's filter over its values, by default."""
    figure = Figure(figsize=(9.5, 4.2), layout="constrained")
    rates, defaults = figure.subplots(1, 2)
    for name, points in curves.items():
        rate_line(rates, name, points)
    rates.set_yscale("log")
    rates.yaxis.set_major_formatter(lambda value, _: f"{value:g}")
    rates.set_xlabel("bytes a key")
    rates.set_ylabel("false positives seen, %")
    for name, points in dict(default_sizes()).items():
        line(defaults, name, [each.x for each in points], [each.y for each in points])
    defaults.set_xscale("log")
    defaults.set_yscale("log")
    defaults.set_xlabel("distinct values in a file")
    defaults.set_ylabel("bytes of the filter, by default")
    for axes in (rates, defaults):
        axes.legend(frameon=False)
    figure.savefig(PICTURES / "filters-size.png", dpi=110, metadata={"Software": None})


def default_sizes() -> Iterator[tuple[str, list[Point]]]:
    """What each takes for a file where nobody says how many values it has."""
    yield SPLIT, [Point(x=n, y=32 * block_count_for(n, 0.01, 1 << 27)) for n in COUNTS]
    paimon_default = sizing(1_000_000, 0.1)[0] // 8
    yield PAIMON, [Point(x=n, y=paimon_default) for n in COUNTS]
    yield COUNTED, [Point(x=n, y=sizing(n, 0.1)[0] // 8) for n in COUNTS]
    row = DynamicBoundedBloomFilter(60_000, 1e-9, 100_000).byte_count
    yield HUDI, [Point(x=n, y=row * (2 if n > 60_000 else 1)) for n in COUNTS]


def draw_growth(growth: tuple[Curves, Curves]) -> None:
    """False positives and bytes over the number of values."""
    figure = Figure(figsize=(9.5, 4.2), layout="constrained")
    rates, sizes = figure.subplots(1, 2)
    for name, points in growth[0].items():
        rate_line(rates, name, points)
    for name, points in growth[1].items():
        line(sizes, name, [each.x for each in points], [each.y / 1024 for each in points])
    for axes in (rates, sizes):
        axes.set_xscale("log")
        ticks = [load for load in LOADS if load not in (1.5, 3)]
        axes.set_xticks(ticks, [f"{tick:g} x" for tick in ticks])
        axes.minorticks_off()
        axes.axvline(1, color="#9ca3af", linewidth=0.8)
        axes.set_xlabel("distinct values, of the expected number")
    rates.set_yscale("log")
    rates.yaxis.set_major_formatter(lambda value, _: f"{value:g}")
    rates.set_ylabel("false positives, %")
    sizes.set_yscale("log")
    sizes.yaxis.set_major_formatter(lambda value, _: f"{value:g}")
    sizes.set_ylabel("KiB")
    for axes in (rates, sizes):
        axes.legend(frameon=False)
    figure.savefig(PICTURES / "filters-growth.png", dpi=110, metadata={"Software": None})


def rate_line(axes: Axes, name: str, points: Sequence[Point]) -> None:
    """False positives in per cent; an open mark at the bound where none was seen."""
    seen = [each for each in points if each.y]
    line(axes, name, [each.x for each in seen], [100 * each.y for each in seen])
    unseen = [each.x for each in points if not each.y]
    bound = [100 / ABSENT] * len(unseen)
    axes.plot(unseen, bound, "v", color=COLORS[name], fillstyle="none", markersize=5)


def line(axes: Axes, name: str, x: Sequence[float], y: Sequence[float]) -> None:
    """One filter."""
    axes.plot(x, y, color=COLORS[name], label=name, marker="o", markersize=3.5, linewidth=1.6)
    axes.spines[["top", "right"]].set_visible(False)


if __name__ == "__main__":
    main()
