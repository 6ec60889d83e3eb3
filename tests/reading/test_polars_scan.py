"""An open table in Polars: the rows and types of scan_parquet on the plain files."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from datetime import date, datetime
from decimal import Decimal
from pathlib import Path

import polars as pl
import pyarrow as pa
import pytest
from polars.testing import assert_frame_equal

import secure_bloom as sb
from secure_bloom.reading import TableRead
from testing.tables import KEYRING, Mode, write

ROWS, GROUP = 40, 10
TABLE = pa.table(
    {
        "n": pa.array([*range(ROWS - 1), None], pa.int32()),
        "text": [f"user{i:02}" for i in range(ROWS)],
        "price": pa.array([Decimal(i) / 4 for i in range(ROWS)], pa.decimal128(9, 2)),
        "at": pa.array(
            [datetime(2024, 1, 1, i % 24) for i in range(ROWS)], pa.timestamp("us", "UTC")
        ),
        "day": pa.array([date(2024, 1, 1 + i % 28) for i in range(ROWS)]),
        "share": pa.array([i / 8 for i in range(ROWS - 1)] + [float("nan")], pa.float32()),
        "flags": [[i, i + 1] for i in range(ROWS)],
        "raw": [bytes([i]) for i in range(ROWS)],
    }
)
n, text, share = pl.col("n"), pl.col("text"), pl.col("share")


@pytest.fixture
def plain(tmp_path: Path) -> Path:
    return write(tmp_path / "plain.parquet", TABLE, Mode.PLAIN, row_group_size=GROUP)


@pytest.fixture
def table(tmp_path: Path) -> Iterator[sb.Table]:
    path = tmp_path / "x.parquet"
    write(path, TABLE, Mode.ENCRYPTED, row_group_size=GROUP, column_keys={"k_pii": ["text"]})
    sb.add_bloom_filters(path, columns=["text", "n"], keys=KEYRING)
    with sb.open_table(path, keys=KEYRING) as opened:
        yield opened


QUERIES: list[Callable[[pl.LazyFrame], pl.LazyFrame]] = [
    lambda rows: rows,
    lambda rows: rows.select("text", "n"),
    lambda rows: rows.filter(text == "user07"),
    lambda rows: rows.filter(text == "nobody"),
    lambda rows: rows.filter(text.is_in(["user07", "user31"])).select("n"),
    lambda rows: rows.filter((text == "user07") & (n * 2 == 14)),
    lambda rows: rows.filter((n > 30) | text.str.contains("07")),
    lambda rows: rows.filter(share > 3),
    lambda rows: rows.filter(share == 0.1),
    lambda rows: rows.filter(share.is_nan()),
    lambda rows: rows.filter(n.is_null()),
    lambda rows: rows.filter(n != 5).head(7),
    lambda rows: rows.head(15),
    lambda rows: rows.filter(n == 7.0),
    lambda rows: rows.filter(pl.col("price") == 2.5).select("price"),
    lambda rows: rows.select(pl.len()),
    lambda rows: rows.filter(text > "user20").select(n.sum()),
]


@pytest.mark.parametrize("query", QUERIES)
def test_answers_are_those_of_the_plain_files(
    plain: Path, table: sb.Table, query: Callable[[pl.LazyFrame], pl.LazyFrame]
) -> None:
    assert_frame_equal(
        query(table.scan_polars()).collect(), query(pl.scan_parquet(plain)).collect()
    )


def test_types_are_those_of_polars(plain: Path, table: sb.Table) -> None:
    assert table.scan_polars().collect_schema() == pl.scan_parquet(plain).collect_schema()


def test_a_key_and_a_column_are_pushed_down(
    table: sb.Table, monkeypatch: pytest.MonkeyPatch
) -> None:
    reads: list[TableRead] = []
    ask = sb.Table.ask

    def noted(*given: object) -> TableRead:
        reads.append(ask(*given, explain=True))  # type: ignore[arg-type]
        return reads[-1]

    monkeypatch.setattr(sb.Table, "ask", noted)
    asked = (text == "nobody") & text.str.contains("o")
    assert table.scan_polars().filter(asked).select("n").collect().height == 0
    (read,) = reads
    assert set(read.schema.names) == {"n", "text"}
    assert read.report().row_groups_read == 0
