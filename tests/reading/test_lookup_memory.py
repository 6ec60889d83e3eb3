"""What a lookup in an open table allocates: by the pages that it reads, not by the row groups."""

from __future__ import annotations

import gc
import tracemalloc
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pyarrow as pa
import pytest

import secure_bloom as sb
from testing.tables import KEYRING, Mode, write

#: Rows of a row group and of a page, and bytes of a value of the column that is not looked for.
GROUP, PAGE, WIDTH = 1000, 100, 60
#: Bytes of a lookup beside its pages, and for each row group: numbers that say whether it is left.
_BASE, _EACH = 16 * 1024, 48


@contextmanager
def opened(tmp_path: Path, row_groups: int, mode: Mode) -> Iterator[sb.Table]:
    count = row_groups * GROUP
    table = pa.table(
        {
            "key": [f"{7919 * n % (10 * count):09d}" for n in range(count)],
            "note": [str(n).rjust(WIDTH, "x") for n in range(count)],
            "n": range(count),
        }
    )
    path = tmp_path / f"{row_groups}.parquet"
    options = {"use_dictionary": False, "compression": "none", "row_group_size": GROUP}
    options |= {"data_page_size": 1, "write_batch_size": PAGE}
    write(path, table, mode, column_keys={"k_pii": table.column_names}, **options)
    sb.add_bloom_filters(path, columns=["key"], keys=KEYRING)
    with sb.open_table(path, keys=KEYRING) as it:
        yield it


def allocated(table: sb.Table, key: str, rows: int) -> tuple[int, int]:
    """The most bytes that Python, and Arrow, have at a time during a lookup."""
    for _ in range(2):
        assert table.read([("key", "=", key)]).num_rows == rows
    before = pa.default_memory_pool()
    pool = pa.proxy_memory_pool(before)
    gc.collect()
    pa.set_memory_pool(pool)
    tracemalloc.start()
    try:
        table.read([("key", "=", key)])
        return tracemalloc.get_traced_memory()[1], pool.max_memory() or 0
    finally:
        tracemalloc.stop()
        pa.set_memory_pool(before)


@pytest.mark.parametrize("has_extension", [True])
@pytest.mark.parametrize("mode", [Mode.PLAIN, Mode.ENCRYPTED])
@pytest.mark.parametrize("row_groups", [4, 60])
def test_a_lookup_allocates_by_pages_and_not_by_row_groups(
    tmp_path: Path, mode: Mode, row_groups: int
) -> None:
    every = row_groups * _EACH
    with opened(tmp_path, row_groups, mode) as table:
        python, arrow = allocated(table, "absent", rows=0)
        assert python < _BASE + every
        assert arrow < 1024
        python, arrow = allocated(table, f"{7919 * 5:09d}", rows=1)
    # The column that is searched: its chunk is in Arrow's memory, its pages decrypted in Python's.
    searched = GROUP * (9 + 4)
    # Of the others a page: as it is stored, decrypted, and what finds its values.
    pages = 3 * PAGE * (WIDTH + 4 + 8)
    assert python < 2 * _BASE + 3 * searched + pages + every
    assert arrow < 2 * searched + pages
