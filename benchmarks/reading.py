"""Reading through filters, beside full scans and other engines: `python benchmarks/reading.py`.

The table has 1,000 row groups in 100 files, once encrypted (written by pyarrow) and once plain;
both have filters on ``email``.  All sides run in turns in one process, warm, on the same disk; the
medians count, and only their ratio means something.  Give a folder to keep the tables (12 GB) in
it for the next run.
"""

from __future__ import annotations

import statistics
import sys
import tempfile
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import duckdb
import numpy as np
import polars as pl
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.dataset as ds
import pyarrow.parquet as pq
import pyarrow.parquet.encryption as pe

import secure_bloom as sb

FILES, GROUPS, ROWS = 100, 10, 24_000
RUNS = 5
KEYS = sb.Keyring(master_keys={"k_footer": b"footer-key-16byt", "k_pii": b"pii-key-16-bytes"})
FPP = 0.01


class Kms(pe.KmsClient):
    """The keyring as pyarrow wants a KMS."""

    def __init__(self, _config: object = None) -> None:
        super().__init__()

    def wrap_key(self, key_bytes: bytes, master_key_identifier: str) -> str:
        """Wrap under a master key."""
        return KEYS.wrap_key(key_bytes, master_key_identifier)

    def unwrap_key(self, wrapped_key: str | bytes, master_key_identifier: str) -> bytes:
        """Unwrap."""
        text = wrapped_key.decode() if isinstance(wrapped_key, bytes) else wrapped_key
        return KEYS.unwrap_key(text, master_key_identifier)


FACTORY = pe.CryptoFactory(Kms)


def table_of(part: int, rows: int) -> pa.Table:
    """The rows of one file: e-mails that are distinct in the whole table, and nine other columns.

    The e-mails of every row group are spread over all there are: statistics tell nothing.
    """
    rng = np.random.default_rng(part)
    count = rows * GROUPS
    ids = (np.arange(count) + part * count) * 2_654_435_761 % 2**32
    number = pc.utf8_lpad(pa.array(ids).cast(pa.string()), 10, "0")
    cities = pa.array([f"city-{i:03d}" for i in range(300)])
    return pa.table(
        {
            "email": email(number),
            "iban": pc.binary_join_element_wise("DE", pc.utf8_lpad(number, 20, "7"), ""),
            "id": ids,
            "city": cities.take(pa.array(rng.integers(0, 300, count))),
            "note": texts(rng, count, 140),
            **{f"amount{i}": rng.normal(size=count) for i in range(5)},
        }
    )


def email(number: pa.Array) -> pa.Array:
    """The e-mail address with that number in it."""
    return pc.binary_join_element_wise("user-", number, "@somewhere.example.com", "")


def texts(rng: np.random.Generator, count: int, length: int) -> pa.Array:
    """Texts that no codec makes smaller."""
    characters = rng.integers(48, 123, size=count * length, dtype=np.uint8)
    offsets = np.arange(0, len(characters) + 1, length, dtype=np.int32)
    return pa.StringArray.from_buffers(count, pa.py_buffer(offsets), pa.py_buffer(characters))


def write_tables(folder: Path, rows: int) -> None:
    """Both twins, unless the folder has them already."""
    if (folder / "done").exists():
        return
    settings = pe.EncryptionConfiguration(
        footer_key="k_footer", column_keys={"k_pii": ["email", "iban", "note"]}
    )
    for name in ("encrypted", "plain"):
        (folder / name).mkdir(parents=True, exist_ok=True)
    for part in range(FILES):
        table = table_of(part, rows)
        for name in ("encrypted", "plain"):
            properties = None
            if name == "encrypted":
                properties = FACTORY.file_encryption_properties(pe.KmsConnectionConfig(), settings)
            path = folder / name / f"part-{part:03d}.parquet"
            pq.write_table(table, path, row_group_size=rows, encryption_properties=properties)
    for name in ("encrypted", "plain"):
        columns = {"email": sb.BloomFilterOptions(fpp=FPP)}
        report = sb.add_bloom_filters(folder / name, columns=columns, keys=KEYS)
        if report.failed:
            raise SystemExit(f"nothing was added: {report.failed[0].error}")
    (folder / "done").touch()


@dataclass(frozen=True, slots=True, kw_only=True)
class Case:
    """One thing done by us and by others; every side says how many rows it found."""

    name: str
    goal: str
    ours: Callable[[], int]
    others: dict[str, Callable[[], int]]


def cases(folder: Path) -> list[Case]:
    """All cases on the tables in ``folder``."""
    encrypted, plain = folder / "encrypted", folder / "plain"
    absent, present = address(FILES * GROUPS * ROWS + 1), address(ROWS * 7 + 5)
    listed = [address(FILES * GROUPS * ROWS + i) for i in range(990)]
    listed += [address(i) for i in range(10)]

    def us(table: Path, where: object) -> Callable[[], int]:
        return lambda: sb.read_table(table, where=where, keys=KEYS).num_rows

    def key_case(key: str, goal: str, name: str) -> list[Case]:
        where = [("email", "=", key)]
        return [
            Case(
                name=f"encrypted, key {name}",
                goal=goal,
                ours=us(encrypted, where),
                others={"pyarrow": lambda: arrow(encrypted, pc.field("email") == key)},
            ),
            Case(
                name=f"plain, key {name}",
                goal="not slower",
                ours=us(plain, where),
                others={
                    "DuckDB": lambda: duck(plain, key),
                    "Polars": lambda: polars(plain, key),
                },
            ),
        ]

    return [
        *key_case(absent, ">= 50 times", "absent"),
        *key_case(present, ">= 20 times", "present once"),
        Case(
            name="encrypted, 1,000 keys, 10 present",
            goal=">= 5 times",
            ours=us(encrypted, [("email", "in", listed)]),
            others={"pyarrow": lambda: arrow(encrypted, pc.field("email").isin(listed))},
        ),
        Case(
            name="encrypted, selective without filter",
            goal=">= 0.95 times",
            ours=us(encrypted, [("iban", "=", "DE" + number_of(5).rjust(20, "7"))]),
            others={
                "pyarrow": lambda: arrow(
                    encrypted, pc.field("iban") == "DE" + number_of(5).rjust(20, "7")
                )
            },
        ),
        *(
            Case(
                name=f"{table.name}, not selective",
                goal=">= 0.95 times",
                ours=us(table, [("amount0", ">", -9.0)]),
                others={"pyarrow": lambda table=table: arrow(table, pc.field("amount0") > -9.0)},
            )
            for table in (few(encrypted), few(plain))
        ),
    ]


def few(table: Path) -> Path:
    """A tenth of the files, by links: all rows of all of them would not fit many machines."""
    folder = table.parent / "few" / table.name
    if not folder.exists():
        folder.mkdir(parents=True)
        for path in sorted(table.iterdir())[: FILES // 10]:
            (folder / path.name).hardlink_to(path)
    return folder


def number_of(row: int) -> str:
    """The number that row of the table has in its e-mail, or would have."""
    return f"{row * 2_654_435_761 % 2**32:010d}"


def address(row: int) -> str:
    """The e-mail of a row of the table, or of one that it does not have."""
    return f"user-{number_of(row)}@somewhere.example.com"


def arrow(table: Path, condition: pc.Expression) -> int:
    """A full scan by pyarrow's dataset, decrypting where that is needed."""
    config = ds.ParquetDecryptionConfig(
        FACTORY, pe.KmsConnectionConfig(), pe.DecryptionConfiguration()
    )
    options = ds.ParquetFragmentScanOptions(
        decryption_config=config if table.name == "encrypted" else None
    )
    form = ds.ParquetFileFormat(default_fragment_scan_options=options)
    return ds.dataset(table, format=form).to_table(filter=condition).num_rows


def duck(table: Path, key: str) -> int:
    """One key looked up by DuckDB."""
    query = f"select * from read_parquet('{table}/*.parquet') where email = '{key}'"
    return duckdb.sql(query).to_arrow_table().num_rows


def polars(table: Path, key: str) -> int:
    """One key looked up by Polars."""
    return pl.scan_parquet(table / "*.parquet").filter(pl.col("email") == key).collect().height


def seconds(run: Callable[[], int], rows: int | None = None) -> float:
    """The time of one call, which must find as many rows as the others did."""
    start = time.perf_counter()
    found = run()
    spent = time.perf_counter() - start
    if rows is not None and found != rows:
        raise SystemExit(f"{found} rows were found, wanted {rows}")
    return spent


def measure(case: Case) -> None:
    """Run all sides in turns, and print medians and ratios."""
    rows = case.ours()
    times: dict[str, list[float]] = {"ours": [], **{name: [] for name in case.others}}
    for _ in range(RUNS):
        for name, run in {"ours": case.ours, **case.others}.items():
            times[name].append(seconds(run, rows))
    medians = {name: statistics.median(spent) for name, spent in times.items()}
    told = ", ".join(f"{name} {1000 * spent:.0f} ms" for name, spent in medians.items())
    ratio = min(spent for name, spent in medians.items() if name != "ours") / medians["ours"]
    print(f"{case.name:36} {rows:9,} rows  {told:44} {ratio:6.2f} times (goal {case.goal})")


def main() -> None:
    """Write the tables where they are not there, run every case, and tell of bytes."""
    given = sys.argv[1:]
    with tempfile.TemporaryDirectory() as temporary:
        folder = Path(given[0] if given else temporary)
        write_tables(folder, ROWS)
        for case in cases(folder):
            measure(case)
        where = [("email", "=", address(FILES * GROUPS * ROWS + 1))]
        report = sb.explain(folder / "encrypted", where=where, keys=KEYS)
        share = 100 * report.bytes_read / report.bytes_full_scan
        print(f"key absent: {share:.2f} % of the bytes of a full scan are read (goal < 1 %)")


if __name__ == "__main__":
    main()
