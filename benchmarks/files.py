"""Adding filters and asking them, beside what else can be done: `python benchmarks/files.py`.

Both sides run in turns in one process, warm, on the same disk, and the median of each counts; only
the ratio means something.  The cold probe is whole processes.
"""

from __future__ import annotations

import os
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from unittest import mock

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

import secure_bloom as sb
from secure_bloom import values
from secure_bloom.footer import Chunk
from secure_bloom.pages import Page
from secure_bloom.report import AddReport

ROWS = 4_000_000
DICTIONARY_ROWS = 10_000_000
RUNS = 5
COLUMNS = ["id", "email"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Case:
    """One thing done by us and by another; ``before`` runs untimed before each run of ours."""

    name: str
    against: str
    ours: Callable[[], object]
    other: Callable[[], object]
    before: Callable[[], object] = lambda: None


def main() -> None:
    """Run every case; print seconds of both sides and the ratio."""
    print(f"{'':34}{'ours':>8}{'other':>8}  seconds")
    with tempfile.TemporaryDirectory() as folder:
        for case in cases(Path(folder)):
            ours, other = medians(case)
            ratio = f"{other / ours:.1f} times faster than {case.against}"
            print(f"{case.name:34}{ours:8.3f}{other:8.3f}  {ratio}")


def medians(case: Case) -> tuple[float, float]:
    """The median of either side in seconds, after one run of each that does not count."""
    times = []
    for _ in range(RUNS + 1):
        case.before()
        times.append((seconds(case.ours), seconds(case.other)))
    ours, other = zip(*times[1:], strict=True)
    return statistics.median(ours), statistics.median(other)


def seconds(run: Callable[[], object]) -> float:
    """The time of one call."""
    start = time.perf_counter()
    run()
    return time.perf_counter() - start


def cases(folder: Path) -> list[Case]:
    """All cases, with their files in ``folder``."""
    plain, work = wide_table(folder / "plain.parquet"), folder / "work.parquet"

    def copy() -> None:
        shutil.copyfile(plain, work)
        os.sync()  # or our own fsync would pay for the copy

    def rewrite() -> None:
        size = ROWS // 4
        options = {column: {"ndv": size, "fpp": 0.01} for column in COLUMNS}
        table = pq.read_table(plain)
        pq.write_table(
            table, folder / "other.parquet", row_group_size=size, bloom_filter_options=options
        )

    def add(*, in_place: bool) -> None:
        done(sb.add_bloom_filters(work, columns=COLUMNS, in_place=in_place))

    against = "pyarrow reading and writing"
    return [
        Case(
            name="add to 2 of 11 columns, in place",
            against=against,
            ours=lambda: add(in_place=True),
            other=rewrite,
            before=copy,
        ),
        Case(
            name="add to 2 of 11 columns, replace",
            against=against,
            ours=lambda: add(in_place=False),
            other=rewrite,
            before=copy,
        ),
        dictionary_case(folder),
        cold_probe_case(folder),
    ]


def wide_table(path: Path) -> Path:
    """Eleven columns: an id and a 24-byte e-mail, all distinct, and nine others."""
    rng = np.random.default_rng(0)
    ids = rng.permutation(ROWS).astype(np.int64) * 2654435761
    emails = np.char.add(np.char.zfill(ids.astype("U20"), 20), "@x.y")
    columns = {"id": pa.array(ids), "email": pa.array(emails)}
    columns |= {f"score{i}": pa.array(rng.normal(size=ROWS)) for i in range(3)}
    columns |= {f"count{i}": pa.array(rng.integers(0, 1000, ROWS)) for i in range(3)}
    words = np.array(["alpha", "beta", "gamma", "delta"])
    columns |= {f"word{i}": pa.array(words[rng.integers(0, 4, ROWS)]) for i in range(3)}
    pq.write_table(pa.table(columns), path, row_group_size=ROWS // 4)
    return path


def dictionary_case(folder: Path) -> Case:
    """A column of few values, with and without the dictionary alone being read."""
    path = folder / "dictionary.parquet"
    codes = np.random.default_rng(0).integers(0, 1000, DICTIONARY_ROWS)
    table = pa.table({"code": pa.array(codes.astype("U4"))})
    pq.write_table(table, path, row_group_size=DICTIONARY_ROWS)

    def add() -> None:
        done(sb.add_bloom_filters(path, columns=["code"], replace_filters=True, dry_run=True))

    def add_from_pages() -> None:
        with (
            mock.patch.object(values, "_says_all_dictionary", return_value=False),
            mock.patch.object(values, "_DICTIONARY_ENCODINGS", frozenset()),
            mock.patch.object(values, "_decode_flat", whole_chunk),
        ):
            add()

    return Case(
        name="10 M rows of 1,000 values",
        against="the same without the dictionary",
        ours=add,
        other=add_from_pages,
    )


def whole_chunk(chunk: Chunk, dictionary: list[Page], pages: list[Page]) -> Iterator[pa.Array]:
    """All pages of a flat column decoded together, dictionary-encoded ones too."""
    return values._decode(chunk, [*dictionary, *pages], chunk.num_rows, has_dictionary=True)


def cold_probe_case(folder: Path) -> Case:
    """One value in one file, each side a new process."""
    path = folder / "probe.parquet"
    emails = [f"user{i}@example.com" for i in range(30_000)]
    pq.write_table(pa.table({"email": emails}), path, row_group_size=10_000)
    done(sb.add_bloom_filters(path, columns=["email"]))
    probe = [sys.executable, "-m", "secure_bloom", "probe", str(path), "email", "nobody", "--json"]
    query = f"select * from parquet_bloom_probe('{path}', 'email', 'nobody')"
    duckdb = [sys.executable, "-c", f'import duckdb; print(duckdb.sql("{query}").fetchall())']
    return Case(
        name="probe one value, new process",
        against="DuckDB's parquet_bloom_probe",
        ours=lambda: subprocess.run(probe, capture_output=True),
        other=lambda: subprocess.run(duckdb, capture_output=True, check=True),
    )


def done(report: AddReport) -> None:
    """Stop where a run did not do what is being timed."""
    if report.failed or report.files[0].status != "added":
        raise SystemExit(f"nothing was added: {report.files[0].error}")


if __name__ == "__main__":
    main()
