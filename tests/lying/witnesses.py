"""What a full scan gives, by readers that are asked nothing: pyarrow, DuckDB and Polars."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import duckdb
import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
import pyarrow.parquet.encryption as pe

from testing.tables import crypto_factory

Rows = list[dict[str, Any]]


def pyarrow_scan(path: Path, *, is_encrypted: bool = False) -> Rows:
    """All rows, decoded one row group after the other."""
    properties = None
    if is_encrypted:
        properties = crypto_factory().file_decryption_properties(pe.KmsConnectionConfig())
    with pq.ParquetFile(path, decryption_properties=properties) as file:
        groups = [file.read_row_group(i) for i in range(file.num_row_groups)]
        rows: Rows = pa.concat_tables(groups).to_pylist()
        return rows


def duckdb_scan(path: Path) -> Rows:
    """All rows, without its own use of anything but pages."""
    with duckdb.connect() as connection:
        rows: Rows = connection.read_parquet(str(path)).to_arrow_table().to_pylist()
        return rows


def polars_scan(path: Path) -> Rows:
    """All rows, eagerly."""
    return pl.read_parquet(path, use_statistics=False).to_dicts()


#: Other readers, and what they may raise for a file that lies.
WITNESSES: dict[str, Callable[[Path], Rows]] = {"DuckDB": duckdb_scan, "Polars": polars_scan}


def testimony(scan: Callable[[Path], Rows], path: Path) -> Rows | None:
    """The rows that a reader gives; None where it refuses the file, in whatever way."""
    try:
        return scan(path)
    except (Exception, pl.exceptions.PanicException):
        # Every reader has errors of its own, and Polars panics.
        return None
