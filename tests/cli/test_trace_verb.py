"""``secure-bloom trace``: is this dump ours?"""

from __future__ import annotations

import json
from pathlib import Path

import jsonschema
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import secure_bloom as sb
from testing.command_line import run as run_command
from testing.project import ROOT


def run(*arguments: str) -> tuple[int, str]:
    done = run_command(*arguments)
    return done.returncode, done.stdout + ("" if "--json" in arguments else done.stderr)


EMAILS = [f"anna{n}@post.fi" for n in range(50)]


@pytest.fixture
def table(tmp_path: Path) -> str:
    pq.write_table(pa.table({"who": [{"email": it} for it in EMAILS]}), tmp_path / "t.parquet")
    return str(tmp_path / "t.parquet")


def test_a_dump_is_found_and_no_value_is_shown(tmp_path: Path, table: str) -> None:
    dump = tmp_path / "dump.csv"
    dump.write_text("\n".join(f"{n};{it}" for n, it in enumerate(EMAILS)))
    code, output = run("trace", str(dump), "--values-of", f"{table}:who.email")
    assert code == 1
    assert "50" in output
    assert EMAILS[7] not in output


def test_another_dump_is_clean(tmp_path: Path, table: str) -> None:
    dump = tmp_path / "dump.csv"
    dump.write_text("bob@post.fi")
    code, output = run("trace", str(dump), "--values-of", f"{table}:who.email")
    assert (code, "no value found" in output) == (0, True)


def test_a_column_that_is_not_searched_for_is_no_clean_dump(tmp_path: Path) -> None:
    days = pa.array(range(2_000), pa.date32())
    pq.write_table(
        pa.table({"born": days, "country": ["de", "fi"] * 1_000}), tmp_path / "t.parquet"
    )
    dump = tmp_path / "dump.csv"
    dump.write_text("\n".join(f"de;{it}" for it in days.to_pylist()))
    for column, why in (("born", "so dense"), ("country", "fewer than 4 letters")):
        wanted = (str(dump), "--values-of", f"{tmp_path / 't.parquet'}:{column}")
        code, output = run("trace", *wanted)
        assert (code, "no value found" in output) == (1, False)
        assert f"{column}: no value was searched for: " in output
        assert why in output
        code, output = run("trace", *wanted, "--json")
        assert code == 1
        assert why in json.loads(output)["columns"][0]["not_searched"]


def test_a_value_counts_once_however_it_is_written(tmp_path: Path) -> None:
    numbers = [12_345_678_901 + 997_331 * n for n in range(2_000)]
    pq.write_table(pa.table({"n": numbers}), tmp_path / "t.parquet")
    dump = tmp_path / "dump.csv"
    for text in ("{0}.0", "{0}.00", "{0};{0}.0", "{0:,}"):
        dump.write_text("\n".join(text.format(it) for it in numbers[:100]))
        report = sb.trace(str(dump), values_of=f"{tmp_path / 't.parquet'}:n")
        (found,) = report.files[0].found
        assert (found.passed, found.confirmed, found.share) == (100, 100, 0.05), text


def test_a_search_for_values_as_they_are_written_says_so(tmp_path: Path, table: str) -> None:
    dump = tmp_path / "dump.csv"
    dump.write_text("\n".join(EMAILS[:5]))
    code, output = run("trace", str(dump), "--values-of", f"{table}:who.email", "--as-written")
    assert code == 1
    assert "who.email: values in other capitals and as digests were not searched for" in output


def test_what_is_not_read_is_no_clean_dump(tmp_path: Path, table: str) -> None:
    dump = tmp_path / "dump.rar"
    dump.write_bytes(b"Rar!\x1a\x07\0" + b"\0" * 20)
    code, output = run("trace", str(dump), "--values-of", f"{table}:who.email")
    assert (code, "not read: a RAR archive" in output) == (1, True)


def test_the_document_has_its_schema(tmp_path: Path, table: str) -> None:
    (tmp_path / "dump").mkdir()
    (tmp_path / "dump" / f"{EMAILS[3]}.txt").write_text("x")
    (tmp_path / "dump" / "x.rar").write_bytes(b"Rar!\x1a\x07\0" + b"\0" * 20)
    code, output = run(
        "trace", str(tmp_path / "dump"), "--values-of", f"{table}:who.email", "--json"
    )
    schema = json.loads((ROOT / "docs" / "schemas" / "trace.json").read_text())
    jsonschema.validate(json.loads(output), schema)
    assert code == 1
    assert EMAILS[3] not in output


@pytest.mark.parametrize("text", ["email", ":email", "t.parquet:"])
def test_a_column_names_its_table(table: str, text: str) -> None:
    code, output = run("trace", table, "--values-of", text)
    assert (code, "TABLE:COLUMN" in output) == (2, True)


def test_a_file_that_is_not_there_is_an_error(table: str) -> None:
    code, output = run("trace", "nowhere", "--values-of", f"{table}:who.email")
    assert (code, "no such file" in output) == (2, True)
    with pytest.raises(sb.MissingPathError):
        sb.trace("nowhere", values_of=f"{table}:who.email")
