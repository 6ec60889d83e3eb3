"""Hints of `sql` name only options that it has, and lead from a CSV in FROM to its parameters."""

from __future__ import annotations

import json
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet
import pytest

import secure_bloom as sb
from secure_bloom.errors import PolicyError, UnsupportedFeatureError
from testing.command_line import run
from testing.tables import KEYRING, MASTER_KEYS, Mode, customers, keyring_json, write


@pytest.fixture
def lake(tmp_path: Path) -> Path:
    """A table of which the keyring beside it lacks the key of `email`."""
    (tmp_path / "t").mkdir()
    write(tmp_path / "t" / "0.parquet", customers(50), Mode.ENCRYPTED)
    kept = {name: key for name, key in MASTER_KEYS.items() if name == "k_footer"}
    (tmp_path / "mine.json").write_text(keyring_json(kept))
    return tmp_path


@pytest.mark.parametrize("where", ["", " where email = 'a'", " where email > 'a' and iban = 'x'"])
def test_a_missing_key_proposes_no_option_of_read(lake: Path, where: str) -> None:
    query = f"select email from '{lake}/t'{where}"
    done = run("sql", query, "--keyring", f"{lake}/mine.json")
    assert done.returncode == 2
    assert "--keyring FILE" in done.stderr
    assert "--without-filter-keys" not in done.stderr
    assert "--columns" not in done.stderr
    assert "without_filter_keys" not in done.stderr
    read = run("read", lake / "t", "--where", "email = 'a'", "--keyring", f"{lake}/mine.json")
    assert "--without-filter-keys" in read.stderr


def test_a_csv_in_from_leads_to_the_parameters(tmp_path: Path) -> None:
    (tmp_path / "wanted.csv").write_text("email\n" + "a@x\n" * 9)
    done = run("sql", f"select * from '{tmp_path}/wanted.csv'")
    assert done.returncode == 2
    assert "email in $wanted" in done.stderr
    assert "--parameters" in done.stderr


def test_a_frame_leads_to_the_parameters(lake: Path) -> None:
    with (
        pytest.raises(sb.PolicyError) as caught,
        sb.open_table(lake / "t", keys=KEYRING) as table,
    ):
        table.sql("select * from w", tables={"w": pa.table({"a": [1]})})
    assert "email in $wanted" in str(caught.value.hint)


def test_a_name_is_one_table(tmp_path: Path) -> None:
    for name in "ab":
        pa.parquet.write_table(pa.table({"id": range(ord(name))}), tmp_path / f"{name}.parquet")
    first, second = (f"c={tmp_path}/{name}.parquet" for name in "ab")
    for other in (second, second.replace("c=", "C=")):
        done = run("sql", "select count(*) from c", "--table", first, "--table", other)
        assert (done.returncode, done.stdout) == (2, "")
        assert "two " in done.stderr
    done = run("sql", "select count(*) from c", "--table", first, "--table", first)
    assert done.stdout.split()[-1] == str(ord("a"))
    with pytest.raises(sb.PolicyError, match="two entries"):
        sb.sql("select count(*) from c", {"c": str(tmp_path), "C": str(tmp_path)})


@pytest.mark.parametrize("where", ['email = "u7@example.com"', "id = 'abc'"])
def test_a_hint_leads_to_quotes_and_types(lake: Path, where: str) -> None:
    with (
        pytest.raises(sb.PolicyError) as caught,
        sb.open_table(lake / "t", keys=KEYRING) as table,
    ):
        table.sql(f"select * from self where {where}")
    assert ("single quotes" if '"' in where else "lists the types") in str(caught.value.hint)


def test_a_text_in_double_quotes_is_written_in_single_ones(tmp_path: Path) -> None:
    pyarrow.parquet.write_table(pa.table({"k": ["a"]}), tmp_path / "t.parquet")
    for query, is_text in (('k = "b"', True), ("k = b", False)):
        with pytest.raises(PolicyError) as caught:
            sb.sql(f"select k from '{tmp_path / 't.parquet'}' where {query}")
        assert ("write a text in single quotes" in str(caught.value.hint)) is is_text


def test_a_long_decimal_is_said_to_be_beyond_sql(tmp_path: Path) -> None:
    pyarrow.parquet.write_table(pa.table({"d": pa.nulls(1, pa.decimal256(50, 3))}), tmp_path / "t")
    with pytest.raises(UnsupportedFeatureError, match=r"SQL \(DuckDB\) has fewer"):
        sb.sql(f"select d from '{tmp_path / 't'}'")


@pytest.mark.parametrize("form", ["jsonl", "arrow", "parquet", "csv"])
def test_a_name_twice_lost_a_value(tmp_path: Path, form: str) -> None:
    out = tmp_path / f"x.{form}"
    run("sql", "select 1 as a, 2 as a, 3 as a_1", "-o", out)
    found = {
        "jsonl": lambda: list(json.loads(out.read_text())),
        "arrow": lambda: pa.ipc.open_file(out).schema.names,
        "parquet": lambda: pyarrow.parquet.read_schema(out).names,
        "csv": lambda: out.read_text().splitlines()[0].split(","),
    }[form]()
    assert found == (["a", "a", "a_1"] if form == "csv" else ["a", "a_1", "a_1_1"])
