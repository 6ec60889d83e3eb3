"""``secure-bloom advise`` as a process: text, JSON, a file, queries, and notes of ``add``."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from testing.command_line import run
from testing.tables import SECRETS, Mode, customers, keyring_json, write

SECRET = "user77-is-secret"


@pytest.fixture(scope="module")
def lake(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("lake")
    (folder / "out").mkdir()
    rows = customers(20_000).select(["email", "iban", "city"])
    write(folder / "out" / "a.parquet", rows, Mode.ENCRYPTED, row_group_size=2000)
    (folder / "keyring.json").write_text(keyring_json())
    (folder / "keyring.json").chmod(0o600)
    return folder


def test_text_names_the_columns_why_and_lines_for_a_policy(lake: Path) -> None:
    done = run("advise", lake / "out", "--keyring", lake / "keyring.json")
    assert done.returncode == 0, done.stderr
    assert "secure-bloom: " not in done.stderr
    assert "table: 1 file, 10 row groups, 20,000 rows" in done.stdout
    assert "city: dictionary-complete" in done.stdout
    assert done.stdout.index("[columns.email]") > done.stdout.index("lines for a policy:")
    assert "[columns.city]" not in done.stdout
    assert not [secret for secret in SECRETS if secret in done.stdout]


def test_json_is_one_document(lake: Path) -> None:
    done = run(
        *("advise", lake / "out", "--column", "iban", "--fpp", "0.05"),
        *("--keyring", lake / "keyring.json", "--json"),
    )
    [column] = json.loads(done.stdout)["columns"]
    assert (column["column"], column["verdict"], column["fpp"]) == ("iban", "gains", 0.05)


def test_the_document_is_written_to_a_file(lake: Path, tmp_path: Path) -> None:
    document = tmp_path / "advice.json"
    done = run(
        *("advise", lake / "out", "--column", "iban", "--keyring", lake / "keyring.json"),
        *("--format", "json", "--output", document),
    )
    assert (done.returncode, done.stdout) == (0, "")
    assert json.loads(document.read_text())["columns"][0]["column"] == "iban"


def test_queries_are_counted_and_their_literals_shown_nowhere(lake: Path, tmp_path: Path) -> None:
    pytest.importorskip("sqlglot", reason="sqlglot is not installed")
    queries = tmp_path / "queries.sql"
    queries.write_text(f"email = '{SECRET}'\ncity = '{SECRET}' or (\niban > '{SECRET}'\n")
    done = run(
        *("advise", lake / "out", "--queries", queries, "--keyring", lake / "keyring.json", "-v")
    )
    assert done.returncode == 0, done.stderr
    assert "queries: 3 lines, 1 not understood: 2" in done.stdout
    assert "email: absent lookups read" in done.stdout
    assert "(100 % of the log's lookups)" in done.stdout
    assert SECRET not in done.stdout + done.stderr


def test_a_missing_file_is_an_error_with_a_hint(lake: Path) -> None:
    done = run("advise", lake / "nothing")
    assert done.returncode == 2
    assert done.stderr.startswith("secure-bloom: error: ")


def test_a_dry_run_of_add_says_which_columns_gain(lake: Path) -> None:
    done = run(
        *(
            "add",
            lake / "out",
            "--column",
            "iban",
            "--column",
            "city",
            "--dry-run",
            "--advise",
            "--json",
        ),
        *("--keyring", lake / "keyring.json"),
    )
    notes = json.loads(done.stdout)["notes"]
    assert notes[0].startswith("column iban gains: absent lookups read")
    assert notes[1].startswith("column city gains nothing: dictionary-complete")


def test_a_dry_run_tries_no_lookup_unless_asked_to(lake: Path) -> None:
    given = ("add", lake / "out", "--column", "iban", "--keyring", lake / "keyring.json", "--json")
    assert "gains" not in " ".join(json.loads(run(*given, "--dry-run").stdout)["notes"])
    done = run(*given, "--advise")
    assert done.returncode == 2
    assert "hint: add --dry-run" in done.stderr
