"""The most memory that an add takes beyond a process that has added before.

`python -m benchmarks.suites.memory FILE WAY` is that process: it adds to a small file and then to
FILE, and prints how far its resident memory rose, in bytes.
"""

from __future__ import annotations

import re
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pyarrow as pa

from benchmarks.harness.data import add
from benchmarks.harness.results import Measure, Result
from benchmarks.harness.timing import python
from testing.tables import KEYRING, Mode, write

MIB = 1 << 20
STATUS = Path("/proc/self/status")
IN_PLACE, REPLACE = "in place", "replace"


def cases(folder: Path, *, quick: bool) -> Iterator[Result]:
    """One large row group, plain and encrypted, and many of one size."""
    large = (16 if quick else 1024) * MIB
    for mode in (Mode.PLAIN, Mode.ENCRYPTED):
        path = write_numbers(folder, mode, large, row_groups=1)
        yield Result(
            case=f"memory of an add to one chunk of {large // MIB:,} MiB, {mode.value}",
            against="its bytes, decompressed",
            unit="MiB",
            ours=peak(path, IN_PLACE) / MIB,
            other=large / MIB,
            measure=Measure.TIMES,
            goal=2,
        )
        path.unlink()
    # What is written is held until all of it is there; in place once more, aligned for the disk.
    for way, held, goal in ((REPLACE, 1, 1.25), (IN_PLACE, 2, None)):
        yield flatness(folder, (1 if quick else 32) * MIB, way, held, goal)


def peak(path: Path, way: str) -> int:
    """Bytes, as a process of its own measures them."""
    return int(python("-m", __spec__.name, path, way))


def flatness(folder: Path, size: int, way: str, held: int, goal: float | None) -> Result:
    """Row groups of one size, few and many: beyond the new filters, the same memory."""
    points = []
    for row_groups in (2, 8, 32):
        path = write_numbers(folder, Mode.PLAIN, size, row_groups=row_groups)
        before = path.stat().st_size
        most = peak(path, way)
        filters = path.stat().st_size - before
        points.append({"row_groups": row_groups, "peak": most / MIB, "filters": filters / MIB})
        path.unlink()
    rest = [point["peak"] - held * point["filters"] for point in points]
    times = {1: "", 2: " twice"}[held]
    return Result(
        case=f"memory for 32 row groups of {size // MIB} MiB, less their filters{times}, {way}",
        against="for 8 such row groups",
        unit="MiB",
        ours=rest[-1],
        other=rest[1],  # of two row groups, both threads are seldom at their most at once
        measure=Measure.TIMES,
        goal=goal,
        points=tuple(points),
    )


def write_numbers(folder: Path, mode: Mode, size: int, *, row_groups: int) -> Path:
    """Row groups of so many bytes of int64, all distinct."""
    path = folder / f"{row_groups}.parquet"
    rows = size // 8
    numbers = np.arange(rows * row_groups, dtype=np.uint64) * np.uint64(0x9E3779B97F4A7C15)
    table = pa.table({"n": numbers.view(np.int64)})
    keys = {"k_pii": ["n"]}
    write(path, table, mode, column_keys=keys, row_group_size=rows, use_dictionary=False)
    return path


def main() -> None:
    """The process that is measured."""
    path, in_place = Path(sys.argv[1]), sys.argv[2] == IN_PLACE
    with tempfile.TemporaryDirectory() as folder:
        small = Path(folder) / "small.parquet"
        write(small, pa.table({"n": np.arange(1000)}), Mode.ENCRYPTED, column_keys={"k_pii": ["n"]})
        add(small, ("n",), keys=KEYRING, in_place=in_place)
    Path("/proc/self/clear_refs").write_text("5")  # the peak starts anew
    before = resident("VmHWM")
    add(path, ("n",), keys=KEYRING, in_place=in_place)
    print(resident("VmHWM") - before)


def resident(field: str) -> int:
    """Bytes of a line of the kernel's account of this process."""
    return 1024 * int(re.findall(rf"{field}:\s+(\d+) kB", STATUS.read_text())[0])


if __name__ == "__main__":
    main()
