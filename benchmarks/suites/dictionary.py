"""A column of few values: its dictionary is read, and the headers of its data pages."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from unittest import mock

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from benchmarks.harness.data import add
from benchmarks.harness.results import Measure, Result
from benchmarks.harness.timing import Side, medians
from secure_bloom.parquet import column_values
from secure_bloom.parquet.footer.chunks import Chunk
from secure_bloom.parquet.pages import read_pages
from secure_bloom.storage import InputFile

RUNS = 15


class EveryPage(column_values._Selection):
    """A chunk of which all pages are decoded, as where nothing is known of its dictionary."""

    is_whole = property(lambda self: bool(self.data))


def cases(folder: Path, *, quick: bool) -> Iterator[Result]:
    """With and without the shortcut, and with ten times the rows."""
    rows = 500_000 if quick else 10_000_000
    many = write_codes(folder / "many.parquet", rows)
    few = write_codes(folder / "few.parquet", rows // 10)
    ours, ours_few = medians(Side(run=lambda: plan(many)), Side(run=lambda: plan(few)), runs=RUNS)
    again, other = medians(
        Side(run=lambda: plan(many)), Side(run=lambda: plan_from_pages(many)), runs=RUNS // 3
    )
    yield Result(
        case=f"{rows:,} rows of 1,000 values",
        against="the same without the dictionary shortcut",
        unit="s",
        ours=again,
        other=other,
        goal=30,
    )
    yield Result(
        case=f"{rows:,} rows of 1,000 values",
        against=f"{rows // 10:,} rows of them",
        unit="s",
        ours=ours,
        other=ours_few,
        measure=Measure.TIMES,
        goal=1.25,
        note="the headers of ten times the pages are held against the footer's word",
    )


def write_codes(path: Path, rows: int) -> Path:
    """One row group of codes of up to three digits."""
    codes = np.random.default_rng(0).integers(0, 1000, rows)
    table = pa.table({"code": pa.array(codes.astype("U4"))})
    pq.write_table(table, path, row_group_size=rows)
    return path


def plan(path: Path) -> None:
    """All of an add but its last step, the write."""
    add(path, ("code",), dry_run=True)


def plan_from_pages(path: Path) -> None:
    """The same, with the values of every data page."""
    with mock.patch.object(column_values, "_select", every_page):
        plan(path)


def every_page(file: InputFile, chunk: Chunk) -> EveryPage:
    """Reads the whole chunk."""
    dictionary, *data = read_pages(file, chunk)
    return EveryPage(chunk=chunk, dictionary=[dictionary], data=data)
