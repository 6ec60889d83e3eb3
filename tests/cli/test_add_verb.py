"""`secure-bloom add`: what it writes, leaves alone and refuses."""

from __future__ import annotations

import json
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from testing import tables
from testing.command_line import run
from testing.tables import MASTER_KEYS
from tests.cli.conftest import POLICY, assert_error


def test_add_twice_finds_nothing_to_do(lake: Path) -> None:
    run("add", lake / "out", "--policy", lake / "policy.toml")
    before = [path.read_bytes() for path in sorted((lake / "out").iterdir())]
    again = run("add", lake / "out", "--policy", lake / "policy.toml")
    assert again.returncode == 0
    assert "unchanged" in again.stdout
    assert "12 kept" in again.stdout
    assert [path.read_bytes() for path in sorted((lake / "out").iterdir())] == before


def test_dry_run_and_output_leave_the_input_alone(lake: Path) -> None:
    before = (lake / "out" / "part-0.parquet").read_bytes()
    policy = ("--policy", lake / "policy.toml")
    dry = run("add", lake / "out", *policy, "--dry-run", "--json")
    assert json.loads(dry.stdout)["files"][0]["status"] == "added"
    copied = run("add", lake / "out", *policy, "--output", lake / "new")
    assert copied.returncode == 0, copied.stderr
    assert (lake / "out" / "part-0.parquet").read_bytes() == before
    new = lake / "new" / "part-0.parquet"
    assert new.stat().st_size > len(before)
    assert tables.read(new).equals(tables.read(lake / "out" / "part-0.parquet"))


def test_a_failing_file_does_not_stop_the_others(lake: Path) -> None:
    (lake / "out" / "part-00.parquet").write_bytes(b"PAR1 this is not a footer PAR1")
    done = run("add", lake / "out", "--policy", lake / "policy.toml", "--json")
    assert_error(done, "part-00.parquet")
    statuses = {Path(f["path"]).name: f["status"] for f in json.loads(done.stdout)["files"]}
    assert statuses == {
        "part-0.parquet": "added",
        "part-00.parquet": "failed",
        "part-1.parquet": "added",
    }


def test_a_master_key_that_does_not_fit_is_an_error_and_the_file_stays(lake: Path) -> None:
    wrong = {**MASTER_KEYS, "k_pii": bytes(24)}
    (lake / "wrong.json").write_text(tables.keyring_json(wrong))
    (lake / "wrong.json").chmod(0o600)
    before = (lake / "out" / "part-0.parquet").read_bytes()
    done = run("add", lake / "out", "--column", "email", "--keyring", lake / "wrong.json")
    assert_error(done, "part-0.parquet", "email", "k_pii")
    assert (lake / "out" / "part-0.parquet").read_bytes() == before


def test_a_boolean_column_and_an_unknown_master_key_are_errors_before_any_write(lake: Path) -> None:
    pq.write_table(pa.table({"flag": [True], "n": [1]}), lake / "flags.parquet")
    before = (lake / "flags.parquet").read_bytes()
    assert_error(run("add", lake / "flags.parquet", "--column", "flag"), "BOOLEAN", "flag")
    assert (lake / "flags.parquet").read_bytes() == before
    policy = lake / "typo.toml"
    policy.write_text(POLICY.replace("k_pii", "k_pij"))
    assert_error(run("add", lake / "out", "--policy", policy), "k_pij", "k_pii")


def test_a_column_name_may_hold_colons_and_is_given_once(tmp_path: Path) -> None:
    path = tmp_path / "x.parquet"
    pq.write_table(pa.table({"a b:c": [1, 2]}), path)
    done = run("add", path, "--column", "a b:c:fpp=0.1:max_bytes=64", "--json")
    (report,) = json.loads(done.stdout)["files"][0]["filters"]
    assert (report["column"], report["fpp_requested"]) == ("a b:c", 0.1)
    assert_error(run("add", path, "--column", "a b:c", "--column", "a b:c:fpp=0.5"), "twice")


@pytest.mark.parametrize("way", ["itself", "dots", "link"])
def test_an_output_folder_that_is_the_input_is_refused(lake: Path, way: str) -> None:
    before = (lake / "out" / "part-0.parquet").read_bytes()
    policy = lake / "policy.toml"
    output = {"itself": lake / "out", "dots": lake / "out" / ".." / "out", "link": lake / "link"}[
        way
    ]
    (lake / "link").symlink_to("out")
    done = run("add", lake / "out", "--policy", policy, "--output", output)
    assert_error(done, "overwrite the input")
    assert (lake / "out" / "part-0.parquet").read_bytes() == before
