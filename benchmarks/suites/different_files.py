"""Many small files, each different: adding filters and looking at footers, beside pyarrow.

Each file has 2 or 3 row groups and 10 columns, most with dictionaries; no two files are alike.

`python -m benchmarks.suites.different_files SOURCE TARGET [--encrypted]` is pyarrow's side: two
processes read each file of a folder and write it anew with filters.
"""

from __future__ import annotations

import resource
import shutil
import sys
import tempfile
from collections.abc import Callable, Iterator
from concurrent.futures import ProcessPoolExecutor
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pyarrow.parquet.encryption as pe

import secure_bloom as sb
from benchmarks.harness.data import COLUMNS, POLICY, copy_beside, write_policy
from benchmarks.harness.results import Measure, Result
from benchmarks.harness.timing import Side, process
from benchmarks.suites.small_files import against_pyarrow, costs
from testing.tables import KEYRING, Mode, crypto_factory, write

RUNS = 3
_ROWS = 1000
_KEYS = {"id": "k_finance", "email": "k_pii"}
_ENCRYPTED = "--encrypted"
_MEMORY_DISK = Path("/dev/shm")


def cases(folder: Path, *, quick: bool) -> Iterator[Result]:
    """Adding on a disk and on a memory disk, plain and encrypted; then looking at the files."""
    files, runs = (16, 1) if quick else (2000, RUNS)
    write_policy(folder, _KEYS)
    for mode in (Mode.PLAIN, Mode.ENCRYPTED):
        lake = write_lake(folder / mode.name.lower(), files, mode)
        yield from _adding(lake, folder, mode, runs)
        yield from _looking(lake, mode, runs)


def write_lake(folder: Path, files: int, mode: Mode = Mode.PLAIN) -> Path:
    """So many files without filters."""
    folder.mkdir()
    for number in range(files):
        write(
            folder / f"part-{number:05}.parquet",
            table(number),
            mode,
            column_keys={key: [name] for name, key in _KEYS.items()},
            row_group_size=_ROWS,
        )
    return folder


def table(seed: int) -> pa.Table:
    """The columns of ``COLUMNS`` and eight others, in 2 or 3 row groups."""
    rng = np.random.default_rng(seed)
    rows = int(rng.integers(_ROWS + 1, 3 * _ROWS))
    names = rng.integers(0, 10**12, rows).astype("U13")
    columns: dict[str, Any] = {
        "id": rng.integers(-(2**62), 2**62, rows),
        "email": np.char.add(names, rng.choice(["@example.com", "@x.y", "@mail.org"], rows)),
        "city": np.char.add("city", rng.integers(0, 50, rows).astype("U2")),
        "count": rng.integers(0, 1000, rows),
        "score": rng.normal(size=rows),
        "day": pa.array(rng.integers(0, 400, rows).astype(np.int32), pa.date32()),
        "at": pa.array(rng.integers(0, 2**50, rows), pa.timestamp("us")),
        "flag": rng.integers(0, 2, rows).astype(bool),
        "note": pa.array(np.char.add("note ", rng.integers(0, 300, rows).astype("U3"))),
        "price": rng.random(rows).astype(np.float32),
    }
    return pa.table(columns)


def _adding(lake: Path, folder: Path, mode: Mode, runs: int) -> Iterator[Result]:
    files = sum(1 for _ in lake.iterdir())
    kind = "encrypted files" if mode is Mode.ENCRYPTED else "files"
    goal = 0.7 if mode is Mode.ENCRYPTED else 0.5
    case = f"{files:,} different {kind}, filters on two columns"
    ours, other = costs(*_adders(lake, folder, folder / "work", mode), runs=runs)
    note = "whole processes; our files are synced, pyarrow's are not"
    yield from against_pyarrow(case, ours, other, files, note, goals=(1, goal))
    if not _MEMORY_DISK.is_dir():
        return
    with tempfile.TemporaryDirectory(prefix="bench-", dir=_MEMORY_DISK) as memory:
        ours, other = costs(*_adders(lake, folder, Path(memory, "work"), mode), runs=runs)
    goal = 0.7 if mode is Mode.ENCRYPTED else 0.42
    case, note = f"{case}, on a memory disk", "whole processes; nothing to wait for"
    yield from against_pyarrow(case, ours, other, files, note, goals=(1, goal))


def _adders(lake: Path, folder: Path, work: Path, mode: Mode) -> tuple[Side, Side]:
    """Ours and pyarrow's, each with two processes."""
    copied = partial(_copied, lake, work)
    is_plain = mode is Mode.PLAIN
    wanted = [f"--column={name}" for name in COLUMNS] if is_plain else ["--policy", folder / POLICY]
    return (
        process("-m", "secure_bloom", "add", *wanted, work, "--jobs=2", before=copied),
        process("-m", __spec__.name, lake, work, *[_ENCRYPTED] * (not is_plain), before=copied),
    )


def _copied(lake: Path, work: Path) -> None:
    if work.is_relative_to(_MEMORY_DISK):
        shutil.rmtree(work, ignore_errors=True)
    copy_beside(lake, work)


def _looking(lake: Path, mode: Mode, runs: int) -> Iterator[Result]:
    """Yield the CPU seconds of calls over files that have their filters, with their processes."""
    encrypted = mode is Mode.ENCRYPTED
    files = len(list(lake.iterdir()))
    wanted: dict[str, Any] = {"columns": COLUMNS}
    if encrypted:
        wanted["keys"] = KEYRING
    sb.add_bloom_filters(lake, **wanted)
    keys = {"keys": KEYRING} if encrypted else {}
    calls: dict[str, tuple[Callable[[], object], float]] = {
        "inspect": (lambda: sb.inspect(lake, **keys), 5),
        "add that finds nothing to do": (lambda: sb.add_bloom_filters(lake, **wanted), 4),
    }
    sides = [Side(run=call) for call, _ in calls.values()]
    *ours, other = cpu_medians(*sides, Side(run=lambda: _metadata(lake, mode)), runs=runs)
    for (name, (_, goal)), own in zip(calls.items(), ours, strict=True):
        yield Result(
            case=f"{files:,} different {'encrypted ' * encrypted}files, {name}, CPU a file",
            against="pyarrow.parquet.read_metadata of each",
            unit="ms",
            ours=1000 * own / files,
            other=1000 * other / files,
            measure=Measure.TIMES,
            goal=goal,
        )


def _cpu_seconds() -> float:
    """Return the CPU seconds of this process and of those that it has waited for."""
    uses = [resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)]
    return sum(use.ru_utime + use.ru_stime for use in uses)


def cpu_medians(*sides: Side, runs: int) -> list[float]:
    """As :func:`benchmarks.harness.timing.medians`, in seconds of the CPU."""
    import statistics

    def cost(side: Side) -> float:
        side.before()
        start = _cpu_seconds()
        side.run()
        return _cpu_seconds() - start

    rounds = [[cost(side) for side in sides] for _ in range(runs + 1)]
    return [statistics.median(times) for times in zip(*rounds[1:], strict=True)]


def _metadata(lake: Path, mode: Mode) -> None:
    factory = crypto_factory()
    for path in sorted(lake.iterdir()):
        properties = None
        if mode is Mode.ENCRYPTED:
            properties = factory.file_decryption_properties(pe.KmsConnectionConfig())
        pq.read_metadata(path, decryption_properties=properties)


def rewrite(source: Path, target: Path, *, encrypted: bool) -> None:
    """Read a file with pyarrow, and write it with filters."""
    options: dict[str, Any] = {}
    properties = None
    if encrypted:
        factory, connection = crypto_factory(), pe.KmsConnectionConfig()
        properties = factory.file_decryption_properties(connection)
        wanted = pe.EncryptionConfiguration(
            footer_key="k_footer", column_keys={key: [name] for name, key in _KEYS.items()}
        )
        options["encryption_properties"] = factory.file_encryption_properties(connection, wanted)
    found = pq.read_table(source, decryption_properties=properties)
    # pyarrow 26 refuses filters of encrypted columns.
    filters = {name: {"ndv": _ROWS, "fpp": 0.01} for name in COLUMNS if not encrypted}
    pq.write_table(
        found, target, row_group_size=_ROWS, bloom_filter_options=filters or None, **options
    )


def main() -> None:
    """Pyarrow's side."""
    source, target, *options = sys.argv[1:]
    files = sorted(Path(source).iterdir())
    work = partial(rewrite, encrypted=_ENCRYPTED in options)
    with ProcessPoolExecutor(2) as pool:
        targets = (Path(target, file.name) for file in files)
        list(pool.map(work, files, targets, chunksize=16))


if __name__ == "__main__":
    main()
