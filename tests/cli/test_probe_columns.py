"""``probe --from``: values from a column of a file with several."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

import secure_bloom as sb
from testing.command_line import run
from testing.tables import KEYRING, Mode, customers, keyring_json, write


@pytest.mark.parametrize(("ending", "separator"), [("csv", ","), ("tsv", "\t")])
def test_values_come_from_the_named_column(tmp_path: Path, ending: str, separator: str) -> None:
    table = write(tmp_path / "x.parquet", customers(50), Mode.ENCRYPTED)
    sb.add_bloom_filters(table, columns=["email"], keys=KEYRING)
    (tmp_path / "k.json").write_text(keyring_json())
    wanted = tmp_path / f"wanted.{ending}"
    lines = [["id", "email"], ["7", "user7@example.com"], ["8", '"nobody, at all"']]
    wanted.write_text("".join(separator.join(line) + "\n" for line in lines))
    probe = ["probe", str(table), "email", "--keyring", str(tmp_path / "k.json"), "--json"]
    done = run(*probe, "--from", f"{wanted}:email")
    [group] = json.loads(done.stdout)["files"][0]["row_groups"]
    assert group["verdicts"] == {"user7@example.com": "maybe", "nobody, at all": "absent"}
    done = run(*probe, "--from", wanted)
    assert done.returncode == 2
    assert "lines have several columns, wanted one value a line" in done.stderr
    assert f"--from {wanted}:COLUMN" in done.stderr
    assert "user7" not in done.stderr
    assert (
        "the first line names no column nothing"
        in run(*probe, "--from", f"{wanted}:nothing").stderr
    )


def test_a_file_of_one_column_has_a_value_a_line(tmp_path: Path) -> None:
    table = write(tmp_path / "x.parquet", customers(50))
    sb.add_bloom_filters(table, columns=["email"])
    wanted = tmp_path / "wanted.csv"
    wanted.write_text("user7@example.com\n")
    assert run("probe", table, "email", "--from", wanted).returncode == 0
