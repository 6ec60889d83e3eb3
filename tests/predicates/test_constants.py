"""Constants of SQL, and conditions as analysts copy them from queries: DuckDB is the judge."""

from __future__ import annotations

from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from pathlib import Path

import duckdb
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import secure_bloom as sb
from secure_bloom.errors import PolicyError
from secure_bloom.predicates.constants import cast, moved, present, tokens_of
from secure_bloom.predicates.from_text import from_text

ROWS = 40
NOW = datetime.now(UTC).replace(tzinfo=None)
TABLE = pa.table(
    {
        "id": pa.array([None if i == 5 else i for i in range(ROWS)], pa.int64()),
        "Name": [f"user{i:02}" for i in range(ROWS)],
        "day": pa.array([date(2026, 1, 20) + timedelta(days=i) for i in range(ROWS)]),
        "seen": pa.array(
            [datetime(2026, 1, 31, 12, tzinfo=UTC) + timedelta(hours=i) for i in range(ROWS)],
            pa.timestamp("us", "UTC"),
        ),
        "local": pa.array(
            [NOW - timedelta(days=i, hours=1) for i in range(ROWS)], pa.timestamp("us")
        ),
        "recent": pa.array([(NOW - timedelta(days=i)).date() for i in range(ROWS)]),
        "active": pa.array([(True, False, None)[i % 3] for i in range(ROWS)]),
        "score": pa.array(
            [float("nan") if i == 3 else None if i == 4 else i / 4 for i in range(ROWS)]
        ),
        "price": pa.array([Decimal(i) / 4 for i in range(ROWS)], pa.decimal128(9, 2)),
        "took": pa.array([timedelta(minutes=45 * i) for i in range(ROWS)], pa.duration("us")),
        "address": [{"zip": f"{i:05}", "the city": f"c{i % 3}"} for i in range(ROWS)],
    }
)
CONDITIONS = [
    "id between 3 and 7",
    "id not between 3 and 7",
    "not (id between 3 and 7)",
    "id between 3 and 7 and Name like 'user0%' or id = 9",
    "price between 1 and 2.5",
    "day = date '2026-01-31'",
    "day >= DATE '2026-01-31' and day < date '2026-02-02'",
    "day between date '2026-01-31' and '2026-02-02'::date",
    "day = cast('2026-01-31' as date)",
    "day = '2026-01-31 10:00:00'::timestamp::date",
    "seen >= timestamp '2026-01-31 20:00:00' and seen < TIMESTAMP '2026-02-01'",
    "seen = '2026-01-31 20:00:00+00'::timestamptz",
    "seen = cast('2026-01-31 20:00:00' as timestamp)",
    "seen > date '2026-02-01'",
    "day >= date '2026-02-28' - interval '1 month'",
    "day > date '2026-01-31' + interval '1' month",
    "day > date '2026-01-31' + interval '1 week 2 days'",
    "recent >= current_date - interval '7 days'",
    "recent > current_date - interval '1' month",
    "local > now()::timestamp - interval '36 hours'",
    "local > current_timestamp::timestamp - interval '2 days'",
    "took > interval '11 hours'",
    "day > date '2026-01-30' + interval '1.5 days'",
    "day > date '2026-01-30' + interval '1 day 1 month'",
    "took = interval '0.5 hour 15.000 minutes' or took > interval '0.3 days 1.5 hours'",
    "took = interval '1 hour 30 minutes' or took < interval '1' hour",
    "took between interval '90 minutes' and interval '1 day'",
    "interval '1 day' < took",
    "active",
    "not active",
    "active and id < 10",
    "id < 10 and (active or id = 1)",
    "active is true",
    "active is not true",
    "active is false",
    "active is not false",
    "active is unknown",
    "not (active is true)",
    "active = true",
    "id = 4711;",
    "id = 7 ; ",
    "7 = id",
    "7 < id and 30 >= id",
    "'user07' = Name",
    "date '2026-01-31' < day",
    "2.5 <= price",
    '"address"."zip" = \'00007\'',
    "address.\"the city\" = 'c1'",
    "address.zip = '00007'",
    "ADDRESS.ZIP = '00007'",
    "name = 'user07'",
    "NAME in ('user07', 'user08')",
    '"ID" = 7',
    "isnan(score)",
    "not isnan(score)",
    "isnan(score) or id = 1",
    "id = '7'::int",
    "id = cast('7' as bigint)",
    "price = '2.5'::decimal(9, 2)",
    "id = 7::bigint",
    "id in (7, '8'::int)",
    "Name = 7::text",
]


@pytest.fixture(scope="module")
def path(tmp_path_factory: pytest.TempPathFactory) -> Path:
    made = tmp_path_factory.mktemp("conditions") / "a.parquet"
    pq.write_table(TABLE, made, row_group_size=10)
    return made


@pytest.mark.parametrize("where", CONDITIONS)
def test_a_condition_finds_the_rows_that_duckdb_finds(where: str, path: Path) -> None:
    found = sb.read_table(path, where=where, columns=["Name"])
    with duckdb.connect() as connection:
        connection.execute("SET TimeZone = 'UTC'").fetchall()
        connection.register("people", TABLE)
        query = f"SELECT Name FROM people WHERE {where.strip().removesuffix(';')}"
        wanted = connection.sql(query).fetchall()
    assert sorted(found.column("Name").to_pylist()) == sorted(name for (name,) in wanted)


@pytest.mark.parametrize(
    ("where", "found"),
    [
        ("at = timestamp '2024-03-01 10:00:00.123456789'", [0]),
        ("at = '2024-03-01T10:00:00.123456789'::timestamp", [0]),
        ("at > timestamp '2024-03-01 10:00:00.123456'", [0]),
        ("at = '2024-03-01 10:00:00.123456789'::timestamp::timestamp", [0]),
        ("at = timestamp '2024-03-01 10:00:00.123456000'", [1]),
        ("zoned = timestamptz '2024-03-01 10:19:32.123456789+00:19:32'", [0]),
        ("zoned = timestamp '2024-03-01 10:00:00.123456789'", [0]),
        ("of_day = time '10:00:00.123456789'", [0]),
        ("of_day = '10:00:00.123456789'::time", [0]),
        ("day = '2024-03-01 10:00:00.123456789'::timestamp::date", [0, 1]),
        ("day < date '12024-03-01'", [0, 1]),
        ("at < timestamp '12024-03-01 10:00:00'", [0, 1]),
        ("at > date '-0001-03-01'", [0, 1]),
    ],
)
def test_a_constant_that_python_has_no_type_for_keeps_all_its_digits(
    where: str, found: list[int], tmp_path: Path
) -> None:
    nanos = 1_709_287_200_123_456_789
    at = [nanos, nanos - 789]
    table = pa.table(
        {
            "id": [0, 1],
            "at": pa.array(at, pa.timestamp("ns")),
            "zoned": pa.array(at, pa.timestamp("ns", "UTC")),
            "of_day": pa.array([it % 86_400_000_000_000 for it in at], pa.time64("ns")),
            "day": pa.array([date(2024, 3, 1)] * 2),
        }
    )
    pq.write_table(table, tmp_path / "a.parquet")
    rows = sb.read_table(tmp_path / "a.parquet", where=where, columns=["id"])
    assert rows.column("id").to_pylist() == found


def test_no_interval_is_added_to_a_time_that_python_would_cut(path: Path) -> None:
    where = "local > timestamp '2024-03-01 10:00:00.123456789' + interval '1 day'"
    with pytest.raises(sb.PolicyError, match="no interval can be added"):
        sb.read_table(path, where=where)


@pytest.mark.parametrize(
    ("where", "text"),
    [
        ("id", "wanted int64"),
        ("Name = date '2026-01-31'", "Name"),
        ("Name ilike '%user0'", "secure-bloom sql"),
        ("upper(Name) = 'USER07'", "secure-bloom sql"),
        ("Name::int = 7", "secure-bloom sql"),
    ],
)
def test_what_is_not_taken_has_a_way_out(where: str, text: str, path: Path) -> None:
    with pytest.raises(sb.PolicyError) as caught:
        sb.read_table(path, where=where)
    assert text in f"{caught.value} {caught.value.hint}"


def test_two_columns_that_differ_in_case_are_never_guessed(tmp_path: Path) -> None:
    file = tmp_path / "a.parquet"
    pq.write_table(pa.table({"Name": [1], "NAME": [2]}), file)
    assert sb.read_table(file, where="Name = 1").num_rows == 1
    with pytest.raises(sb.PolicyError, match="2 columns"):
        sb.read_table(file, where="name = 1")


def test_months_end_on_their_last_day() -> None:
    assert moved(date(2024, 1, 31), "1 month", back=False) == date(2024, 2, 29)
    assert moved(date(2024, 3, 31), "13 months", back=True) == date(2023, 2, 28)
    assert moved(date(2024, 1, 31), "-1 day 1 hour", back=False) == datetime(2024, 1, 30, 1)
    assert moved(date(2026, 1, 30), "1 day 1 month", back=False) == date(2026, 3, 1)
    assert moved(date(2026, 1, 31), "-1.5 days", back=False) == datetime(2026, 1, 29, 12)
    wrong = ("", "day", "1", "1 fortnight", "1 day and more", "1.5 months", "0.0000015 seconds")
    for interval in wrong:
        with pytest.raises(ValueError, match="interval"):
            moved(date(2024, 1, 31), interval, back=False)


def test_casts_refuse_what_is_not_of_the_type() -> None:
    assert cast("1.0", "int") == "1"
    assert cast(datetime(2026, 1, 31, 10), "date") == date(2026, 1, 31)
    for value, kind in (("1.5", "int"), ("x", "date"), ("yes", "boolean"), ("25:00", "time")):
        with pytest.raises(ValueError, match=f"not of type {kind}"):
            cast(value, kind)


def test_the_present_is_in_utc() -> None:
    now = datetime.now(UTC).replace(tzinfo=None)
    found = present("now")
    assert isinstance(found, datetime)
    assert abs(found - now) < timedelta(minutes=5)
    assert present("current_date") in (now.date(), now.date() + timedelta(days=1))


def test_a_token_has_its_kind_its_text_without_quotes_and_its_place() -> None:
    found = [
        (it.kind, it.text, it.place, it.keyword) for it in tokens_of("\"a b\" = 'O''Hara' AND;")
    ]
    assert found == [
        ("name", "a b", 1, ""),
        ("sign", "=", 7, "="),
        ("text", "O'Hara", 9, ""),
        ("word", "AND", 19, "and"),
    ]


@pytest.mark.parametrize(
    ("text", "line", "caret"),
    [
        ("email = secret and n = 3", "email = '******' and * = *", 8),
        ("n = 3 and email ~ 'secret'", "n = * and ***** * '******'", 16),
        ("email = 'secret' limit 3", "email = '******' ***** *", 17),
        ("upper(email) = 'secret'", "upper(*****) = '******'", 0),
        ("email = \u2018secret\u2019", "***** = ********", 8),
    ],
)
def test_an_error_shows_its_place_and_no_value(text: str, line: str, caret: int) -> None:
    with pytest.raises(PolicyError) as caught:
        from_text(text)
    shown = str(caught.value.hint).splitlines()[-2:]
    assert shown[0].replace(" ", "") == line.replace(" ", "")
    assert shown[1].index("^") - 2 == caret
    assert "secret" not in str(caught.value.hint)
    assert not any(digit in shown[0] for digit in "3")
