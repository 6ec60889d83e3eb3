"""A dry run costs at most what the run costs, counted in calls and in bytes that are read."""

from __future__ import annotations

import re
from collections.abc import Callable
from functools import partial
from pathlib import Path

import deltalake
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import secure_bloom as sb
from testing import tables
from testing.growth import calls
from testing.hudi_files import base_file
from testing.paimon_tables import Warehouse
from testing.tables import Mode
from tests.lakes.iceberg import tables as iceberg

ROWS, FILES = 3_000, 3
TABLE = pa.table({"id": range(ROWS), "email": [f"user{it}@example.org" for it in range(ROWS)]})
#: What the estimate at the end of a dry run adds: sums, whatever the files are.
ESTIMATE_CALLS = 800
_READ = Path("/proc/self/io")

pytestmark = pytest.mark.skipif(not _READ.exists(), reason="the system counts no bytes")

Verb = Callable[[bool], object]


def add(path: str) -> Verb:
    """Return a run of ``add``, which may be a dry one."""
    given = {"columns": ["id", "email"], "keys": tables.KEYRING, "jobs": 1}
    return lambda is_dry: sb.add_bloom_filters(path, dry_run=is_dry, **given)


def plain_files(folder: Path, _: pytest.MonkeyPatch) -> Verb:
    for number in range(FILES):
        pq.write_table(TABLE, folder / f"{number}.parquet", row_group_size=500)
    return add(str(folder))


def encrypted_files(folder: Path, _: pytest.MonkeyPatch) -> Verb:
    for number in range(FILES):
        path = folder / f"{number}.parquet"
        tables.write(path, TABLE, Mode.ENCRYPTED, column_keys={"k_pii": ["email"]})
    return add(str(folder))


def delta(folder: Path, _: pytest.MonkeyPatch) -> Verb:
    for _number in range(FILES):
        deltalake.write_deltalake(str(folder), TABLE, mode="append")
    return add(str(folder))


def iceberg_table(folder: Path, monkeypatch: pytest.MonkeyPatch) -> Verb:
    iceberg.people(iceberg.in_settings(folder, monkeypatch), files=FILES)
    return add(iceberg.NAME)


def paimon(folder: Path, _: pytest.MonkeyPatch) -> Verb:
    pytest.importorskip("pypaimon_rust")
    lake = Warehouse(path=str(folder))
    path = lake.create("id bigint, email string")
    for _number in range(FILES):
        lake.insert([(it, f"user{it}") for it in range(50)])
    given = {"columns": ["id", "email"], "jobs": 1}
    return lambda is_dry: sb.paimon.build_index(path, dry_run=is_dry, **given)


def hudi(folder: Path, _: pytest.MonkeyPatch) -> Verb:
    for number in range(FILES):
        base_file(folder / f"{number}.parquet", [f"key{it}" for it in range(ROWS)])
    return lambda is_dry: sb.hudi.add_record_key_filter(str(folder), jobs=1, dry_run=is_dry)


def bytes_read() -> int:
    """Return how many bytes this process has read, all its threads together."""
    found = re.search(r"rchar: ([0-9]+)", _READ.read_text())
    assert found is not None
    return int(found[1])


@pytest.mark.parametrize("make", [plain_files, encrypted_files, delta, iceberg_table, paimon, hudi])
def test_a_dry_run_costs_no_more_than_the_run(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, make: Callable[..., Verb]
) -> None:
    first, second = tmp_path / "first", tmp_path / "second"
    first.mkdir()
    second.mkdir()
    # Modules are imported, and what is made once is made.
    warm = make(first, monkeypatch)
    warm(True)
    warm(False)
    verb = make(second, monkeypatch)
    called, read = {}, {}
    for is_dry in (True, False):
        before = bytes_read()
        called[is_dry] = calls(partial(verb, is_dry))
        read[is_dry] = bytes_read() - before
    assert called[True] <= called[False] + ESTIMATE_CALLS
    # Opening /proc is among the bytes.
    assert read[True] <= read[False] + 4_096
