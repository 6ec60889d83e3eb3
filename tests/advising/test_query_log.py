"""A log of queries is counted by columns, and no literal of it is kept or shown."""

from __future__ import annotations

import logging
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from secure_bloom.advising.query_log import ColumnUse, load_query_log, read_query_log
from secure_bloom.errors import MissingExtraError, PolicyError
from testing.growth import growth

pytest.importorskip("sqlglot", reason="sqlglot is not installed")

COLUMNS = ["email", "id", "city", "address.zip"]
LINES = ["email = 'a'", "", "-- comment", "# comment", "email = 'b'", "id in (1, 2)", "id > 7"]
EQUAL, RANGE, OTHER = ColumnUse(equal=1), ColumnUse(range=1), ColumnUse(other=1)
ZIP = {"address.zip": EQUAL}


@pytest.mark.parametrize(
    ("line", "found"),
    [
        ("email = 'a@x'", {"email": EQUAL}),
        ("'a@x' = email", {"email": EQUAL}),
        ("EMAIL = :parameter", {"email": EQUAL}),
        ("id = ? and city <> 'z'", {"id": EQUAL, "city": OTHER}),
        ("select * from t where t.email in ('a') and id > 5", {"email": EQUAL, "id": RANGE}),
        ("select * from t where id between 1 and 2;", {"id": RANGE}),
        ("email not in ('a')", {"email": OTHER}),
        ("not (city = 'x')", {"city": OTHER}),
        ("not (not (city = 'x'))", {"city": EQUAL}),
        ("city like 'a%'", {"city": OTHER}),
        ("city is null", {"city": OTHER}),
        ("lower(city) = 'x'", {}),
        ("email = city", {}),
        ("select * from t a join u b on a.id = b.id where a.address.zip = '1'", ZIP),
        ("delete from t where id = 5", {"id": EQUAL}),
        ("update t set city = 'a' where email = 'b'", {"email": EQUAL}),
        ("id in (select id from u where email = 'q')", {"id": OTHER, "email": EQUAL}),
        ("id = cast('5' as bigint)", {"id": EQUAL}),
        ("unknown = 5", {}),
    ],
)  # fmt: skip
def test_a_line_tells_how_columns_are_asked_for(line: str, found: dict) -> None:
    log = read_query_log([line], COLUMNS)
    assert log.lines == 1
    assert log.not_parsed == ()
    assert dict(log.columns) == found


def test_shares_are_of_all_lookups_and_empty_lines_and_comments_do_not_count() -> None:
    lines = [
        "email = 'a'",
        "",
        "-- a comment",
        "# another",
        "email = 'b'",
        "id in (1, 2)",
        "id > 7",
    ]
    log = read_query_log(lines, COLUMNS)
    assert log.lines == 4
    assert log.share("email") == pytest.approx(2 / 3)
    assert log.share("id") == pytest.approx(1 / 3)
    assert log.share("city") == 0


SECRET = "hunter2-is-the-secret"


@pytest.mark.parametrize(
    "line",
    [
        f"email = '{SECRET}' and (",
        f"email == = '{SECRET}'",
        f"{SECRET}",
        f"'{SECRET}'",
        f"cache the {SECRET} of '{SECRET}",
        "(" * 5000 + f"'{SECRET}'",
        "x" * 2_000_000,
    ],
    ids=range(7),
)
def test_a_line_that_is_no_query_is_told_by_its_number_alone(
    line: str, capfd: pytest.CaptureFixture, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.DEBUG)
    log = read_query_log(["id = 1", line], COLUMNS)
    assert log.not_parsed == (2,)
    assert SECRET not in repr(log) + caplog.text + "".join(capfd.readouterr())


def test_no_literal_is_kept() -> None:
    log = read_query_log([f"email = '{SECRET}' and id in (4711)"], COLUMNS)
    assert SECRET not in repr(log)
    assert "4711" not in repr(log)


def test_a_file_that_cannot_be_read_is_an_error_for_people(tmp_path: Path) -> None:
    with pytest.raises(PolicyError, match="the queries cannot be read"):
        load_query_log(tmp_path / "nothing.sql", COLUMNS)


def test_without_sqlglot_the_error_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "sqlglot", None)
    with pytest.raises(MissingExtraError, match="sqlglot") as caught:
        read_query_log(["id = 1"], COLUMNS)
    assert caught.value.hint == "pip install 'secure-bloom[advise]'"


@pytest.mark.parametrize(
    "form",
    [
        lambda n: " and ".join(["id = 1"] * n),
        lambda n: " or ".join(["id = 1"] * n),
        lambda n: "id = " + " = ".join(["1"] * n),
        lambda n: "id in (" + ", ".join(["1"] * n) + ")",
        lambda n: "id = " + " + ".join(["1"] * n),
    ],
    ids=["and", "or", "chain", "in", "sum"],
)
def test_a_long_line_takes_time_by_its_length(form: Callable[[int], str]) -> None:
    assert growth(lambda n: read_query_log([form(n)], COLUMNS), 100) < 5


def test_a_lookup_in_a_query_counts_whatever_negates_the_query() -> None:
    log = read_query_log(["id not in (select id from u where email = 'q')"], COLUMNS)
    assert dict(log.columns) == {"id": OTHER, "email": EQUAL}


def test_a_query_that_a_log_repeats_is_parsed_once(monkeypatch: pytest.MonkeyPatch) -> None:
    import sqlglot

    parsed = list[str]()
    parse = sqlglot.parse

    def counted(text: str, **options: Any) -> Any:
        parsed.append(text)
        return parse(text, **options)

    monkeypatch.setattr(sqlglot, "parse", counted)
    log = read_query_log(["email = 'a'", "not SQL (", "n > 3"] * 20, ["email", "n"])
    assert sorted(parsed) == ["email = 'a'", "n > 3", "not SQL ("]
    assert (log.lines, len(log.not_parsed)) == (60, 20)
    assert (log.use("email").equal, log.use("n").range) == (20, 20)
