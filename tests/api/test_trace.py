"""``secure_bloom.trace``: progress, several columns, threads."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import secure_bloom as sb
from secure_bloom.errors import PolicyError


def test_columns_of_tables_are_searched_for_together(tmp_path: Path) -> None:
    emails, ibans = (
        [f"anna{n}@post.fi" for n in range(9)],
        [f"DE4450010517540{n:07d}" for n in range(9)],
    )
    pq.write_table(pa.table({"email": emails, "iban": ibans}), tmp_path / "t.parquet")
    (tmp_path / "dump").mkdir()
    for n in range(9):
        (tmp_path / "dump" / f"{n}.txt").write_text(f"{emails[n]} {ibans[n]}")
    done: list[tuple[int, int]] = []
    report = sb.trace(
        tmp_path / "dump",
        values_of=[f"{tmp_path}/t.parquet:email", f"{tmp_path}/t.parquet:iban"],
        jobs=2,
        progress=lambda *counts: done.append(counts),
    )
    assert done[-1] == (9, 9)
    assert [sorted(it.column for it in file.findings) for file in report.files] == [
        ["email", "iban"]
    ] * 9


def test_a_column_that_the_table_lacks_is_named(tmp_path: Path) -> None:
    pq.write_table(pa.table({"email": ["anna1@post.fi"]}), tmp_path / "t.parquet")
    with pytest.raises(PolicyError, match="absent"):
        sb.trace(tmp_path, values_of=f"{tmp_path}/t.parquet:absent")


@pytest.mark.parametrize(
    "column", ["l", "l.list.element", "s.list.element.e", "m.key_value.value", "t.e.list.element"]
)
def test_values_in_lists_and_maps_are_searched_for(tmp_path: Path, column: str) -> None:
    emails = [f"anna{n}@post.fi" for n in range(9)]
    columns = {
        "l": pa.array([[it, None] for it in emails]),
        "s": [[{"e": it}] for it in emails],
        "m": pa.array([[("k", it)] for it in emails], pa.map_(pa.string(), pa.string())),
        "t": [{"e": [it]} for it in emails],
    }
    pq.write_table(pa.table(columns), tmp_path / "t.parquet")
    (tmp_path / "log.txt").write_text("\n".join(emails))
    (found,) = sb.trace(tmp_path / "log.txt", values_of=f"{tmp_path}/t.parquet:{column}").files
    assert [it.column for it in found.findings] == [column]


def test_a_member_that_a_column_lacks_is_named(tmp_path: Path) -> None:
    pq.write_table(pa.table({"s": [{"e": "anna1@post.fi"}]}), tmp_path / "t.parquet")
    with pytest.raises(PolicyError, match="absent"):
        sb.trace(tmp_path, values_of=f"{tmp_path}/t.parquet:s.absent")


def test_parts_that_the_policy_names_are_searched_for(tmp_path: Path) -> None:
    pq.write_table(
        pa.table({"email": [f"anna.rossi{n}@post.fi" for n in range(60)]}), tmp_path / "t.parquet"
    )
    (tmp_path / "log.txt").write_text("\n".join(f"anna.rossi{n}@*****" for n in range(60)))
    (tmp_path / "policy.toml").write_text('[columns.email]\nparts = ["local"]\n')
    asked = {"values_of": f"{tmp_path}/t.parquet:email"}
    assert not sb.trace(tmp_path / "log.txt", **asked).files
    report = sb.trace(tmp_path / "log.txt", policy=tmp_path / "policy.toml", **asked)
    assert [it.column for it in report.files[0].findings] == ["email"]
