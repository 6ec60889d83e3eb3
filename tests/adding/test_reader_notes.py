"""`add`, `policy` and `probe` say which filters a reader cannot use."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from click.testing import CliRunner

import secure_bloom as sb
from secure_bloom.cli.verbs import cli
from secure_bloom.inspecting.policy_problems import check_policy
from testing.tables import KEYRING, Mode, customers, write

NOON = datetime(2026, 1, 1, 12, tzinfo=UTC)


@pytest.fixture
def old_timestamps(tmp_path: Path) -> Path:
    """Write a table with INT96 timestamps, as Spark does by default."""
    folder = tmp_path / "events"
    folder.mkdir()
    table = pa.table({"id": [1, 2], "at": pa.array([NOON, NOON], pa.timestamp("us", "UTC"))})
    for name in ("a", "b"):
        pq.write_table(table, folder / f"{name}.parquet", use_deprecated_int96_timestamps=True)
    return folder


def test_add_notes_a_uniformly_encrypted_lake_once(tmp_path: Path) -> None:
    for name in ("a", "b", "c"):
        write(tmp_path / f"{name}.parquet", customers(10), Mode.UNIFORM)
    report = sb.add_bloom_filters(tmp_path, columns=["email", "id"], keys=KEYRING)
    [note] = report.notes
    assert note.startswith(
        f"{tmp_path}/a.parquet and 2 other files: readers: DuckDB cannot read columns"
    )
    assert "email, id" in note
    assert all("DuckDB" in file.notes[0] for file in report.files)
    again = sb.add_bloom_filters(tmp_path, columns=["email", "id"], keys=KEYRING)
    assert again.notes == ()


def test_add_notes_nothing_where_columns_have_keys_of_their_own(tmp_path: Path) -> None:
    path = write(
        tmp_path / "a.parquet", customers(10), Mode.ENCRYPTED, column_keys={"k_pii": ["email"]}
    )
    assert sb.add_bloom_filters(path, columns=["email"], keys=KEYRING).notes == ()


def test_add_notes_filters_of_int96(old_timestamps: Path) -> None:
    report = sb.add_bloom_filters(old_timestamps, columns=["id", "at"])
    [note] = report.notes
    assert "column at: INT96" in note
    assert "TIMESTAMP_MICROS" in note


def test_probe_does_not_ask_filters_of_int96(old_timestamps: Path) -> None:
    sb.add_bloom_filters(old_timestamps, columns=["at"])
    report = sb.probe(old_timestamps, "at", [NOON, "1999-01-01T00:00:00Z"])
    assert report.verdicts == {sb.Verdict.MAYBE}
    assert {file.note for file in report.files} == {report.files[0].note}
    assert "column at: INT96" in str(report.files[0].note)
    with pytest.raises(sb.PolicyError, match="wanted a timestamp"):
        sb.probe(old_timestamps, "at", "no time")
    shown = CliRunner().invoke(cli, ["probe", str(old_timestamps), "at", "1999-01-01T00:00:00Z"])
    assert shown.exit_code == 0
    assert shown.output.count("INT96") == 1
    as_json = CliRunner().invoke(cli, ["probe", str(old_timestamps), "id", "1", "--json"])
    assert {file["note"] for file in json.loads(as_json.output)["files"]} == {None}


def test_a_policy_of_int96_is_noted_before_a_filter_is_written(
    old_timestamps: Path, tmp_path: Path
) -> None:
    begun = CliRunner().invoke(cli, ["policy", "init", str(old_timestamps)])
    [line] = [line for line in begun.output.splitlines() if '"at"' in line]
    assert "no reader can use a filter" in line
    policy = tmp_path / "policy.toml"
    policy.write_text("[columns.at]\nbloom = true\n[columns.id]\nbloom = true\n")
    command = ["policy", "check", str(policy), "--table", str(old_timestamps)]
    checked = CliRunner().invoke(cli, command)
    assert checked.exit_code == 0
    assert "column at: INT96" in checked.output
    [note] = json.loads(CliRunner().invoke(cli, [*command, "--json"]).output)["notes"]
    assert "column at: INT96" in note


def test_int96_columns_are_one_note(tmp_path: Path) -> None:
    names = [f"at{place}" for place in range(5)]
    times = pa.array([NOON], pa.timestamp("us", "UTC"))
    file = tmp_path / "x.parquet"
    pq.write_table(
        pa.table(dict.fromkeys(names, times)), file, use_deprecated_int96_timestamps=True
    )
    policy = tmp_path / "policy.toml"
    policy.write_text("".join(f"[columns.{name}]\nbloom = true\n" for name in names))
    [note] = check_policy(policy, table=str(file)).notes
    assert note.startswith("columns at0, at1, at2, at3 and 1 more: INT96")
    schema = ", ".join(f"{name} timestamp" for name in names)
    [note] = check_policy(policy, schema=schema).notes
    assert note.startswith(
        "columns at0, at1, at2, at3 and 1 more: Spark writes timestamps as INT96"
    )
    [note] = sb.add_bloom_filters(file, policy=policy).notes
    assert "columns at0, at1, at2, at3 and 1 more: INT96" in note
