"""Runs on some partitions of folders without a log: by the names of folders, as on Spark."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import secure_bloom as sb
from testing.command_line import run
from testing.delta_tables import write_table

POLICY = (
    '[kms]\nclient = "keyring"\nkeyring = "keys.json"\n'
    '[footer]\nkey = "k_footer"\n[columns.email]\nkey = "k_pii"\nbloom = true\n'
)
DAYS = ("day=2026-11-19", "day=2026-11-20", "day=__HIVE_DEFAULT_PARTITION__")
WHERE = "day = '2026-11-20'"


@pytest.fixture
def lake(tmp_path: Path) -> Path:
    for day in DAYS:
        folder = tmp_path / "t" / day / "hour=03"
        folder.mkdir(parents=True)
        pq.write_table(pa.table({"email": ["a@x.example"]}), folder / "x.parquet")
    done = run("keys", "new", tmp_path / "keys.json", "k_footer", "k_pii", "k_new")
    assert done.returncode == 0, done.stderr
    (tmp_path / "policy.toml").write_text(POLICY)
    (tmp_path / "moved.toml").write_text(POLICY.replace("k_pii", "k_new"))
    return tmp_path / "t"


def contents(lake: Path) -> dict[str, bytes]:
    return {path.parts[-3]: path.read_bytes() for path in lake.rglob("*.parquet")}


def changed(lake: Path, before: dict[str, bytes]) -> list[str]:
    return sorted(day for day, content in contents(lake).items() if before[day] != content)


def test_filters_are_added_to_the_chosen_partitions(lake: Path) -> None:
    before = contents(lake)
    report = sb.add_bloom_filters(lake, columns="email", where=f"{WHERE} and hour < 10")
    assert [file.status for file in report.files] == ["added"]
    assert changed(lake, before) == ["day=2026-11-20"]
    for where in ("day is null", "not hour = 3"):
        assert len(sb.add_bloom_filters(lake, columns="email", where=where).files) == (
            1 if "null" in where else 0
        )
    assert changed(lake, before) == ["day=2026-11-20", "day=__HIVE_DEFAULT_PARTITION__"]


def test_keys_are_changed_in_the_chosen_partitions(lake: Path) -> None:
    policy, before = lake.parent / "policy.toml", contents(lake)
    report = sb.reencrypt(lake, policy=policy, where=WHERE)
    assert [file.status for file in report.files] == ["reencrypted"]
    assert changed(lake, before) == ["day=2026-11-20"]
    sb.reencrypt(lake, policy=policy)
    before = contents(lake)
    moves = {"k_pii": "k_new"}
    sb.rotate_keys(lake, policy=lake.parent / "moved.toml", moves=moves, where=WHERE)
    assert changed(lake, before) == ["day=2026-11-20"]
    clear = lake.parent / "clear"
    sb.decrypt(lake, policy=policy, output=clear, where="day = '2026-11-19'")
    assert list(contents(clear)) == ["day=2026-11-19"]
    assert pq.read_table(next(clear.rglob("*.parquet")), partitioning=None).num_rows == 1


def test_a_table_is_decrypted_in_part(tmp_path: Path) -> None:
    table, clear = Path(write_table(tmp_path / "t")), tmp_path / "clear"
    days = {path.parent.name for path in table.rglob("*.parquet")}
    assert len(days) > 1
    day = min(days)
    sb.decrypt(table, output=clear, where=f"day = '{day.partition('=')[2]}'")
    assert {path.parent.name for path in clear.rglob("*.parquet")} == {day}


@pytest.mark.parametrize(
    ("where", "told"),
    [
        ("dya = '2026-11-20'", "'dya' is not a partition column"),
        ("email = 'a@x.example'", "'email' is not a partition column"),
        ("day = ", "needs a value"),
    ],
)
def test_a_mistake_is_an_error_before_anything_is_written(
    lake: Path, where: str, told: str
) -> None:
    before = contents(lake)
    with pytest.raises(sb.PolicyError) as caught:
        sb.add_bloom_filters(lake, columns="email", where=where)
    assert told in str(caught.value)
    if "partition" in told:
        assert "they are day, hour" in str(caught.value.hint)
    assert contents(lake) == before


def test_the_command_takes_partitions_too(lake: Path) -> None:
    before = contents(lake)
    done = run("add", lake, "--column", "email", "--where", WHERE)
    assert (done.returncode, done.stderr) == (0, "")
    assert "1 file: 1 added" in done.stdout
    assert changed(lake, before) == ["day=2026-11-20"]
    done = run("add", lake, "--column", "email", "--where", "day = '2020-01-01'")
    assert done.returncode == 0
    assert "0 files: nothing to do" in done.stdout
    assert "status" not in done.stdout
    assert "no live file matches the condition on day" in done.stdout + done.stderr
    report = sb.rotate_keys(lake, policy=lake.parent / "policy.toml", where="day = '2020-01-01'")
    assert report.notes == ("no live file matches the condition on day",)
    assert changed(lake, before) == ["day=2026-11-20"]
