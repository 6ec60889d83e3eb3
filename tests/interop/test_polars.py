"""Polars reads what we wrote as before, plain and encrypted: rows and lookups."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from testing.columns import CASES_IN_TURNS, Column
from testing.compatibility import Claim, Compatibility, Shown
from testing.surgery import opened
from testing.tables import Mode
from testing.typed_files import TypedFile
from tests.interop.conftest import Modes, Pairs

if TYPE_CHECKING:
    import polars as pl
else:
    pl = pytest.importorskip("polars")


def _scan(file: TypedFile) -> pl.LazyFrame:
    return pl.scan_parquet(file.path, decryption=_keys(file))


def _keys(file: TypedFile) -> pl.ParquetDecryptionProperties | None:
    """The file's data keys, which Polars wants without a KMS."""
    if file.mode is Mode.PLAIN:
        return None
    with opened(file.path) as it:
        chunk = it.chunk(0, file.column.leaf)
        columns = None if file.mode is Mode.UNIFORM else {file.column.leaf: chunk.cipher.key.key}
        return pl.ParquetDecryptionProperties(footer_key=it.footer.key.key, column_keys=columns)


def _values(rows: pl.DataFrame) -> pl.Series:
    """Some of the values that are there."""
    every = rows["x"].drop_nulls().unique(maintain_order=True)
    return every.gather_every(max(1, len(every) // 4))


def _lookups(table: pl.LazyFrame, values: pl.Series) -> list[int]:
    """How many rows equal each of the values."""
    lookups = [
        table.filter(pl.col("x") == _literal(values, i)).select(pl.len())
        for i in range(len(values))
    ]
    return [found.item() for found in pl.collect_all(lookups)]


def _literal(values: pl.Series, i: int) -> Any:
    # By way of the stored number, because Python's times have no nanoseconds.
    if values.dtype.is_temporal():
        return pl.lit(values.to_physical()[i]).cast(values.dtype)
    return pl.lit(values[i], dtype=values.dtype)


@pytest.mark.parametrize(("column", "encoding"), CASES_IN_TURNS)
def test_polars_agrees(
    pairs: Pairs, compatibility: Compatibility, modes: Modes, column: Column, encoding: str
) -> None:
    for mode in modes(column, encoding):
        before, after = pairs(column, encoding, mode)
        claim = Claim(column.name, encoding, mode.value, "Polars", Shown.ROWS)
        try:
            rows = _scan(before).collect()
        except pl.exceptions.PolarsError:
            compatibility.record(claim._replace(shown=Shown.NOT_READ))
            continue
        filtered = _scan(after)
        assert filtered.collect().equals(rows)
        compatibility.record(claim)
        if not rows["x"].dtype.is_nested():
            values = _values(rows)
            found = _lookups(rows.lazy(), values)
            assert all(found)
            assert _lookups(filtered, values) == found
            compatibility.record(claim._replace(shown=Shown.LOOKUPS))
