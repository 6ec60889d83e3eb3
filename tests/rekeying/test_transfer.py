"""Data goes from one protection into another page by page."""

from __future__ import annotations

import tracemalloc
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

import secure_bloom as sb
from tests.rekeying.lake import KEYS

MIB = 1024 * 1024
POLICY = sb.KeyPolicy(footer_key="k_footer", uniform=True)


def peak(path: Path, pages: int) -> int:
    """The most memory that re-encryption holds at a time, of a chunk with so many pages."""
    table = pa.table({"x": np.zeros(pages * MIB // 8, np.int64)})
    pq.write_table(
        table,
        path,
        compression="none",
        use_dictionary=False,
        data_page_size=MIB,
        row_group_size=1 << 30,
    )
    del table
    assert path.stat().st_size > pages * MIB
    tracemalloc.start()
    try:
        assert not sb.reencrypt(path, policy=POLICY, keys=KEYS).failed
        return tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()


def test_memory_is_that_of_some_pages_however_large_a_chunk_is(tmp_path: Path) -> None:
    peak(tmp_path / "first", 1)  # what is loaded once
    assert peak(tmp_path / "many", 120) < 36 * MIB
