"""Values and conditions that do not stand among the arguments."""

from __future__ import annotations

import io
import json
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import secure_bloom as sb
from secure_bloom.cli.inputs import listed_values, read_parameters, read_text
from secure_bloom.errors import MissingPathError, PolicyError
from testing.command_line import run
from tests.cli.conftest import assert_error

SECRET = "ada@example.com"


@pytest.fixture
def table(tmp_path: Path) -> Path:
    path = tmp_path / "x.parquet"
    emails = [SECRET, "bob@example.com", "o'hara@example.com"]
    pq.write_table(pa.table({"email": emails, "id": [1, 2, 3]}), path)
    sb.add_bloom_filters(path, columns="email")
    return path


def test_values_come_from_a_file(table: Path, tmp_path: Path) -> None:
    (tmp_path / "wanted.txt").write_text(f"\ufeff{SECRET}\r\n\nnobody@example.com\n")
    assert listed_values(str(tmp_path / "wanted.txt")) == [SECRET, "nobody@example.com"]
    done = run("probe", table, "email", "--from", tmp_path / "wanted.txt", "--json")
    (group,) = json.loads(done.stdout)["files"][0]["row_groups"]
    assert group["verdicts"] == {SECRET: "maybe", "nobody@example.com": "absent"}


def test_without_any_value_it_is_told(table: Path) -> None:
    assert_error(run("probe", table, "email"), "no value is given", "--from")


def test_a_condition_comes_from_a_file(table: Path, tmp_path: Path) -> None:
    (tmp_path / "where.txt").write_text(f"email = '{SECRET}'\n")
    done = run("read", table, "--where-from", tmp_path / "where.txt", "--format", "csv")
    assert done.stdout.splitlines() == ["email,id", f"{SECRET},1"]
    both = run("read", table, "--where-from", tmp_path / "where.txt", "--where", "id = 1")
    assert_error(both, "both give the condition")


@pytest.mark.parametrize(
    ("where", "values", "ids"),
    [
        ("email = :who", {"who": "o'hara@example.com"}, [3]),
        ("id in :ids", {"ids": [1, 3]}, [1, 3]),
        ("id in (:one, 2)", {"one": 1}, [1, 2]),
        ("id >= :low and email != :who", {"low": 2, "who": "bob@example.com"}, [3]),
    ],
)
def test_a_condition_has_parameters(
    table: Path, tmp_path: Path, where: str, values: dict[str, object], ids: list[int]
) -> None:
    (tmp_path / "values.json").write_text(json.dumps(values))
    done = run("read", table, "-w", where, "--parameters", tmp_path / "values.json", "--json")
    assert [row["id"] for row in json.loads(done.stdout)["data"]] == ids, done.stderr


def test_a_parameter_without_a_value_is_told_and_no_value_is(table: Path, tmp_path: Path) -> None:
    (tmp_path / "values.json").write_text(json.dumps({"who": SECRET}))
    done = run("read", table, "-w", "email = :whom", "--parameters", tmp_path / "values.json")
    assert_error(done, "no value is given for the parameter at character 9", "there are who")
    assert SECRET not in done.stderr


def test_what_is_no_input_is_told_without_its_content(tmp_path: Path) -> None:
    file = tmp_path / "x"
    for content, wanted in [(b"{'secret': 1}", "not JSON"), (b"[1]", "not a JSON object")]:
        file.write_bytes(content)
        with pytest.raises(PolicyError, match=wanted) as caught:
            read_parameters(str(file))
        assert "secret" not in str(caught.value)
    file.write_bytes(b"\xff\xfe\x00")
    with pytest.raises(PolicyError, match="not UTF-8"):
        read_text(str(file))
    with pytest.raises(MissingPathError):
        read_text(str(tmp_path / "nothing"))


def test_what_is_wrong_with_standard_input_is_said_of_it(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(b"\xff\xfe")))
    with pytest.raises(PolicyError, match="standard input: is not UTF-8 text"):
        read_text("-")


def test_a_plan_reads_no_row(table: Path) -> None:
    where = f"email = '{SECRET}'"
    done = run("read", table, "-w", where, "--explain", "--plan-only")
    assert "none read: this is the plan" in done.stdout
    planned = json.loads(
        run("read", table, "-w", where, "--explain", "--plan-only", "--json").stdout
    )
    assert planned["rows"] is None
    assert planned["explain"]["row_groups_read"] == 1
    assert_error(run("read", table, "--plan-only"), "--explain")


@pytest.mark.parametrize(
    "content",
    ['{"email": "a@secret.example"}', "email = 'secret'", "a@secret.example", "secret\nsecret"],
)
def test_content_in_place_of_a_file_is_not_quoted(content: str) -> None:
    with pytest.raises(PolicyError, match="its content was given") as caught:
        read_text(content)
    assert "secret" not in f"{caught.value}{caught.value.hint}"
    assert caught.value.__suppress_context__


def test_a_file_that_is_not_there_has_its_neighbours_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("wanted.json").touch()
    with pytest.raises(PolicyError) as caught:
        read_text("wnted.json")
    assert "did you mean wanted.json" in str(caught.value.hint)
