"""The other filters of the lake beside the split-block kernel, and Hudi lookups over many files.

All filters get the same keys, hashing included, in turns and on one thread.  What counts is the
cost per hash function that is worked out: a split block takes one of a key, Paimon and Hudi take k,
and of an absent key as many as it takes to find a bit that is not set.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeAlias
from unittest import mock

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from numpy.typing import NDArray

from benchmarks.harness.results import Measure, Result
from benchmarks.harness.timing import Side, medians
from secure_bloom import hudi
from secure_bloom.bloom import xxh64
from secure_bloom.bloom.split_block import SplitBlockBloomFilter
from secure_bloom.hudi import DynamicBoundedBloomFilter, SimpleBloomFilter, key_lookup
from secure_bloom.hudi.key_lookup import LookupReport, LookupStatus
from secure_bloom.hudi.record_keys.bloom_filter import HudiBloomFilter
from secure_bloom.hudi.record_keys.packed_keys import PackedKeys
from secure_bloom.paimon import BloomFilter64
from secure_bloom.storage import InputFile, open_input

LENGTH = 36
ROWS = 4
HUDI_FPPS = (0.05, 0.01, 1e-3, 1e-6, 1e-9)
PAIMON_FPPS = (0.1, 0.01)
#: What is timed, and the most that a hash function may cost.
WAYS = ("build", "ask for keys that are there", "ask for keys that are not")
GOAL = 3.0

Ask: TypeAlias = Callable[[PackedKeys], NDArray[np.bool_]]


@dataclass(frozen=True, slots=True, kw_only=True)
class Contender:
    """A filter that is full: how to build it anew, to ask it, and its hashes for each way."""

    name: str
    fpp: float
    byte_count: int
    build: Callable[[], object]
    ask: Ask
    functions: tuple[float, float, float]


def cases(folder: Path, *, quick: bool) -> Iterator[Result]:
    """Costs of Hudi's and Paimon's filters, then lookups."""
    count = 2_000 if quick else 200_000
    keys, absent = random_keys(count, 1), random_keys(count, 2)
    hudi_filters = [made for fpp in HUDI_FPPS for made in of_hudi(fpp, keys)]
    for system, contenders in (
        ("Hudi", hudi_filters),
        ("Paimon", [of_paimon(fpp, keys) for fpp in PAIMON_FPPS]),
    ):
        points = [costs(each, keys, absent, runs=1 if quick else 7) for each in contenders]
        yield from worst(system, points)
    files, keys_of_a_file = (20, 100) if quick else (1000, 10_000)
    yield from lookups(folder, files, keys_of_a_file)


def random_keys(count: int, seed: int) -> PackedKeys:
    """Keys as long as a UUID's text."""
    data = np.random.default_rng(seed).integers(ord("a"), ord("z"), count * LENGTH, np.uint8)
    return PackedKeys(offsets=np.arange(0, len(data) + 1, LENGTH), data=data)


def hashes_of(keys: PackedKeys) -> NDArray[np.uint64]:
    """What split blocks and Paimon take of a text."""
    return xxh64.hash_binary(keys.offsets, keys.data)


def of_hudi(fpp: float, keys: PackedKeys) -> Iterator[Contender]:
    """SIMPLE, and DYNAMIC_V0 in four rows."""
    count = len(keys.offsets) - 1
    for empty in (
        SimpleBloomFilter(count, fpp),
        DynamicBoundedBloomFilter(count // ROWS, fpp, count),
    ):
        text = empty.serialize()
        filled = empty
        filled.insert_packed(keys)
        kind, k = type(filled), filled.num_hashes
        yield Contender(
            name=f"{kind.TYPE_CODE}, {filled.rows} rows",
            fpp=fpp,
            byte_count=filled.byte_count,
            build=lambda kind=kind, text=text: kind.parse(text).insert_packed(keys),
            ask=filled.check_packed,
            functions=(k, k, hashes_of_absent(filled)),
        )


def hashes_of_absent(filled: HudiBloomFilter) -> float:
    """How many hashes of an absent key are worked out: until each row lacks a bit."""
    fill = filled.fill()
    return float(sum(1 - (1 - fill**n) ** filled.rows for n in range(filled.num_hashes)))


def of_paimon(fpp: float, keys: PackedKeys) -> Contender:
    """Paimon's only filter."""
    count = len(keys.offsets) - 1

    def build() -> BloomFilter64:
        made = BloomFilter64.sized(count, fpp)
        made.insert_hashes(hashes_of(keys).view(np.int64))
        return made

    filled = build()
    k = filled.hash_functions
    fill = filled.fill()
    return Contender(
        name="Paimon",
        fpp=fpp,
        byte_count=len(filled.bitset),
        build=build,
        ask=lambda asked: filled.check_hashes(hashes_of(asked).view(np.int64)),
        functions=(k, k, sum(fill**n for n in range(k))),
    )


def costs(it: Contender, keys: PackedKeys, absent: PackedKeys, *, runs: int) -> dict[str, object]:
    """Nanoseconds a key of each way, and what a hash function costs of the split block's."""
    count = len(keys.offsets) - 1
    blocks = -(-it.byte_count // 32)
    split = SplitBlockBloomFilter(blocks)
    split.insert_hashes(hashes_of(keys))
    sides: Sequence[Callable[[], object]] = (
        it.build,
        lambda: SplitBlockBloomFilter(blocks).insert_hashes(hashes_of(keys)),
        lambda: it.ask(keys),
        lambda: split.check_hashes(hashes_of(keys)),
        lambda: it.ask(absent),
        lambda: split.check_hashes(hashes_of(absent)),
    )
    times = [1e9 * s / count for s in medians(*(Side(run=run) for run in sides), runs=runs)]
    ours, split_block = times[::2], times[1::2]
    return {
        "filter": it.name,
        "fpp": it.fpp,
        "functions": it.functions[0],
        "bytes_per_key": it.byte_count / count,
        "seen": float(it.ask(absent).mean()),
        "ns": dict(zip(WAYS, ours, strict=True)),
        "ns_split_block": dict(zip(WAYS, split_block, strict=True)),
        "ns_per_function": {
            way: spent / functions
            for way, spent, functions in zip(WAYS, ours, it.functions, strict=True)
        },
    }


def worst(system: str, points: Sequence[dict[str, Any]]) -> Iterator[Result]:
    """Of all sizes of a system's filter, the one that stands worst to the split block."""
    for way in WAYS:
        point = max(points, key=lambda p: p["ns_per_function"][way] / p["ns_split_block"][way])
        yield Result(
            case=f"{system}'s filter, {way}, worst of {len(points)}",
            against="the split-block kernel, of as many bytes",
            unit="ns a key and hash",
            ours=point["ns_per_function"][way],
            other=point["ns_split_block"][way],
            measure=Measure.TIMES,
            goal=GOAL,
            note=f"{point['filter']}, {100 * point['fpp']:g} %, hashing of keys included",
            points=tuple(points) if way == WAYS[0] else (),
        )


def lookups(folder: Path, files: int, keys_of_a_file: int) -> Iterator[Result]:
    """Keys spread over all files, so that ranges rule nothing out; then keys that are nowhere."""
    numbers = write_files(folder, files, keys_of_a_file)
    hudi.add_record_key_filter(folder)
    rng = np.random.default_rng(4)
    some = [f"key-{n:012d}" for n in rng.choice(numbers, min(files, len(numbers)))]
    nowhere = [f"{key}x" for key in some]
    for name, wanted in (("present", some), ("absent", nowhere)):
        report, share = looked_up(folder, wanted)
        holders = {path for paths in report.found.values() for path in paths}
        read = {file.path for file in report.files if file.status is LookupStatus.READ}
        yield Result(
            case=f"Hudi lookup of {len(wanted):,} {name} keys in {files:,} files of "
            f"{keys_of_a_file:,}: files read that hold none",
            unit="files",
            ours=len(read - holders),
            measure=Measure.VALUE,
            goal=report.false_positives,
            note=f"{len(read)} files were read, {report.false_positives} keys were false positives;"
            f" {100 * share:.1f} % of all bytes, footers and filters included",
        )


def write_files(folder: Path, files: int, keys_of_a_file: int) -> NDArray[np.int64]:
    """Base files without filters; the numbers of their keys."""
    rng = np.random.default_rng(3)
    numbers = rng.permutation(files * keys_of_a_file)
    payload = pa.array(rng.bytes(100) for _ in range(keys_of_a_file))
    for i in range(files):
        part = numbers[i * keys_of_a_file : (i + 1) * keys_of_a_file]
        keys = pa.array(f"key-{n:012d}" for n in part)
        table = pa.table({"_hoodie_record_key": keys, "payload": payload})
        pq.write_table(table, folder / f"{i:05d}.parquet")
    return numbers


def looked_up(folder: Path, wanted: Sequence[str]) -> tuple[LookupReport, float]:
    """The lookup, and the share of all bytes that it read."""
    reads: list[int] = []

    def counting(path: str) -> InputFile:
        file = open_input(path)
        read = file._read
        file._read = lambda at, size: reads.append(size) or read(at, size)  # type: ignore
        return file

    with mock.patch.object(key_lookup, "open_input", counting):
        report = hudi.lookup(folder, wanted)
    return report, sum(reads) / sum(path.stat().st_size for path in folder.iterdir())
