"""Hudi's filters beside the split-block filter, and lookups over many files: `benchmarks/hudi.py`.

Both filters get the same keys in turns in one process, on one thread, and the medians count; only
their ratio means something.  Goals: at most 3 times the split-block filter per hash function that
is worked out, and no file read that has no candidate.  Give the number of files for the lookup.
"""

from __future__ import annotations

import statistics
import sys
import tempfile
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from unittest import mock

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from secure_bloom import hudi, xxh64
from secure_bloom.hudi import DynamicBoundedBloomFilter, SimpleBloomFilter, searching
from secure_bloom.hudi.bloom.base import HudiBloomFilter
from secure_bloom.hudi.bloom.keys import PackedKeys
from secure_bloom.hudi.searching import LookupReport, LookupStatus
from secure_bloom.sbbf import SplitBlockBloomFilter
from secure_bloom.storage import InputFile, open_input

KEYS = 200_000
LENGTH = 36
RUNS = 7
FILES, KEYS_OF_A_FILE = 1000, 10_000
SEARCHED = 1000


@dataclass(frozen=True, slots=True, kw_only=True)
class Times:
    """Nanoseconds a key: built, asked for keys that are there, and for others."""

    build: float
    present: float
    absent: float


def main() -> None:
    """Print costs of filters, then of lookups."""
    keys, absent = random_keys(KEYS, 1), random_keys(KEYS, 2)
    header = ("filter", "fpp", "k", "bytes/key", "fpp seen", "build", "present", "absent")
    print(("{:24}" + "{:>10}" * 7).format(*header) + "   ns a key; per hash, to split block")
    for fpp in (0.05, 0.01, 1e-3, 1e-6, 1e-9):
        simple = SimpleBloomFilter(KEYS, fpp)
        dynamic = DynamicBoundedBloomFilter(KEYS // 4, fpp, KEYS)
        for made in (simple, dynamic):
            print_costs(made, fpp, keys, absent)
    count = int(sys.argv[1]) if len(sys.argv) > 1 else FILES
    with tempfile.TemporaryDirectory() as folder:
        print_lookup(Path(folder), count)


def random_keys(count: int, seed: int) -> PackedKeys:
    """Keys as long as a UUID's text."""
    data = np.random.default_rng(seed).integers(ord("a"), ord("z"), count * LENGTH, np.uint8)
    return PackedKeys(offsets=np.arange(0, len(data) + 1, LENGTH), data=data)


def print_costs(empty: HudiBloomFilter, fpp: float, keys: PackedKeys, absent: PackedKeys) -> None:
    """One filter beside a split-block filter of as many bytes."""
    text = empty.serialize()
    filled = empty
    filled.insert_packed(keys)
    blocks = -(-filled.byte_count // 32)
    split = SplitBlockBloomFilter(blocks)
    split.insert_binary(keys.offsets, keys.data)
    ours, theirs = [], []
    for _ in range(RUNS):
        again = type(empty).parse(text)
        ours.append(
            Times(
                build=per_key(lambda f=again: f.insert_packed(keys)),
                present=per_key(lambda: filled.check_packed(keys)),
                absent=per_key(lambda: filled.check_packed(absent)),
            )
        )
        theirs.append(
            Times(
                build=per_key(
                    lambda: SplitBlockBloomFilter(blocks).insert_binary(keys.offsets, keys.data)
                ),
                present=per_key(lambda: ask(split, keys)),
                absent=per_key(lambda: ask(split, absent)),
            )
        )
    mine, other = median(ours), median(theirs)
    seen = float(filled.check_packed(absent).mean())
    print(
        f"{type(empty).TYPE_CODE:11}{filled.rows:3} row(s)     {fpp:10.0e}{filled.num_hashes:10}"
        f"{filled.byte_count / KEYS:10.2f}{seen:10.2g}"
        f"{mine.build:10.0f}{mine.present:10.0f}{mine.absent:10.0f}   "
        f"build {mine.build / filled.num_hashes / other.build:.2f}, "
        f"present {mine.present / filled.num_hashes / other.present:.2f}, "
        f"absent {mine.absent / hashes_of_absent(filled) / other.absent:.2f} "
        f"(split block {other.build:.0f}, {other.present:.0f}, {other.absent:.0f})"
    )


def hashes_of_absent(filled: HudiBloomFilter) -> float:
    """How many hashes of an absent key are worked out: until each row lacks a bit."""
    fill = filled.fill()
    return sum(1 - (1 - fill**n) ** filled.rows for n in range(filled.num_hashes))


def ask(split: SplitBlockBloomFilter, keys: PackedKeys) -> object:
    """Hash and check."""
    return split.check_hashes(xxh64.hash_binary(keys.offsets, keys.data))


def per_key(run: Callable[[], object]) -> float:
    """Nanoseconds a key of one call."""
    start = time.perf_counter()
    run()
    return (time.perf_counter() - start) * 1e9 / KEYS


def median(times: list[Times]) -> Times:
    """The median of each."""
    return Times(
        build=statistics.median(t.build for t in times),
        present=statistics.median(t.present for t in times),
        absent=statistics.median(t.absent for t in times),
    )


def print_lookup(folder: Path, files: int) -> None:
    """Keys spread over all files, so that ranges rule nothing out; then keys that are nowhere."""
    rng = np.random.default_rng(3)
    numbers = rng.permutation(files * KEYS_OF_A_FILE)
    payload = pa.array(rng.bytes(100) for _ in range(KEYS_OF_A_FILE))
    for i in range(files):
        part = numbers[i * KEYS_OF_A_FILE : (i + 1) * KEYS_OF_A_FILE]
        keys = pa.array(f"key-{n:012d}" for n in part)
        table = pa.table({"_hoodie_record_key": keys, "payload": payload})
        pq.write_table(table, folder / f"{i:05d}.parquet")
    started = time.perf_counter()
    report = hudi.add_record_key_filter(folder)
    seconds = time.perf_counter() - started
    grown = sum((f.bytes_after or 0) - (f.bytes_before or 0) for f in report.files)
    print(
        f"\nadded to {files} files of {KEYS_OF_A_FILE} keys in {seconds:.1f} s, "
        f"{grown / files / KEYS_OF_A_FILE:.2f} bytes a key in the footer"
    )
    few = [f"key-{n:012d}" for n in numbers[: 5 * KEYS_OF_A_FILE : KEYS_OF_A_FILE]]
    many = [f"key-{n:012d}" for n in rng.choice(numbers, SEARCHED)]
    nowhere = [f"key-{n:012d}x" for n in rng.choice(numbers, SEARCHED)]
    for name, wanted in (("5 keys", few), ("1,000 keys", many), ("1,000 absent", nowhere)):
        print_one_lookup(folder, name, wanted)


def print_one_lookup(folder: Path, name: str, wanted: list[str]) -> None:
    """How many files were read, which share of all bytes, and in which time."""
    reads: list[int] = []

    def counting(path: str) -> InputFile:
        file = open_input(path)
        read = file._read
        file._read = lambda at, size: reads.append(size) or read(at, size)  # type: ignore
        return file

    with mock.patch.object(searching, "open_input", counting):
        report = hudi.lookup(folder, wanted)
    started = time.perf_counter()
    hudi.lookup(folder, wanted)
    seconds = time.perf_counter() - started
    size = sum(path.stat().st_size for path in folder.iterdir())
    print(
        f"{name:14}{report.count(LookupStatus.READ):6} files read of {len(report.files)}, "
        f"{holders(report)} of them hold keys, {report.false_positives} false positives; "
        f"{100 * sum(reads) / size:.1f} % of all bytes; {seconds:.2f} s"
    )


def holders(report: LookupReport) -> int:
    """Files that hold a key."""
    return len({path for paths in report.found.values() for path in paths})


if __name__ == "__main__":
    main()
