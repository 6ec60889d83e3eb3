"""Encrypted Parquet files among the searched ones are opened with the keys of the search."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pytest

import secure_bloom as sb
from secure_bloom.tracing.report import TraceReport
from testing.tables import KEYRING, Mode, write

EMAILS = [f"anna.Smith{n}@post.fi" for n in range(600)]
MODES = pytest.mark.parametrize("mode", [Mode.ENCRYPTED, Mode.SIGNED], ids=["encrypted", "signed"])


def _lake(folder: Path, mode: Mode, **columns: list[str]) -> Path:
    table = pa.table({"id": [f"n{n}" for n in range(600)], "email": EMAILS, **columns})
    (folder / "lake").mkdir()
    path = folder / "lake" / "x.parquet"
    write(path, table, mode, column_keys={"k_pii": ["email"]}, row_group_size=200)
    sb.add_bloom_filters(path, columns=["email"], keys=KEYRING)
    return folder / "lake"


def _traced(lake: Path, **options: object) -> TraceReport:
    return sb.trace(lake, values_of=f"{lake}:email", keys=KEYRING, **options)  # type: ignore[arg-type]


@MODES
@pytest.mark.parametrize("as_written", [False, True], ids=["all", "as_written"])
def test_a_protected_column_is_no_leak_where_it_is(
    tmp_path: Path, mode: Mode, as_written: bool
) -> None:
    report = _traced(_lake(tmp_path, mode), as_written=as_written)
    assert (report.searched, report.files, report.is_clean) == (1, (), True)


@MODES
@pytest.mark.parametrize("as_written", [False, True], ids=["all", "as_written"])
def test_a_column_in_clear_beside_it_is_searched(
    tmp_path: Path, mode: Mode, as_written: bool
) -> None:
    notes = [f"asked by {EMAILS[n]}" if n % 60 == 7 else "none" for n in range(600)]
    report = _traced(_lake(tmp_path, mode, note=notes), as_written=as_written)
    (file,) = report.files
    assert not file.unread
    assert ("column 3", 10) in {(it.place, it.confirmed) for it in file.found}
    assert not report.is_clean


@MODES
def test_a_file_under_another_key_is_not_read(tmp_path: Path, mode: Mode) -> None:
    lake = _lake(tmp_path, mode)
    key = sb.Keyring(master_keys={"k_footer": b"0123456789012345"})
    other = tmp_path / "other"
    other.mkdir()
    table = pa.table({"id": ["a"], "email": EMAILS[:1]})
    (other / "y.parquet").write_bytes((lake / "x.parquet").read_bytes())
    plain = tmp_path / "plain.parquet"
    write(plain, table, Mode.PLAIN)
    report = sb.trace(other, values_of=f"{plain}:email", keys=key)
    (file,) = report.files
    assert all("k_" in it.reason or "key" in it.reason for it in file.unread)
    assert file.unread
    assert not report.is_clean
