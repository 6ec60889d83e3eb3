"""The kernels beside the same loops compiled by gcc -O3 -mavx2: one thread, same bits.

Needs gcc.  ``kernels.c`` is the other side.
"""

from __future__ import annotations

import ctypes
import platform
import subprocess
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from benchmarks.harness.results import Measure, Result
from benchmarks.harness.timing import Side, medians
from secure_bloom.bloom import xxh64
from secure_bloom.bloom.split_block import SplitBlockBloomFilter

SOURCE = Path(__file__).with_suffix(".c")
RUNS = 9
BLOCK_COUNT = (2 << 20) // 32

Output: TypeAlias = NDArray[np.uint64] | bytes


@dataclass(frozen=True, slots=True, kw_only=True)
class Loop:
    """One loop in both languages: hashes of that many values, or the bits they leave."""

    name: str
    values: int
    ours: Callable[[], Output]
    in_c: Callable[[], Output]
    goal: float | None = None


def cases(folder: Path, *, quick: bool) -> Iterator[Result]:
    """Nanoseconds a value of every loop."""
    c = compiled_c(folder)
    integers, strings = (1_000_000, 200_000) if quick else (10_000_000, 2_000_000)
    for loop in [*integer_loops(c, integers), *(string_loop(c, strings, n) for n in (24, 100))]:
        if not np.array_equal(loop.ours(), loop.in_c()):
            raise SystemExit(f"{loop.name}: the results differ")
        ours, in_c = medians(Side(run=loop.ours), Side(run=loop.in_c), runs=RUNS)
        yield Result(
            case=loop.name,
            against="the same loop in C, one thread",
            unit="ns a value",
            ours=ours * 1e9 / loop.values,
            other=in_c * 1e9 / loop.values,
            measure=Measure.TIMES,
            goal=loop.goal,
        )


def compiled_c(folder: Path) -> ctypes.CDLL:
    """The C side as a library.  -mavx2 where there is AVX2; other CPUs have their own vectors."""
    avx2 = ["-mavx2"] if platform.machine() in ("x86_64", "AMD64") else []
    library = folder / "kernels.so"
    subprocess.run(
        ["gcc", "-O3", *avx2, "-shared", "-fPIC", "-o", str(library), str(SOURCE)], check=True
    )
    return ctypes.CDLL(str(library))


def pointer(array: NDArray[np.generic]) -> ctypes.c_void_p:
    """An array as C sees it."""
    return ctypes.c_void_p(array.ctypes.data)


def integer_loops(c: ctypes.CDLL, count: int) -> list[Loop]:
    """Hash int64, insert their hashes, and both at once."""
    n, z = ctypes.c_size_t(count), ctypes.c_uint64(BLOCK_COUNT)
    values = np.random.default_rng(1).integers(-(2**63), 2**63 - 1, count)
    hashes = xxh64.hash_fixed(values)

    def hash_in_c() -> Output:
        c_hashes = np.empty(count, np.uint64)
        c.hash_fixed(pointer(values), pointer(c_hashes), n)
        return c_hashes

    def insert_hashes() -> Output:
        bloom = SplitBlockBloomFilter(BLOCK_COUNT)
        bloom.insert_hashes(hashes)
        return bloom.to_bytes()

    def insert_fixed() -> Output:
        bloom = SplitBlockBloomFilter(BLOCK_COUNT)
        bloom.insert_fixed(values)
        return bloom.to_bytes()

    def insert_in_c(insert: Callable[..., None], array: NDArray[np.generic]) -> Output:
        bits = np.zeros(BLOCK_COUNT * 32, np.uint8)
        insert(pointer(bits), z, pointer(array), n)
        return bits.tobytes()

    return [
        Loop(
            name=f"hash {count:,} int64",
            values=count,
            ours=lambda: xxh64.hash_fixed(values),
            in_c=hash_in_c,
        ),
        Loop(
            name=f"insert {count:,} hashes into 2 MiB",
            values=count,
            ours=insert_hashes,
            in_c=lambda: insert_in_c(c.insert_hashes, hashes),
        ),
        Loop(
            name=f"hash and insert {count:,} int64 into 2 MiB",
            values=count,
            ours=insert_fixed,
            in_c=lambda: insert_in_c(c.insert_fixed, values),
            goal=1.5,
        ),
    ]


def string_loop(c: ctypes.CDLL, count: int, length: int) -> Loop:
    """Hash strings of one length that lie one after the other."""
    data = np.random.default_rng(2).integers(0, 256, count * length, np.uint8)
    offsets = np.arange(0, len(data) + 1, length, dtype=np.int32)

    def hash_in_c() -> Output:
        hashes = np.empty(count, np.uint64)
        c.hash_binary(pointer(offsets), pointer(data), pointer(hashes), ctypes.c_size_t(count))
        return hashes

    return Loop(
        name=f"hash {count:,} strings of {length} bytes",
        values=count,
        ours=lambda: xxh64.hash_binary(offsets, data),
        in_c=hash_in_c,
        goal=1.5,
    )
