"""What the first call pays: kernels are compiled once, and each time where nothing can be kept."""

from __future__ import annotations

import shutil
import statistics
import tempfile
from collections.abc import Iterator, Mapping
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

from benchmarks.results import Measure, Result
from benchmarks.timing import python
from secure_bloom import __file__ as package

#: Adds to copies of a file twice, and prints the seconds of each; compiled code counts as worth it.
TWICE = """
import shutil, sys, time
import secure_bloom as sb
from secure_bloom.kernels.loading import CompiledCode
CompiledCode.is_worth = lambda self, saved: True
for i in range(2):
    copy = sys.argv[1] + str(i)
    shutil.copyfile(sys.argv[1], copy)
    start = time.perf_counter()
    report = sb.add_bloom_filters(copy, columns=["number", "text"])
    print(time.perf_counter() - start)
    assert not report.failed
"""


def cases(folder: Path, *, quick: bool) -> Iterator[Result]:
    """The first add of a process: nothing compiled, compiled before, and a read-only install."""
    path = folder / "small.parquet"
    numbers = list(range(10_000))
    pq.write_table(pa.table({"number": numbers, "text": [f"value {i}" for i in numbers]}), path)
    runs = 1 if quick else 3
    cold = [first_add(path, {"NUMBA_CACHE_DIR": new_folder(folder)}) for _ in range(runs)]
    kept = {"NUMBA_CACHE_DIR": new_folder(folder)}
    first_add(path, kept)
    warm = statistics.median(first_add(path, kept) for _ in range(runs))
    read_only = [first_add(path, read_only_install(folder)) for _ in range(runs)]
    for name, times in (("ever: compiles", cold), ("in a read-only install", read_only)):
        yield Result(
            case=f"first add {name}",
            against="first add of a later process",
            unit="s",
            ours=statistics.median(times),
            other=warm,
            measure=Measure.TIMES,
            note="a file of 10,000 rows, filters on an int64 and a string column, imports included",
        )


def first_add(path: Path, env: Mapping[str, str]) -> float:
    """Seconds of the first add of a new process."""
    return float(python("-c", TWICE, path, env=env).split()[0])


def new_folder(folder: Path) -> str:
    """An empty one."""
    return tempfile.mkdtemp(dir=folder)


def read_only_install(folder: Path) -> dict[str, str]:
    """The environment of a copy of the package beside which nothing can be written.

    A file stands where a folder is wanted: permissions would not stop root.
    """
    place = Path(new_folder(folder))
    ignored = shutil.ignore_patterns("__pycache__")
    shutil.copytree(Path(package).parent, place / "secure_bloom", ignore=ignored)
    home = place / "home"
    for name in (place / "secure_bloom" / "kernels" / "__pycache__", home):
        name.touch()
    return {
        "PYTHONPATH": str(place),
        "PYTHONSAFEPATH": "1",  # not the package in the current folder
        "HOME": str(home),
        "XDG_CACHE_HOME": str(home / "cache"),
        "NUMBA_CACHE_DIR": "",
        "PYTHONDONTWRITEBYTECODE": "1",
    }
