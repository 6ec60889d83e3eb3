"""`secure-bloom inspect`: what shows without keys, and `--check`."""

from __future__ import annotations

import json
from pathlib import Path

from testing import tables
from testing.command_line import run
from testing.surgery import filter_place
from tests.cli.conftest import assert_clean


def test_inspect_without_keys_says_what_shows(lake: Path) -> None:
    done = run("inspect", lake / "out" / "part-0.parquet", "--json")
    file = json.loads(done.stdout)["files"][0]
    assert done.returncode == 0
    assert (file["footer"], file["key"], file["row_groups"]) == ("encrypted", "k_footer", [])


def test_inspect_check_ends_with_one_for_a_wrong_filter(tmp_path: Path) -> None:
    path = tables.write(tmp_path / "x.parquet", tables.customers(60))
    run("add", path, "--column", "email")
    assert run("inspect", path, "--check").returncode == 0
    place = filter_place(path, 0, "email")
    content = bytearray(path.read_bytes())
    content[place.stop - 32 : place.stop] = bytes(32)
    path.write_bytes(content)
    assert run("inspect", path).returncode == 0
    done = run("inspect", path, "--check")
    assert_clean(done)
    assert done.returncode == 1
    assert "wrong filter" in done.stdout
    mended = run("add", path, "--column", "email", "--replace-filters")
    assert "queries lost rows" in mended.stdout
    assert run("inspect", path, "--check").returncode == 0


def test_a_row_for_each_of_many_files_names_their_keys(tmp_path: Path) -> None:
    for number in range(11):
        tables.write(tmp_path / f"{number}.parquet", tables.customers(3), tables.Mode.ENCRYPTED)
    (tmp_path / "keys.json").write_text(tables.keyring_json())
    done = run("inspect", tmp_path / "*.parquet", "--keyring", tmp_path / "keys.json")
    assert "k_footer, k_pii, k_finance" in done.stdout


def test_a_text_for_a_number_is_told_the_number(tmp_path: Path) -> None:
    done = run("add", tmp_path, "--column", "x", "--since", "yesterday")
    assert done.returncode == 2
    assert "'yesterday' is not a whole number" in done.stderr
