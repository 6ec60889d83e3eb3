"""``secure-bloom read`` as its users meet it."""

from __future__ import annotations

import csv
import io
import json
import os
import pty
import subprocess
from contextlib import suppress
from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
import pytest

import secure_bloom as sb
from testing.command_line import COMMAND, run
from testing.tables import KEYRING, SECRETS, Mode, customers, keyring_json, write
from tests.cli.conftest import assert_error


@pytest.fixture(scope="module")
def lake(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("lake")
    (folder / "out").mkdir()
    for part in range(2):
        rows = customers(600).slice(part * 300, 300)
        write(folder / "out" / f"part-{part}.parquet", rows, Mode.ENCRYPTED, row_group_size=100)
    assert not sb.add_bloom_filters(folder / "out", columns=["email"], keys=KEYRING).failed
    (folder / "keyring.json").write_text(keyring_json())
    (folder / "keyring.json").chmod(0o600)
    return folder


def read(lake: Path, *arguments: object, code: int = 0) -> subprocess.CompletedProcess[str]:
    keyring = ("--keyring", lake / "keyring.json")
    done = run("read", lake / "out", *keyring, *arguments, COLUMNS="80")
    assert done.returncode == code, done.stderr
    assert not any(secret in done.stdout + done.stderr for secret in SECRETS)
    return done


WHERE = ("--where", "email = 'user7@example.com' or id in (8, 9)")


def test_rows_come_as_csv_off_a_terminal(lake: Path) -> None:
    rows = list(csv.DictReader(io.StringIO(read(lake, *WHERE).stdout)))
    assert sorted(int(row["id"]) for row in rows) == [7, 8, 9]
    assert {row["city"] for row in rows} == {"oslo", "lyon", "rome"}


def test_rows_as_json_lines(lake: Path) -> None:
    lines = read(lake, *WHERE, "--format", "jsonl", "--columns", "id,score").stdout.splitlines()
    whole = customers(600).filter(pc.field("id").isin([7, 8, 9])).select(["id", "score"])
    assert [json.loads(line) for line in lines] == whole.to_pylist()


def test_rows_as_a_table(lake: Path) -> None:
    done = read(lake, *WHERE, "--format", "table", "--columns", "email,id")
    assert "user7@example.com" in done.stdout
    assert "3 rows" in done.stdout
    assert "the first 100 rows" in read(lake, "--format", "table", "--columns", "id").stdout


def test_rows_as_one_document(lake: Path) -> None:
    document = json.loads(read(lake, *WHERE, "--json", "--columns", "id").stdout)
    assert document["rows"] == 3
    assert sorted(row["id"] for row in document["data"]) == [7, 8, 9]


def test_rows_go_into_a_file(lake: Path, tmp_path: Path) -> None:
    wanted = customers(600).filter(pc.field("city") == "oslo")
    path = tmp_path / "found.parquet"
    done = read(lake, "--where", "city = 'oslo'", "--output", path)
    assert done.stdout == ""
    assert pq.read_table(path).equals(wanted)
    read(lake, "--where", "city = 'oslo'", "--limit", 5, "--output", tmp_path / "found.csv")
    assert len((tmp_path / "found.csv").read_text().splitlines()) == 6
    assert sorted(p.name for p in tmp_path.iterdir()) == ["found.csv", "found.parquet"]


def test_a_read_that_fails_leaves_the_output_as_it_was(lake: Path, tmp_path: Path) -> None:
    path = tmp_path / "found.csv"
    path.write_text("what was there")
    broken = tmp_path / "lake"
    (broken / "out").mkdir(parents=True)
    (broken / "keyring.json").write_text((lake / "keyring.json").read_text())
    content = bytearray((lake / "out" / "part-0.parquet").read_bytes())
    content[500] ^= 1
    (broken / "out" / "part-0.parquet").write_bytes(content)
    done = read(broken, "--output", path, code=2)
    assert "part-0.parquet, row group 0, column email: an encrypted module" in done.stderr
    assert path.read_text() == "what was there"
    assert sorted(p.name for p in tmp_path.iterdir()) == ["found.csv", "lake"]


def test_the_explanation_fits_a_terminal(lake: Path) -> None:
    where = ("--where", "email = 'user7@example.com'")
    done = read(lake, *where, "--explain")
    assert "row groups: 1 of 6 read" in done.stdout
    assert "skipped by Bloom filter" in done.stdout
    assert "maybe: the filter's false-positive probability is" in done.stdout
    told = json.loads(read(lake, *where, "--explain", "--json").stdout)
    assert told["rows"] == 1
    assert told["explain"]["row_groups_read"] == 1
    assert told["explain"]["bytes_read"] < told["explain"]["bytes_full_scan"] + 70_000
    assert len(told["explain"]["files"]) == 2


def test_an_explanation_with_an_output_writes_the_rows_too(lake: Path, tmp_path: Path) -> None:
    path = tmp_path / "found.jsonl"
    done = read(lake, *WHERE, "--explain", "--output", path)
    assert "row groups: " in done.stdout
    assert len(path.read_text().splitlines()) == 3
    told = " ".join(read(lake, "--help").stdout.split())
    assert "instead of the rows; with --output they are written too" in told


@pytest.mark.parametrize(
    "width", [30, *(pytest.param(width, marks=pytest.mark.slow) for width in (45, 200))]
)
def test_the_files_of_an_explanation_fit_a_narrow_terminal(lake: Path, width: int) -> None:
    shown = on_terminal(lake, width, "--where", "email = 'user7@example.com'", "--explain")
    document = json.loads(read(lake, *WHERE, "--explain", "--json").stdout)["explain"]
    files = shown[shown.index("seconds:") :]
    for file in document["files"]:
        assert Path(file["path"]).name in files
    assert files.count("KiB") == 2
    assert files.count("skipped by Bloom filter 2") == (0 if width == 200 else 2)
    assert files.count("Bloom filter 2") == 2
    assert "\u2026" not in files
    table = [line for line in files.splitlines() if "KiB" in line]
    assert all(len(line) <= width for line in table)


def on_terminal(lake: Path, width: int, *arguments: object) -> str:
    """What a terminal of that width shows."""
    ours, theirs = pty.openpty()
    command = [*COMMAND, "read", lake / "out"]
    environment = {**os.environ, "COLUMNS": str(width), "NO_COLOR": "1", "TERM": "dumb"}
    with subprocess.Popen(
        [*map(str, command), "--keyring", str(lake / "keyring.json"), *map(str, arguments)],
        stdout=theirs,
        env=environment,
    ) as process:
        os.close(theirs)
        shown = b""
        # Linux says that the other end is closed by an error.
        with suppress(OSError):
            while piece := os.read(ours, 65536):
                shown += piece
    os.close(ours)
    assert process.returncode == 0
    return shown.decode().replace("\r\n", "\n")


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("--where", "email ~ 'user7'"), "error: the condition needs an operator at character 7"),
        (("--where", "emial = 'x'"), "error: there is no column emial"),
        (("--output", "found.dat"), "error: the format of the output is not known from its name"),
        (("--limit", "-1"), "--limit"),
        (("--columns", ""), "error: --columns has an empty name"),
        (("--columns", "id,,email"), "error: --columns has an empty name"),
        (("--columns", "id.x"), "error: there is no column id.x"),
        (("--where", ""), "hint: leave it out to read all rows"),
        (("--where", "id = 1_000"), "hint: a number is written as 12"),
        (
            ("--where", "email like '%user'"),
            "error: column email: like is answered for a beginning",
        ),
        (("--where", "id like '1%'"), "error: column id: like and starts_with are for texts"),
        (("--where", 'email = "x"'), "hint: write texts in single quotes"),
    ],
)
def test_what_makes_no_sense_is_an_error(
    lake: Path, arguments: tuple[str, ...], message: str
) -> None:
    done = read(lake, *arguments, code=2)
    assert message in done.stderr
    assert "Traceback" not in done.stderr


def test_values_of_every_type_are_texts(tmp_path: Path) -> None:
    from secure_bloom.reading.rows.python_texts import json_of, text_of

    row = pa.table(
        {"b": [b"\x00\xff"], "n": [float("nan")], "l": [[1, None]], "d": [{"x": True}]}
    ).to_pylist()[0]
    assert {k: text_of(v) for k, v in row.items()} == {
        "b": "hex:00ff",
        "n": "nan",
        "l": "[1, null]",
        "d": '{"x": true}',
    }
    assert json_of(row) == {"b": "hex:00ff", "n": "nan", "l": [1, None], "d": {"x": True}}


def test_an_error_before_the_first_row_leaves_no_header(lake: Path, tmp_path: Path) -> None:
    content = bytearray((lake / "out" / "part-0.parquet").read_bytes())
    content[200] ^= 1
    (tmp_path / "x.parquet").write_bytes(content)
    done = run("read", tmp_path / "x.parquet", "--keyring", lake / "keyring.json")
    assert_error(done, "does not authenticate")
    assert done.stdout == ""


@pytest.mark.parametrize(
    "words",
    [
        ("read", "PATH", "--where", "a = 1", "-w", "b = 2"),
        ("read", "PATH", "--columns", "a", "--columns", "b"),
        ("add", "PATH", "-c", "a", "--where", "d = 1", "--where", "d = 2"),
        ("paimon", "build", "PATH", "-c", "a", "-w", "d = 1", "-w", "d = 2"),
    ],
    ids=" ".join,
)
def test_what_chooses_rows_or_columns_is_given_once(tmp_path: Path, words: tuple[str, ...]) -> None:
    pq.write_table(pa.table({"a": [1, 1], "b": [1, 2]}), tmp_path / "x.parquet")
    done = run(*(str(tmp_path) if word == "PATH" else word for word in words))
    assert (done.returncode, done.stdout) == (2, "")
    assert "is given 2 times" in done.stderr
