"""The verb sql: queries from arguments and files, names for tables, and every form of output."""

from __future__ import annotations

import json
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import secure_bloom as sb
from testing.command_line import run
from testing.tables import MASTER_KEYS, Mode, keyring_json, write
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


@pytest.fixture
def two_policies(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Two tables, the first of which has keys and a policy that the second has not."""
    rows = {"a": pa.table({"id": [1, 2]}), "b": pa.table({"id": [2, 3]})}
    monkeypatch.chdir(tmp_path)
    for name, table in rows.items():
        keys = {f"{name}-{key}": key_bytes for key, key_bytes in MASTER_KEYS.items()}
        keyring = Path(f"{name}.json")
        keyring.write_text(keyring_json(keys))
        keyring.chmod(0o600)
        Path(f"{name}.toml").write_text(
            f"""
            kms = {{ client = "keyring", keyring = "{name}.json" }}
            footer = {{ key = "{name}-k_footer", mode = "encrypted" }}
            columns.id.key = "{name}-k_pii"
            """
        )
        pq.write_table(table, f"{name}-clear.parquet")
        sb.reencrypt(f"{name}-clear.parquet", policy=f"{name}.toml", output=name)


JOINED = "select count(*) as n from a join 'b' using (id)"


@pytest.mark.usefixtures("two_policies")
@pytest.mark.parametrize(
    "words",
    [
        ("--policy", "a=a.toml", "-p", "b=b.toml"),
        ("--policy", "a.toml", "--policy", "B=b.toml"),
        ("--policy", "a=a.toml", "-k", "b=b.json"),
        ("-k", "a=a.json", "-k", "b.json"),
    ],
)
def test_tables_under_two_policies_are_joined(words: tuple[str, ...]) -> None:
    done = run("sql", JOINED, *words, "--format", "csv")
    assert (done.stdout, done.stderr) == ("n\n1\n", "")


@pytest.mark.usefixtures("two_policies")
def test_the_default_policy_is_that_of_tables_without_their_own(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("SECURE_BLOOM_POLICY", "b.toml")
    done = run("sql", JOINED, "--policy", "a=a.toml", "--format", "csv")
    assert done.stdout == "n\n1\n"
    assert sb.sql(JOINED, policy={"a": "a.toml", "*": "b.toml"}).to_pylist() == [{"n": 1}]


@pytest.mark.usefixtures("two_policies")
@pytest.mark.parametrize(
    ("words", "message", "hint"),
    [
        (("-p", "a.toml", "-p", "b.toml"), "two files for all tables", "--policy NAME=FILE"),
        (("-p", "a=a.toml", "-p", "a=b.toml"), "two files for a", "--policy NAME=FILE"),
        (("-p", "a.toml", "-p", "bb=b.toml"), "for bb, and the query opens no such", "a, b"),
        (("-p", "a.toml"), "'b-k_footer'", "--policy FILE"),
        (("-p", "a.toml", "-p", "b=bb.toml"), "cannot be read", "b.toml"),
    ],
)
def test_a_policy_of_no_table_is_named(words: tuple[str, ...], message: str, hint: str) -> None:
    done = run("sql", JOINED, *words)
    assert_error(done, message)
    assert hint in done.stderr.partition("hint: ")[2]


@pytest.mark.usefixtures("lake")
@pytest.mark.parametrize(
    ("words", "hint"),
    [
        (["select * from peopl"], "did you mean people"),
        (["select * from 'order/'"], "did you mean orders"),
        (["select * from persns", "--table", "persons=people"], "did you mean the table persons?"),
        (["select * from xyz"], "is its path in quotes"),
    ],
)
def test_a_misspelt_table_is_corrected(words: list[str], hint: str) -> None:
    done = run("sql", *words)
    assert_error(done, "no such file")
    assert hint in done.stderr
