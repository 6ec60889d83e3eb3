"""The compiled kernels beside the same loops in C: `python benchmarks/kernels.py`, needs gcc.

Both sides run each case in turns, on one thread, and the shortest run of each counts; their results
are compared bit for bit.  Goal: at most 1.5 times the time of C (gcc -O3 -mavx2).
"""

from __future__ import annotations

import ctypes
import platform
import subprocess
import tempfile
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from secure_bloom import xxh64
from secure_bloom.sbbf import SplitBlockBloomFilter

SOURCE = Path(__file__).with_suffix(".c")
RUNS = 9
INTEGERS = 10_000_000
STRINGS = 2_000_000
BLOCK_COUNT = (2 << 20) // 32

Result: TypeAlias = NDArray[np.uint64] | bytes


@dataclass(frozen=True, slots=True, kw_only=True)
class Case:
    """One loop in both languages: hashes of that many values, or the bits they leave."""

    name: str
    values: int
    ours: Callable[[], Result]
    in_c: Callable[[], Result]


def main() -> None:
    """Run every case; print nanoseconds a value and the ratio."""
    print(f"{'':30}{'ours':>8}{'C':>8}  ns a value")
    with tempfile.TemporaryDirectory() as folder:
        c = compiled_c(Path(folder))
        for case in [*integer_cases(c), string_case(c, 24), string_case(c, 100)]:
            ours, in_c = shortest_runs(case)
            print(f"{case.name:30}{ours:8.2f}{in_c:8.2f}  {ours / in_c:.2f} times C")


def compiled_c(folder: Path) -> ctypes.CDLL:
    """The C side as a library.  -mavx2 where there is AVX2; other CPUs have their own vectors."""
    avx2 = ["-mavx2"] if platform.machine() in ("x86_64", "AMD64") else []
    library = folder / "kernels.so"
    subprocess.run(
        ["gcc", "-O3", *avx2, "-shared", "-fPIC", "-o", str(library), str(SOURCE)], check=True
    )
    return ctypes.CDLL(str(library))


def shortest_runs(case: Case) -> tuple[float, float]:
    """The shortest run of either side, in nanoseconds a value."""
    if not np.array_equal(case.ours(), case.in_c()):  # compiles ours, too
        raise SystemExit(f"{case.name}: the results differ")
    times = [(seconds(case.ours), seconds(case.in_c)) for _ in range(RUNS)]
    return min(t for t, _ in times) * 1e9 / case.values, min(
        t for _, t in times
    ) * 1e9 / case.values


def seconds(run: Callable[[], Result]) -> float:
    """The time of one call."""
    start = time.perf_counter()
    run()
    return time.perf_counter() - start


def pointer(array: NDArray[np.generic]) -> ctypes.c_void_p:
    """An array as C sees it."""
    return ctypes.c_void_p(array.ctypes.data)


def integer_cases(c: ctypes.CDLL) -> list[Case]:
    """Hash int64, insert their hashes, and both at once."""
    n, z = ctypes.c_size_t(INTEGERS), ctypes.c_uint64(BLOCK_COUNT)
    values = np.random.default_rng(1).integers(-(2**63), 2**63 - 1, INTEGERS)
    hashes = xxh64.hash_fixed(values)

    def hash_in_c() -> Result:
        c_hashes = np.empty(INTEGERS, np.uint64)
        c.hash_fixed(pointer(values), pointer(c_hashes), n)
        return c_hashes

    def insert_hashes() -> Result:
        bloom = SplitBlockBloomFilter(BLOCK_COUNT)
        bloom.insert_hashes(hashes)
        return bloom.to_bytes()

    def insert_fixed() -> Result:
        bloom = SplitBlockBloomFilter(BLOCK_COUNT)
        bloom.insert_fixed(values)
        return bloom.to_bytes()

    def insert_in_c(insert: Callable[..., None], array: NDArray[np.generic]) -> Result:
        bits = np.zeros(BLOCK_COUNT * 32, np.uint8)
        insert(pointer(bits), z, pointer(array), n)
        return bits.tobytes()

    return [
        Case(
            name="hash 10 M int64",
            values=INTEGERS,
            ours=lambda: xxh64.hash_fixed(values),
            in_c=hash_in_c,
        ),
        Case(
            name="insert 10 M hashes, 2 MiB",
            values=INTEGERS,
            ours=insert_hashes,
            in_c=lambda: insert_in_c(c.insert_hashes, hashes),
        ),
        Case(
            name="hash + insert 10 M int64",
            values=INTEGERS,
            ours=insert_fixed,
            in_c=lambda: insert_in_c(c.insert_fixed, values),
        ),
    ]


def string_case(c: ctypes.CDLL, length: int) -> Case:
    """Hash strings of one length that lie one after the other."""
    data = np.random.default_rng(2).integers(0, 256, STRINGS * length, np.uint8)
    offsets = np.arange(0, len(data) + 1, length, dtype=np.int32)

    def hash_in_c() -> Result:
        hashes = np.empty(STRINGS, np.uint64)
        c.hash_binary(pointer(offsets), pointer(data), pointer(hashes), ctypes.c_size_t(STRINGS))
        return hashes

    return Case(
        name=f"hash 2 M strings of {length}",
        values=STRINGS,
        ours=lambda: xxh64.hash_binary(offsets, data),
        in_c=hash_in_c,
    )


if __name__ == "__main__":
    main()
