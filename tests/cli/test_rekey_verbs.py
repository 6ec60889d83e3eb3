"""`secure-bloom reencrypt`, `decrypt` and `rotate`: what they are told, and what they tell."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from testing import tables
from testing.command_line import run
from tests.cli.conftest import assert_clean, assert_error


@pytest.mark.parametrize(
    "words",
    [
        ("--from", "k_pii"),
        ("--from", "k_pii", "--to", "k_new", "--to", "k_other"),
        ("--from", "k_pii", "--from", "k_pii", "--to", "k_new", "--to", "k_other"),
    ],
)
def test_keys_to_leave_and_to_come_to_are_pairs(lake: Path, words: tuple[str, ...]) -> None:
    before = (lake / "out" / "part-0.parquet").read_bytes()
    done = run("rotate", lake / "out", "--policy", lake / "policy.toml", *words)
    assert_error(done, "--from and --to come in pairs, each old key once")
    assert (lake / "out" / "part-0.parquet").read_bytes() == before


def test_files_in_clear_are_told_and_come_back_under_the_policy(lake: Path) -> None:
    policy = ("--policy", lake / "policy.toml")
    done = run("decrypt", lake / "out", *policy, "--output", lake / "clear")
    assert_clean(done)
    assert done.returncode == 0
    assert f"note: what is below {lake / 'clear'} is in clear" in done.stderr
    one = lake / "clear" / "part-0.parquet"
    assert tables.read(one, encrypted=False).equals(tables.read(lake / "out" / "part-0.parquet"))
    told = run("reencrypt", lake / "clear", *policy, "--output", lake / "again", "--json")
    assert told.returncode == 0, told.stderr
    assert {file["status"] for file in json.loads(told.stdout)["files"]} == {"reencrypted"}
    again = lake / "again" / "part-0.parquet"
    assert (one.read_bytes()[-4:], again.read_bytes()[-4:]) == (b"PAR1", b"PARE")
    assert tables.read(again).equals(tables.read(lake / "out" / "part-0.parquet"))
