"""One value in one encrypted file, from a cold start on, beside DuckDB on a plain twin."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pyarrow as pa

from benchmarks.harness.data import add, write_keyring
from benchmarks.harness.results import Measure, Result
from benchmarks.harness.timing import medians, process, python
from testing.tables import KEYRING, Mode, write

VALUE = "user7@example.com"
RUNS = 15
#: What a probe does not need.
HEAVY = ("pyspark", "pyarrow.dataset", "pyarrow", "numpy")
#: The command in this very process, and which of ``HEAVY`` it left loaded.
LOADED = f"""
import sys
from secure_bloom.cli import main
try:
    main(sys.argv[1:])
except SystemExit as end:
    assert not end.code, end
print(sum(name in sys.modules for name in {HEAVY}))
"""


def cases(folder: Path, *, quick: bool) -> Iterator[Result]:
    """Whole processes; the files are in the system's cache."""
    keyring = write_keyring(folder)
    plain, encrypted = (write_emails(folder, mode) for mode in (Mode.PLAIN, Mode.ENCRYPTED))
    probe = ["probe", str(encrypted), "email", VALUE, "--keyring", str(keyring), "--json"]
    query = f"select * from parquet_bloom_probe('{plain}', 'email', '{VALUE}')"
    ours, other = medians(
        process("-m", "secure_bloom", *probe),
        process("-c", f'import duckdb; print(duckdb.sql("{query}").fetchall())'),
        runs=3 if quick else RUNS,
    )
    yield Result(
        case="probe one value in one encrypted file, whole process",
        against="DuckDB's parquet_bloom_probe, plain twin",
        unit="s",
        ours=ours,
        other=other,
        goal=1,
    )
    yield Result(
        case=f"of {', '.join(HEAVY)}, a probe loads",
        unit="packages",
        ours=float(python("-c", LOADED, *probe).splitlines()[-1]),
        measure=Measure.VALUE,
        goal=0,
    )


def write_emails(folder: Path, mode: Mode) -> Path:
    """Three row groups of e-mails with filters."""
    emails = pa.table({"email": [f"user{i}@example.com" for i in range(30_000)]})
    path = folder / f"{mode.name}.parquet"
    write(path, emails, mode, column_keys={"k_pii": ["email"]}, row_group_size=10_000)
    add(path, ("email",), keys=KEYRING)
    return path
