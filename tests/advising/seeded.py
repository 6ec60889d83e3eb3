"""Twelve seeded tables of different shapes, to which advice is held."""

from __future__ import annotations

import datetime
from collections.abc import Callable
from decimal import Decimal
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from testing.tables import Mode
from testing.tables import write as write_encrypted

ROWS = 30_000
_DAY = datetime.date(2020, 1, 1)


def _random() -> np.random.Generator:
    return np.random.default_rng(20)


def emails(numbers: Any) -> list[str]:
    return [f"user{number:09d}@example.com" for number in numbers]


def _write(folder: Path, table: pa.Table, files: int, row_group_size: int, **options: Any) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    each = -(-table.num_rows // files)
    for number in range(files):
        part = table.slice(number * each, each)
        pq.write_table(
            part, folder / f"part-{number:04d}.parquet", row_group_size=row_group_size, **options
        )


def uniform_strings(folder: Path) -> None:
    rng = _random()
    table = pa.table({"email": emails(rng.integers(0, 10**9, ROWS)), "n": rng.random(ROWS)})
    _write(folder, table, 4, 5000, use_dictionary=False)


def sorted_ids(folder: Path) -> None:
    ids = np.sort(_random().integers(0, 10**12, ROWS))
    table = pa.table({"id": ids, "email": emails(_random().permutation(ROWS))})
    _write(folder, table, 3, 5000)


def low_cardinality(folder: Path) -> None:
    rng = _random()
    cities = np.array(["Roma", "Oslo", "Paris", "Wien"])[rng.integers(0, 4, ROWS)]
    shops = np.array([f"shop-{i:04d}" for i in range(800)])[rng.integers(0, 800, ROWS)]
    _write(folder, pa.table({"city": cities, "shop": shops, "x": rng.random(ROWS)}), 2, 6000)


def clustered(folder: Path) -> None:
    """Each row group has customers of a window, and the windows overlap."""
    rng = _random()
    customer = np.arange(ROWS) // 3 * 10 + rng.integers(0, 40_000, ROWS) * 10
    table = pa.table({"customer": customer, "text": emails(rng.integers(0, 10**9, ROWS))})
    _write(folder, table, 6, 4000)


def partitioned(folder: Path) -> None:
    rng = _random()
    for country in ("it", "no", "fr"):
        key = emails(rng.integers(0, 10**9, ROWS // 3))
        table = pa.table({"key": key, "v": rng.integers(0, 1000, ROWS // 3)})
        _write(folder / f"country={country}", table, 2, 5000)


def zipf(folder: Path) -> None:
    rng = _random()
    word = [f"word-{min(number, 10**6):07d}" for number in rng.zipf(1.3, ROWS)]
    _write(folder, pa.table({"word": word, "x": rng.random(ROWS)}), 3, 5000)


def nullable(folder: Path) -> None:
    rng = _random()
    value = emails(rng.integers(0, 10**9, ROWS))
    mask = rng.random(ROWS) < 0.9
    table = pa.table({"rare": pa.array(value, mask=mask), "id": rng.permutation(ROWS) * 7})
    _write(folder, table, 2, 10_000)


def nested(folder: Path) -> None:
    rng = _random()
    zips = pa.array([f"{number:08d}" for number in rng.integers(0, 10**8, ROWS)])
    address = pa.StructArray.from_arrays([zips, pa.array(rng.random(ROWS))], ["zip", "height"])
    tags = pa.array([[f"t{i % 50}"] * (i % 3) for i in range(ROWS)])
    _write(folder, pa.table({"address": address, "tags": tags}), 3, 5000)


def decimals(folder: Path) -> None:
    rng = _random()
    price = pa.array([Decimal(int(n)).scaleb(-2) for n in rng.integers(0, 10**12, ROWS)])
    small = pa.array([Decimal(int(n)).scaleb(-2) for n in rng.integers(0, 10**8, ROWS)])
    table = pa.table({"price": price.cast(pa.decimal128(30, 2)), "small": small})
    _write(folder, table, 2, 5000)


def dates(folder: Path) -> None:
    rng = _random()
    day = [_DAY + datetime.timedelta(days=3 * int(n)) for n in rng.integers(0, 3000, ROWS)]
    moment = pa.array(rng.integers(0, 10**15, ROWS), pa.int64()).cast(pa.timestamp("us"))
    _write(folder, pa.table({"day": day, "moment": moment}), 2, 5000)


def encrypted(folder: Path) -> None:
    rng = _random()
    folder.mkdir(parents=True)
    for part in range(2):
        rows = ROWS // 4
        table = pa.table(
            {
                "id": rng.permutation(rows) * 5,
                "name": [f"n{i}" for i in rng.integers(0, 300, rows)],
                "email": emails(rng.integers(0, 10**9, rows)),
                "iban": [f"DE{n:020d}" for n in rng.integers(0, 10**15, rows)],
                "city": ["Roma"] * rows,
            }
        )
        write_encrypted(folder / f"part-{part}.parquet", table, Mode.ENCRYPTED, row_group_size=3000)


def one_row_group(folder: Path) -> None:
    rng = _random()
    table = pa.table(
        {"email": emails(rng.integers(0, 10**9, ROWS)), "n": rng.integers(0, 10**12, ROWS)}
    )
    _write(folder, table, 1, ROWS)


def many_small_files(folder: Path) -> None:
    rng = _random()
    table = pa.table({"email": emails(rng.integers(0, 10**9, ROWS)), "n": rng.random(ROWS)})
    _write(folder, table, 120, 500)


TABLES: dict[str, Callable[[Path], None]] = {
    "uniform strings": uniform_strings,
    "sorted ids": sorted_ids,
    "low cardinality": low_cardinality,
    "clustered": clustered,
    "partitioned": partitioned,
    "zipf": zipf,
    "nullable": nullable,
    "nested": nested,
    "decimals": decimals,
    "dates": dates,
    "encrypted": encrypted,
    "one row group": one_row_group,
    "many small files": many_small_files,
}
