"""Names of columns, parameters and findings: what is taken in any spelling, and what is refused."""

from __future__ import annotations

import json
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import secure_bloom as sb
from secure_bloom.errors import PolicyError
from testing.command_line import run
from tests.cli.conftest import assert_error


@pytest.fixture
def table(tmp_path: Path) -> Path:
    path = tmp_path / "t.parquet"
    pq.write_table(
        pa.table({"Email": ["a@x.example"] * 9 + ["b@x.example"], "id": range(10)}), path
    )
    sb.add_bloom_filters(path, columns=["Email"])
    return path


@pytest.mark.parametrize("name", ["Email", "email", "EMAIL"])
def test_verbs_that_read_take_a_column_in_any_case(table: Path, tmp_path: Path, name: str) -> None:
    done = run("probe", table, name, "b@x.example", "--json")
    assert (done.returncode, json.loads(done.stdout)["column"]) == (0, "Email")
    rows = run("read", table, "--columns", name, "--where", "id = 9", "--format", "csv")
    assert rows.stdout == "Email\nb@x.example\n"
    (tmp_path / "dump.txt").write_text("b@x.example\n")
    assert run("trace", tmp_path / "dump.txt", "--values-of", f"{table}:{name}").returncode == 1
    assert "Email" in run("advise", table, "--column", name).stdout
    drafted = run("policy", "init", table, "--sensitive", name).stdout
    assert '[columns."Email"]                          # BYTE_ARRAY text; sensitive' in drafted


def test_of_two_names_that_differ_in_case_alone_neither_is_guessed(tmp_path: Path) -> None:
    path = tmp_path / "t.parquet"
    pq.write_table(pa.table({"Email": ["a"], "EMAIL": ["b"]}), path)
    assert_error(run("read", path, "--columns", "email"), "there is no column email")
    assert_error(run("probe", path, "email", "a"), "there is no column email")


@pytest.mark.parametrize("parameter", [":id", "$id"])
def test_a_parameter_of_a_condition_has_either_mark(
    table: Path, tmp_path: Path, parameter: str
) -> None:
    given = tmp_path / "values.json"
    given.write_text('{"id": 9}')
    words = ("--where", f"id = {parameter}", "--parameters", given, "--columns", "id")
    assert run("read", table, *words, "--format", "csv").stdout == "id\n9\n"


def test_a_query_with_the_mark_of_a_condition_gets_its_own(table: Path, tmp_path: Path) -> None:
    given = tmp_path / "values.json"
    given.write_text('{"id": 9}')
    done = run("sql", f"select id from '{table}' where id = :id", "--parameters", given)
    assert_error(done, "write a parameter as $name")
    # A cast has colons too.
    done = run("sql", f"select id::text from '{table}' wher id = 1")
    assert "parameter" not in done.stderr


def test_an_interval_is_written_as_a_duration(tmp_path: Path) -> None:
    query = "select interval '14 month 3 day' as a, interval '-90 minute' as b"
    assert run("sql", query, "--format", "csv").stdout == "a,b\nP14M3D,-PT1H30M\n"
    assert json.loads(run("sql", query, "--format", "jsonl").stdout) == {
        "a": "P14M3D",
        "b": "-PT1H30M",
    }
    done = run("sql", query, "--output", tmp_path / "x.parquet")
    assert_error(done, "has no column of this type: a INTERVAL, b", "epoch_us(a)")
    assert not (tmp_path / "x.parquet").exists()


def test_an_interval_of_more_than_a_day_has_its_days_in_every_form(tmp_path: Path) -> None:
    pq.write_table(pa.table({"d": pa.array([93_600], pa.duration("s"))}), tmp_path / "w.parquet")
    query = f"select *, [d] as l, map {{'k': -d}} as m from '{tmp_path / 'w.parquet'}'"
    wanted = {"d": "P1DT2H", "l": ["P1DT2H"], "m": [["k", "-P1DT2H"]]}
    assert json.loads(run("sql", query, "--format", "jsonl").stdout) == wanted
    assert json.loads(run("sql", query, "--json").stdout)["data"] == [wanted]
    for form in ("csv", "tsv", "table"):
        shown = run("sql", query, "--format", form).stdout
        assert shown.count("P1DT2H") == 3
        assert shown.count("-P1DT2H") == 1


FOOTER = '[footer]\nkey = "k_footer"\n'


@pytest.mark.parametrize(
    ("given", "hint"),
    [
        ("column-in-claer", "did you mean 'column-in-clear'?"),
        ("column-in-clear:", "for every column: column-in-clear"),
    ],
)
def test_policy_check_finds_a_misspelt_finding(tmp_path: Path, given: str, hint: str) -> None:
    policy = tmp_path / "policy.toml"
    policy.write_text(f'{FOOTER}[[audit.ignore]]\nfinding = "{given}"\nreason = "x"\n')
    done = run("policy", "check", policy)
    assert (done.returncode, "[[audit.ignore]]" in done.stderr, hint in done.stderr) == (
        1,
        True,
        True,
    )


def test_policy_check_names_columns_that_only_a_list_names(table: Path, tmp_path: Path) -> None:
    policy = tmp_path / "policy.toml"
    policy.write_text(
        f'{FOOTER}[[audit.ignore]]\nfinding = "column-in-clear:Emial"\nreason = "x"\n'
        '[classified]\nclear = ["i*", "idd"]\n'
    )
    shown = run("policy", "check", policy, "--table", table).stdout
    assert "[[audit.ignore]] column-in-clear:Emial: there is no column Emial" in shown
    assert "[classified] clear: there is no column idd; did you mean id" in shown
    assert "i*" not in shown


@pytest.mark.parametrize(
    ("section", "word"),
    [
        ("[kms]\nclient = 'keyring'\nkeyring = 'k'\nkeyrng = 'k'\n", "keyrng"),
        ("[footer]\nkey = 'k'\nmod = 'encrypted'\n", "mod"),
        ("[encrypton]\n", "encrypton"),
        (f"{FOOTER}[encryption]\nalgorithn = 'AES_GCM_V1'\n", "algorithn"),
        ("[columns.a]\nblom = true\n", "blom"),
        ("[columns.a]\nbloom = { ffp = 0.1 }\n", "ffp"),
        ("[keys.a]\nretird = true\n", "retird"),
        ("[classified]\ncler = []\n", "cler"),
        ("[readers]\nduckbd = true\n", "duckbd"),
        ("[audit]\nignor = []\n", "ignor"),
        ("[[audit.ignore]]\nfindng = 'x'\nreason = 'y'\n", "findng"),
        ("[tables.'a/*'.colums.b]\n", "colums"),
        ("[tables.'a/*'.footer]\nkey = 'k'\nunifrm = true\n", "unifrm"),
    ],
)
def test_policy_check_finds_a_typo_in_every_section(
    tmp_path: Path, section: str, word: str
) -> None:
    (tmp_path / "policy.toml").write_text(section)
    done = run("policy", "check", tmp_path / "policy.toml")
    assert_error(done, word)


def test_columns_with_personal_names_are_drafted_with_a_key(table: Path) -> None:
    drafted = run("policy", "init", table).stdout
    assert '\n[columns."Email"]' in drafted
    assert '\n# [columns."id"]' in drafted


def test_values_come_from_a_file_whose_columns_have_semicolons_between_them(
    table: Path, tmp_path: Path
) -> None:
    given = tmp_path / "wanted.csv"
    given.write_text("mail;n\nb@x.example;1,5\n")
    assert_error(run("probe", table, "Email", "--from", given), "lines have several columns")
    assert run("probe", table, "Email", "--from", f"{given}:MAIL").returncode == 0
    done = run("probe", table, "Email", "--from", f"{given}:mial")
    assert_error(done, "the first line names no column mial", "name one of its 2 columns")


def test_of_many_values_the_one_that_does_not_fit_is_counted(table: Path, tmp_path: Path) -> None:
    (tmp_path / "wanted.txt").write_text("5\nsecret\n6\n")
    done = run("probe", table, "id", "--from", tmp_path / "wanted.txt")
    assert_error(done, "value 2 of 3: the value is not one the column can hold")
    assert "secret" not in done.stderr


def test_a_dry_run_with_advice_says_that_every_filter_is_there(table: Path) -> None:
    done = run("add", table, "--column", "Email", "--dry-run", "--advise")
    assert "every wanted filter is there" in done.stdout


def test_new_keys_are_compared_with_the_policy(tmp_path: Path) -> None:
    policy = tmp_path / "policy.toml"
    kms = '[kms]\nclient = "keyring"\nkeyring = "keyring.json"\n'
    policy.write_text(f'{kms}{FOOTER}[columns.email]\nkey = "k_pii"\n')
    done = run("keys", "new", tmp_path / "other.json", "k_pi", "--policy", policy)
    assert done.returncode == 0
    assert "the policy does not name k_pi: did you mean 'k_pii'?" in done.stdout
    assert f"the policy's keyring is {tmp_path / 'keyring.json'}" in done.stdout
    assert "note" not in run("keys", "new", tmp_path / "keyring.json", "--policy", policy).stdout


def test_a_search_in_an_encrypted_lake_names_no_class(lake: Path) -> None:
    words = ("--values-of", f"{lake / 'out'}:email", "--policy", lake / "policy.toml")
    assert run("trace", lake / "out", *words).returncode == 0
    plain = lake / "plain.parquet"
    pq.write_table(pa.table({"email": ["a@x.example"]}), plain)
    done = run("trace", lake / "out", "--values-of", f"{plain}:email")
    assert "is encrypted: key 'k_footer' of the footer is not available" in done.stdout
    assert "Error" not in done.stdout + done.stderr


def test_the_fix_for_an_unclassified_column_is_one_sentence(lake: Path) -> None:
    done = run("audit", lake / "out", "--policy", lake / "policy.toml", "--strict")
    lines = [line.strip() for line in done.stdout.splitlines()]
    assert "*" not in lines


def test_a_name_in_capitals_beyond_lower_case_is_the_column(tmp_path: Path) -> None:
    of = pa.table({"Größe": [1, 2], "of": [{"Straße": 1}, {"Straße": 2}]})
    pq.write_table(of, tmp_path / "t.parquet")
    for where, column in (("GRÖSSE = 2", "GRÖSSE"), ("of.STRASSE = 2", "of")):
        found = sb.read_table(tmp_path / "t.parquet", where, columns=[column])
        assert found.num_rows == 1
    pq.write_table(pa.table({"Größe": [1], "GRÖSSE": [2]}), tmp_path / "two.parquet")
    with pytest.raises(PolicyError):
        sb.read_table(tmp_path / "two.parquet", columns=["größse"])
    assert sb.read_table(tmp_path / "two.parquet", "größe = 1").num_rows == 1


def test_a_list_in_brackets_says_how_it_is_written(table: Path) -> None:
    with pytest.raises(PolicyError, match="is a list") as caught:
        sb.read_table(table, "email in (:l)", parameters={"l": ["secret"]})
    assert caught.value.hint == "write the list without brackets: in :l"
    assert "secret" not in str(caught.value)
