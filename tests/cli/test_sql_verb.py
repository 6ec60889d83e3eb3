"""The verb sql: queries from arguments and files, names for tables, and every form of output."""

from __future__ import annotations

import json
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from testing.command_line import run
from testing.tables import Mode, write
from tests.cli.conftest import assert_error


@pytest.fixture
def lake(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    people = pa.table({"id": range(200), "email": [f"user{i}@x.example" for i in range(200)]})
    orders = pa.table({"person": [7, 7, 8], "amount": [1, 2, 3]})
    for name, rows in (("people", people), ("orders", orders)):
        (tmp_path / name).mkdir()
        write(tmp_path / name / "0.parquet", rows, Mode.PLAIN)
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.mark.usefixtures("lake")
def test_a_table_is_a_path_in_quotes_or_a_name() -> None:
    done = run("sql", "select count(*) as n from 'people'", "--json")
    assert json.loads(done.stdout) == {"schema_version": 1, "rows": 1, "data": [{"n": 200}]}
    query = "select p.email, sum(amount) as s from p join 'orders' o on p.id = o.person group by 1"
    done = run("sql", f"{query} order by 1", "--table", "p=people", "--format", "csv")
    assert done.stdout == "email,s\nuser7@x.example,3\nuser8@x.example,3\n"


def test_values_come_from_a_file(lake: Path) -> None:
    (lake / "query.sql").write_text("select id from 'people' where email = $email and id = $id")
    (lake / "values.json").write_text('{"email": "user7@x.example", "id": 7}')
    done = run("sql", "--query-from", "query.sql", "--parameters", "values.json", "--format", "csv")
    assert done.stdout == "id\n7\n"


def test_numbers_in_lists_and_objects_of_a_file_are_numbers(lake: Path) -> None:
    (lake / "values.json").write_text('{"ids": [9, 10], "of": {"most": 10, "share": [0.5]}}')
    query = "select id from 'people' where id in $ids and id < $of.most and $of.share[1] < 1"
    done = run("sql", query, "--parameters", "values.json", "--format", "csv")
    assert (done.stdout, done.stderr) == ("id\n9\n", "")


def test_a_value_that_is_missing_is_named(lake: Path) -> None:
    (lake / "values.json").write_text('{"emial": "user7@x.example"}')
    query = "select id from 'people' where email = $email"
    for words in ([], ["--parameters", "values.json"]):
        done = run("sql", query, *words)
        assert done.returncode == 2
        assert "the query has no value for $email" in done.stderr
        assert "user7" not in done.stderr


def test_rows_go_to_a_file(lake: Path) -> None:
    assert run("sql", "select * from 'people' where id < 3", "-o", "found.parquet").returncode == 0
    assert pq.read_table(lake / "found.parquet").column("id").to_pylist() == [0, 1, 2]


@pytest.mark.usefixtures("lake")
def test_a_terminal_shows_the_first_hundred_rows() -> None:
    done = run("sql", "select * from 'people'", "--format", "table")
    assert "the first 100 rows" in done.stdout
    assert "user100@x.example" not in done.stdout


@pytest.mark.usefixtures("lake")
@pytest.mark.parametrize(
    ("words", "text"),
    [
        ([], "--query-from"),
        (["select 1", "--query-from", "x"], "given once"),
        (["select emial from 'people'"], '"email"'),
        (["select * from 'peple'"], "no such file"),
        (["select 1", "--table", "people"], "NAME=PATH"),
        (["drop table people"], "not a query"),
    ],
)
def test_mistakes_are_named(words: list[str], text: str) -> None:
    assert_error(run("sql", *words), text)
