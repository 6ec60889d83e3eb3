"""Rows as text: read back by other programs, and harmless on a terminal."""

from __future__ import annotations

import errno
import io
import json
import os
import pty
import stat
import subprocess
import sys
from datetime import timedelta
from decimal import Decimal
from pathlib import Path
from typing import Any

import duckdb
import pyarrow as pa
import pyarrow.csv as pc
import pyarrow.parquet as pq
import pytest

import secure_bloom as sb
from secure_bloom.cli import row_formats
from secure_bloom.cli.row_formats import output_file, write_rows
from secure_bloom.errors import PolicyError
from secure_bloom.storage import output_files
from secure_bloom.storage.output_files import replaced
from testing.command_line import run

EVIL = "\x1b[31mred\x9b2J\r\n\u202ex\u2028"
TEXTS = ["", None, "x", "a,b", 'say "hi"', "two\nlines", " blank ", EVIL]


def shown(form: str, capsys: pytest.CaptureFixture[str], **columns: Any) -> str:
    table = pa.table(columns)
    assert write_rows(form, table.schema, table.to_batches(), None) == table.num_rows
    return capsys.readouterr().out


def test_a_stream_of_text_gets_texts(monkeypatch: pytest.MonkeyPatch) -> None:
    """As programs put it in the place of stdout, to read what is printed."""
    table = pa.table({"name": ["Zoë", None]})
    for form, text in {"csv": "name\nZoë\n\n", "jsonl": '"Zoë"', "table": "Zoë"}.items():
        monkeypatch.setattr(sys, "stdout", io.StringIO())
        assert write_rows(form, table.schema, table.to_batches(), None) == 2
        assert text in sys.stdout.getvalue()  # type: ignore[attr-defined]
    for form in ("arrow", "parquet"):
        with pytest.raises(PolicyError, match="not for a stream of text"):
            row_formats.format_of(form, None)


def test_nulls_and_empty_texts_come_back_from_csv(
    capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    text = shown("csv", capsys, n=range(len(TEXTS)), t=TEXTS)
    assert text.splitlines()[1:3] == ['0,""', "1,"]
    arrow = pc.read_csv(
        io.BytesIO(text.encode()),
        parse_options=pc.ParseOptions(newlines_in_values=True),
        convert_options=pc.ConvertOptions(
            strings_can_be_null=True, quoted_strings_can_be_null=False
        ),
    )
    assert arrow.column("t").to_pylist() == TEXTS
    (tmp_path / "x.csv").write_text(text, newline="")
    options = "all_varchar=true, allow_quoted_nulls=false"
    found = duckdb.sql(f"select t from read_csv('{tmp_path / 'x.csv'}', {options})")
    assert [t for (t,) in found.fetchall()] == TEXTS


def test_a_name_with_a_comma_is_one_column(capsys: pytest.CaptureFixture[str]) -> None:
    text = shown("csv", capsys, **{"a,b": [1], 'c"d': [2]})
    assert pc.read_csv(io.BytesIO(text.encode())).schema.names == ["a,b", 'c"d']


def test_bytes_and_decimals_have_one_form_everywhere(capsys: pytest.CaptureFixture[str]) -> None:
    decimals = pa.array([Decimal("0E-7"), Decimal("1E+3")], pa.decimal128(12, 7))
    columns = {
        "b": [b"", b"\x00\xff"],
        "d": decimals,
        "s": pa.StructArray.from_arrays([pa.array([b"", b"\x00\xff"]), decimals], ["b", "d"]),
        "m": pa.array([[("k", b"\x01")], None], pa.map_(pa.string(), pa.binary())),
    }
    rows = [json.loads(line) for line in shown("jsonl", capsys, **columns).splitlines()]
    assert rows[0] == {
        "b": "hex:",
        "d": "0.0000000",
        "s": {"b": "hex:", "d": "0.0000000"},
        "m": [["k", "hex:01"]],
    }
    assert rows[1]["s"] == {"b": "hex:00ff", "d": "1000.0000000"}
    csv = pc.read_csv(io.BytesIO(shown("csv", capsys, **columns).encode())).to_pylist()
    assert [json.loads(row["s"]) for row in csv] == [row["s"] for row in rows]
    assert (csv[0]["b"], csv[1]["b"]) == ("hex:", "hex:00ff")
    table = shown("table", capsys, **columns)
    assert "hex:00ff" in table
    assert "0.0000000" in table
    assert "E" not in table


def test_in_a_table_numbers_stand_by_their_last_digit_and_names_keep_theirs(
    capsys: pytest.CaptureFixture[str],
) -> None:
    _, head, _, *rows = shown("table", capsys, **{"n": [7, 1000], "t>": ["1", "22"]}).splitlines()
    assert [line.rstrip() for line in (head, *rows[:2])] == ["    n  t>", "    7  1", " 1000  22"]


def test_printed_values_can_be_used_in_conditions(
    capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    columns = {
        "b": pa.array([b"\x00\xff", b"\x01"]),
        "d": pa.array([Decimal("0E-7"), Decimal("1E+3")], pa.decimal128(12, 7)),
        "u": pa.array([timedelta(hours=1, minutes=30), timedelta(-1)], pa.duration("us")),
        "f": [1e22, -1.5],
        "t": ["it's", ""],
    }
    path = tmp_path / "x.parquet"
    pq.write_table(pa.table(columns), path)
    rows = [json.loads(line) for line in shown("jsonl", capsys, **columns).splitlines()]
    for number, row in enumerate(rows):
        for name, value in row.items():
            quoted = str(value).replace("'", "''")
            found = sb.read_table(path, where=f"{name} = '{quoted}'")
            assert found.to_pylist() == pq.read_table(path).slice(number, 1).to_pylist(), name


@pytest.mark.parametrize(
    ("text", "rows"),
    [("PT1H30M", 1), ("PT90M", 1), ("+PT5400S", 1), ("PT0.5S", 0), ("P1W", 0), ("-P1D", 1)],
)
@pytest.mark.parametrize("unit", ["s", "ms", "us", "ns"])
def test_a_duration_is_written_in_iso_8601(tmp_path: Path, unit: str, text: str, rows: int) -> None:
    path = tmp_path / "x.parquet"
    column = pa.array([timedelta(hours=1, minutes=30), timedelta(-1), None], pa.duration(unit))
    pq.write_table(pa.table({"u": column}), path)
    assert sb.read_table(path, where=f"u = '{text}'").num_rows == rows
    assert sb.read_table(path, where="u < PT0S").num_rows == 1
    for slip in ("1:30:00", "P1M", "PT1.5H", "1h30m"):
        with pytest.raises(sb.PolicyError, match="column u: the value is not one") as caught:
            sb.read_table(path, where=f"u = '{slip}'")
        assert "PT1H30M" in str(caught.value.hint)


def test_no_value_drives_a_terminal(capsys: pytest.CaptureFixture[str]) -> None:
    columns = {"t": [EVIL], "s": [{EVIL: EVIL}], EVIL: [1]}
    for form in ("table", "jsonl"):
        text = shown(form, capsys, **columns)
        assert all(c.isprintable() or c == "\n" for c in text), form
    (line,) = shown("jsonl", capsys, **columns).splitlines()
    assert json.loads(line) == {**{k: v[0] for k, v in columns.items()}}
    assert r"\x1b[31mred\x9b2J\r\n\u202ex" in shown("table", capsys, **columns)


def test_no_name_of_a_file_or_column_drives_a_terminal(tmp_path: Path) -> None:
    folder = tmp_path / "x\x1b[2J"
    folder.mkdir()
    path = folder / "evil\x1b]0;owned\x07\u202e.parquet"
    pq.write_table(pa.table({EVIL: [1], "id": [2]}), path)
    damaged = folder / "bad\x1b[31m.parquet"
    damaged.write_bytes(b"PAR1 nothing PAR1")
    policy = tmp_path / "policy.toml"
    policy.write_text("[columns.id]\n")
    every = [
        ("inspect", str(folder)),
        ("inspect", "-v", str(path)),
        ("probe", str(folder), "id", "2"),
        ("probe", str(path), EVIL, "2"),
        ("add", str(path), "--column", "id", "--dry-run", "-v"),
        ("add", str(damaged), "--column", "id"),
        ("hudi", "show", "-v", str(folder)),
        ("hudi", "lookup", str(folder), EVIL, "--column", EVIL),
        ("paimon", "show", "-v", str(folder)),
        ("paimon", "probe", str(path), '"id" = 5'),
        ("read", str(path), "--explain", "-v", "--where", "id = 2"),
        ("read", str(damaged)),
        ("read", str(path), "--columns", f'"{EVIL}x"'),
        ("audit", str(folder), "--policy", str(policy)),
    ]
    for arguments in every:
        done = run(*arguments)
        for text in (done.stdout, done.stderr):
            assert all(c.isprintable() or c == "\n" for c in text), arguments
            assert "unforeseen" not in text, arguments


@pytest.mark.parametrize("form", ["table", "csv", "jsonl"])
@pytest.mark.parametrize("of", ["text", "dictionary", "member"])
def test_a_text_that_is_no_utf8_is_a_named_error(form: str, of: str) -> None:
    text = pa.array([b"ok", b"\xff\xfe"]).cast(pa.binary()).view(pa.string())
    column = {
        "text": text,
        "dictionary": text.dictionary_encode(),
        "member": pa.StructArray.from_arrays([text], ["m"]),
    }[of]
    table = pa.table({"t": column})
    with pytest.raises(sb.FormatError, match="column t: a value of the column is not UTF-8"):
        write_rows(form, table.schema, table.to_batches(), None)


def test_texts_are_no_formulas_where_that_is_wanted(
    capsys: pytest.CaptureFixture[str],
) -> None:
    texts = ["=1+2", "+1", "-1", "@a", "\t=1", "\r=1", "plain", "", None, "a=1"]
    table = pa.table({"=n": [-5] * len(texts), "t": texts})
    write_rows("csv", table.schema, table.to_batches(), None, for_spreadsheets=True)
    read = pc.read_csv(
        io.BytesIO(capsys.readouterr().out.encode()),
        parse_options=pc.ParseOptions(newlines_in_values=True),
        convert_options=pc.ConvertOptions(
            strings_can_be_null=True, quoted_strings_can_be_null=False
        ),
    )
    assert read.schema.names == ["'=n", "t"]
    assert read.column("'=n").to_pylist() == [-5] * len(texts)
    wanted = ["'=1+2", "'+1", "'-1", "'@a", "'\t=1", "'\r=1", "plain", "", None, "a=1"]
    assert read.column("t").to_pylist() == wanted


def test_a_narrow_terminal_shows_values_whole_and_harmless(tmp_path: Path) -> None:
    path = tmp_path / "x.parquet"
    wide = {f"column {i}": [f"{EVIL}{'w' * 50}"] for i in range(9)}
    pq.write_table(pa.table(wide), path)
    text = on_terminal("read", str(path))
    assert "\x1b" not in text
    assert r"\x1b[31m" in text
    assert text.count("w" * 50) == 9


def on_terminal(*arguments: str, columns: int = 60) -> str:
    """What a terminal of that width is sent."""
    master, slave = pty.openpty()
    environment = {**os.environ, "COLUMNS": str(columns), "TERM": "dumb"}
    with subprocess.Popen(
        [sys.executable, "-m", "secure_bloom", *arguments], stdout=slave, env=environment
    ) as program:
        os.close(slave)
        received = b""
        try:
            while block := os.read(master, 65536):
                received += block
        except OSError:
            # What Linux says when the last writer is gone.
            pass
        program.wait(timeout=60)
    os.close(master)
    return received.decode().replace("\r\n", "\n")


@pytest.fixture
def lake(tmp_path: Path) -> Path:
    folder = tmp_path / "lake"
    folder.mkdir()
    pq.write_table(pa.table({"a": range(5)}), folder / "0.parquet")
    return folder


def read(path: Path, *arguments: object, code: int = 0) -> str:
    done = run("read", path, *arguments)
    assert done.returncode == code, done.stderr
    assert "Traceback" not in done.stderr
    return done.stderr


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("found.csv/", "found.csv/: the output is a folder"),
        ("lake", "lake: the output is a folder"),
        ("nowhere/found.csv", "there is no folder "),
        ("s3://bucket/found.csv", "the output is an object"),
        ("lake/0.parquet", "lake/0.parquet: the output would overwrite the input"),
        ("lake/found.parquet", "the output would become a file of the table, its rows in clear"),
        ("found.dat", "the format of the output is not known from its name"),
        ("found.table", "the format of the output is not known from its name"),
        ("found", "the format of the output is not known from its name"),
    ],
)
def test_an_impossible_output_is_refused_before_any_write(
    lake: Path, name: str, message: str
) -> None:
    before = (lake / "0.parquet").read_bytes()
    output = name if "://" in name else f"{lake.parent}/{name}"
    error = read(lake, "--output", output, code=2)
    assert message in error
    assert "secure-bloom: hint: " in error
    assert [p.name for p in lake.parent.rglob("*")] == ["lake", "0.parquet"]
    assert (lake / "0.parquet").read_bytes() == before


def test_rows_replace_no_file_that_the_policy_includes(lake: Path) -> None:
    policy, part = lake.parent / "policy.toml", lake.parent / "pii.toml"
    policy.write_text('include = ["pii.toml"]\n')
    part.write_text("[columns.id]\n")
    error = read(lake, "--policy", policy, "--format", "csv", "--output", part, code=2)
    assert "pii.toml: the output would overwrite the input" in error
    assert part.read_text() == "[columns.id]\n"


def test_a_folder_that_takes_no_file_is_named(lake: Path) -> None:
    error = read(lake, "--output", "/proc/found.csv", code=2)
    assert "/proc/found.csv: the output cannot be written: " in error


def written_and_read(path: Path) -> list[dict[str, Any]]:
    """The rows of an output, by a reader that is not this package."""
    if path.name.endswith(".arrow"):
        found: list[dict[str, Any]] = pa.ipc.open_file(path).read_all().to_pylist()
        return found
    if path.name.endswith(".parquet"):
        return pq.read_table(path).to_pylist()
    # DuckDB unpacks .gz by the name.
    table = f"read_json('{path}')" if ".jsonl" in path.name else f"read_csv('{path}')"
    return duckdb.sql(f"select * from {table}").to_arrow_table().to_pylist()


@pytest.mark.parametrize(
    "name",
    ["x.tsv", "x.arrow", "x.parquet", "x.csv.gz", "x.TSV.GZ", "x.jsonl.gz"],
)
def test_a_name_says_the_format_and_what_was_written_is_said(tmp_path: Path, name: str) -> None:
    rows = [{"a": 1, "t": "tab\there"}, {"a": 2, "t": 'say "hi", you'}]
    pq.write_table(pa.Table.from_pylist(rows), tmp_path / "in.parquet")
    said = read(tmp_path / "in.parquet", "--output", tmp_path / name)
    output = tmp_path / name
    size = f"({output.stat().st_size} bytes)"
    assert said == f"wrote 2 rows to {output} {size}\n"
    assert written_and_read(output.rename(tmp_path / name.lower())) == rows
    assert read(tmp_path / "in.parquet", "-q", "--output", output) == ""


@pytest.mark.parametrize("verb", ["read", "sql"])
def test_an_arrow_file_takes_columns_whose_dictionaries_differ_by_file(
    tmp_path: Path, verb: str
) -> None:
    lake = tmp_path / "lake"
    lake.mkdir()
    for name, values in (("0", ["a", "b"]), ("1", ["c", "a"])):
        texts = pa.array(values).dictionary_encode()
        listed = pa.ListArray.from_arrays([0, 1, 2], texts)
        member = pa.StructArray.from_arrays([texts], names=["inner"])
        content = pa.table({"text": texts, "listed": listed, "member": member})
        pq.write_table(content, lake / f"{name}.parquet")
    asked = [str(lake)] if verb == "read" else [f"select * from '{lake}'"]
    written = tmp_path / "x.arrow"
    done = run(verb, *asked, "-o", written)
    assert done.returncode == 0, done.stderr
    rows = written_and_read(written)
    assert sorted(it["text"] for it in rows) == ["a", "a", "b", "c"]
    assert all(it["listed"] == [it["text"]] == [it["member"]["inner"]] for it in rows)


@pytest.mark.parametrize(
    ("verb", "form"),
    [
        ("read", "tsv"),
        ("sql", "arrow"),
        pytest.param("read", "parquet", marks=pytest.mark.slow),
        ("sql", "parquet"),
    ],
)
def test_rows_go_into_a_pipe_in_each_format(lake: Path, verb: str, form: str) -> None:
    asked = [str(lake)] if verb == "read" else [f"select * from '{lake}'"]
    command = [sys.executable, "-m", "secure_bloom", verb, *asked, "--format", form, "-o", "-"]
    done = subprocess.run(command, capture_output=True, check=True, timeout=60)
    assert done.stderr == b""
    content = io.BytesIO(done.stdout)
    rows = {
        "parquet": pq.read_table,
        "arrow": lambda it: pa.ipc.open_stream(it).read_all(),
        "tsv": pc.read_csv,
    }[form](content)
    assert rows.to_pylist() == [{"a": number} for number in range(5)]


@pytest.mark.parametrize("form", ["csv", "jsonl"])
def test_a_pipe_gets_utf8_whatever_the_locale(tmp_path: Path, form: str) -> None:
    pq.write_table(pa.table({"t": ["Zoë 漢"]}), tmp_path / "x.parquet")
    command = [sys.executable, "-m", "secure_bloom", "read", str(tmp_path / "x.parquet")]
    found = subprocess.run(
        [*command, "--format", form],
        capture_output=True,
        check=False,
        env={**os.environ, "PYTHONIOENCODING": "latin-1"},
    )
    assert (found.returncode, found.stderr) == (0, b"")
    assert "Zoë 漢" in found.stdout.decode()


@pytest.mark.parametrize("form", ["parquet", "arrow"])
def test_bytes_are_not_sent_to_a_terminal(lake: Path, form: str) -> None:
    assert on_terminal("read", str(lake), "--format", form) == ""


def test_the_rows_and_a_report_are_not_mixed_on_stdout(lake: Path) -> None:
    for option in ("--json", "--explain"):
        error = read(lake, option, "-o", "-", code=2)
        assert "the rows and the report would both be written to stdout" in error


def test_parquet_is_not_packed_twice(lake: Path, tmp_path: Path) -> None:
    error = read(lake, "--output", tmp_path / "x.parquet.gz", code=2)
    assert "parquet is not packed again" in error
    assert not (tmp_path / "x.parquet.gz").exists()


def test_on_80_columns_rows_become_records_and_no_cell_is_cut(tmp_path: Path) -> None:
    row = {"email": "somebody@customers.example", "iban": "IT60X0542811101000000123456", "n": 1}
    path = tmp_path / "x.parquet"
    pq.write_table(pa.Table.from_pylist([row]), path)
    assert "row 1" not in on_terminal("read", str(path), columns=80)
    pq.write_table(pa.Table.from_pylist([row | {"address": "Via Appia Antica 1, Roma"}]), path)
    text = on_terminal("read", str(path), columns=80)
    assert text.splitlines() == [
        "row 1",
        "  email    somebody@customers.example",
        "  iban     IT60X0542811101000000123456",
        "  n        1",
        "  address  Via Appia Antica 1, Roma",
        "1 row",
    ]


def test_a_table_is_for_the_terminal(lake: Path, tmp_path: Path) -> None:
    error = read(lake, "--format", "table", "--output", tmp_path / "x.txt", code=2)
    assert "the format table is only for the terminal" in error
    assert not (tmp_path / "x.txt").exists()


def test_a_file_is_replaced_with_its_permissions_and_its_name(lake: Path, tmp_path: Path) -> None:
    (tmp_path / "old.csv").write_text("what was there")
    (tmp_path / "old.csv").chmod(0o640)
    (tmp_path / "link.CSV").symlink_to("old.csv")
    read(lake, "--output", tmp_path / "link.CSV", "--limit", 1)
    assert (tmp_path / "link.CSV").is_symlink()
    assert (tmp_path / "old.csv").read_text() == "a\n0\n"
    assert stat.S_IMODE((tmp_path / "old.csv").stat().st_mode) == 0o640


def test_a_new_file_is_for_its_owner(lake: Path, tmp_path: Path) -> None:
    read(lake, "--output", tmp_path / "new.csv")
    assert stat.S_IMODE((tmp_path / "new.csv").stat().st_mode) == 0o600


def test_beside_a_single_file_is_no_table(lake: Path) -> None:
    read(lake / "0.parquet", "--output", lake / "found.parquet")
    assert pq.read_table(lake / "found.parquet").num_rows == 5


def test_until_the_last_row_the_old_file_stands(tmp_path: Path) -> None:
    path = output_file(f"{tmp_path}/found.csv")
    assert path is not None
    path.write_text("what was there")

    def interrupted() -> None:
        with replaced(path) as file:
            file.write(b"half")
            file.flush()
            assert path.read_text() == "what was there"
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        interrupted()
    assert path.read_text() == "what was there"
    assert list(tmp_path.iterdir()) == [path]


def test_a_kill_leaves_the_old_file(tmp_path: Path) -> None:
    path = tmp_path / "found.csv"
    path.write_text("what was there")
    program = (
        "import os, pathlib, sys\n"
        f"from {output_files.__name__} import replaced\n"
        "with replaced(pathlib.Path(sys.argv[1])) as file:\n"
        "    file.write(b'half')\n"
        "    file.flush()\n"
        "    os.kill(os.getpid(), 9)\n"
    )
    done = subprocess.run([sys.executable, "-c", program, str(path)], check=False, timeout=60)
    assert done.returncode == -9
    assert path.read_text() == "what was there"


def test_a_place_that_is_no_file_is_refused(tmp_path: Path) -> None:
    for text in (str(tmp_path), f"{tmp_path}/", "/dev/null"):
        with pytest.raises(PolicyError, match="the output is"):
            output_file(text)


def test_a_system_that_refuses_to_look_at_the_output_is_told(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def failing(self: Path) -> bool:
        raise OSError(errno.EIO, "I/O error", str(self))

    output = tmp_path / "rows.parquet"
    with monkeypatch.context() as broken:
        broken.setattr(Path, "is_dir", failing)
        with pytest.raises(PolicyError, match="the system refuses: i/o error"):
            output_file(str(output))


def test_rows_are_reported_as_written_although_the_file_is_gone(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    row_formats.print_written(2, tmp_path / "rows.csv")
    assert capsys.readouterr().err == f"wrote 2 rows to {tmp_path / 'rows.csv'}\n"
