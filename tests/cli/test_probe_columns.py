"""``probe --from``: values from a column of a file with several."""

from __future__ import annotations

import json
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import secure_bloom as sb
from secure_bloom.cli.inputs import listed_values
from secure_bloom.errors import PolicyError
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


@pytest.mark.parametrize(
    ("content", "column", "values"),
    [
        ('v,w\n"",1\n"no",2\n', ":v", ["", "no"]),
        ('v,w\n,1\n"",2\n"""q",3\n""x,4\n5" is,5\n', ":v", ["", '"q', "x", '5" is']),
        ('v;w\r\n"a;"";";1\r\n"";2\r\n;3', ":v", ['a;";', ""]),
        ('w,v\n1,""\n2\n\n3,"two\n""\nlines"', ":v", ["", 'two\n"\nlines']),
        ('""\n\n"a, b"\n', "", ["", "a, b"]),
    ],
)
def test_an_empty_text_in_quotes_was_no_value(
    tmp_path: Path, content: str, column: str, values: list[str]
) -> None:
    wanted = tmp_path / "wanted.csv"
    wanted.write_bytes(content.encode())
    assert listed_values(f"{wanted}{column}") == values


def test_values_without_content_were_skipped_in_silence(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    wanted = tmp_path / "wanted.txt"
    wanted.write_text("a\n\nb\u2028c\n\n")
    assert listed_values(str(wanted)) == ["a", "b\u2028c"]
    assert capsys.readouterr().err == f"note: 2 empty lines of {wanted} were skipped\n"


def test_a_cell_beyond_the_limit_of_csv_was_a_traceback(tmp_path: Path) -> None:
    wanted = tmp_path / "wanted.csv"
    wanted.write_text("v\n" + "secret" * 30_000)
    with pytest.raises(PolicyError, match="cannot be parsed: field larger") as caught:
        listed_values(f"{wanted}:v")
    assert "secret" not in str(caught.value)


def test_what_sql_writes_is_probed(tmp_path: Path) -> None:
    table = tmp_path / "x.parquet"
    pq.write_table(pa.table({"name": ["", "a", None]}), table)
    sb.add_bloom_filters(table, columns=["name"])
    written = tmp_path / "names.csv"
    run("sql", f"select name from '{table}'", "-o", written)
    done = run("probe", table, "name", "--from", f"{written}:name", "--json")
    assert json.loads(done.stdout)["values"] == {"": "maybe", "a": "maybe"}
