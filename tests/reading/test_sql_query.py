"""SQL over an encrypted table: DuckDB's answer on the plain file, with less read, no other file."""

from __future__ import annotations

import pickle
import shutil
from collections.abc import Iterator
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from pathlib import Path
from uuid import UUID

import duckdb
import pyarrow as pa
import pytest

import secure_bloom as sb
from secure_bloom.reading import TableRead
from secure_bloom.reading.sql_query import OpenQuery
from testing.tables import KEYRING, Mode, write

ROWS, GROUP = 60, 10
START = datetime(2026, 1, 1, tzinfo=UTC)
PEOPLE = pa.table(
    {
        "id": pa.array([*range(ROWS - 1), None], pa.int64()),
        "email": [f"user{i:02}@{'x' if i % 3 else 'y'}.example" for i in range(ROWS)],
        "country": pa.array([("it", "no", None)[i % 3] for i in range(ROWS)]).dictionary_encode(),
        "born": [date(1960, 1, 1) + timedelta(days=i) for i in range(ROWS)],
        "seen": pa.array(
            [START + timedelta(minutes=i) for i in range(ROWS)], pa.timestamp("us", "UTC")
        ),
        "noted": pa.array([datetime(2026, 1, 1, 0, i) for i in range(ROWS)], pa.timestamp("us")),
        "Limit": pa.array([Decimal(i) / 4 for i in range(ROWS)], pa.decimal128(9, 2)),
        "big": pa.array([Decimal(i) for i in range(ROWS)], pa.decimal128(38, 0)),
        "share": [float("nan"), *(i / 7 for i in range(1, ROWS))],
        "active": [i % 2 == 0 for i in range(ROWS)],
        "address": [{"city": f"c{i % 5}", "zip": f"{i:05}"} for i in range(ROWS)],
        "tags": [[str(i), "a"] for i in range(ROWS)],
        "raw": [bytes([i]) for i in range(ROWS)],
        "small": pa.array([i % 100 for i in range(ROWS)], pa.int8()),
        "wide": pa.array(range(ROWS), pa.uint64()),
    }
)
ORDERS = pa.table({"oid": range(90), "person": [i % 50 for i in range(90)], "amount": range(90)})


@pytest.fixture(scope="module")
def plain(tmp_path_factory: pytest.TempPathFactory) -> duckdb.DuckDBPyConnection:
    connection = duckdb.connect()
    folder = tmp_path_factory.mktemp("plain")
    for name, rows in (("people", PEOPLE), ("orders", ORDERS)):
        path = write(folder / f"{name}.parquet", rows, Mode.PLAIN)
        connection.execute(f"CREATE VIEW {name} AS FROM read_parquet('{path}')").fetchall()
    connection.execute("SET TimeZone = 'UTC'").fetchall()
    return connection


@pytest.fixture
def orders(tmp_path: Path) -> Path:
    path = tmp_path / "lake" / "orders" / "0.parquet"
    path.parent.mkdir(parents=True)
    write(path, ORDERS, Mode.ENCRYPTED, column_keys={"k_pii": ["person"]})
    return path.parent


@pytest.fixture(scope="module")
def people_file(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("people") / "0.parquet"
    write(path, PEOPLE, Mode.ENCRYPTED, row_group_size=GROUP, column_keys={"k_pii": ["email"]})
    sb.add_bloom_filters(path, columns=["email", "id"], keys=KEYRING)
    return path


@pytest.fixture
def people(people_file: Path, tmp_path: Path) -> Path:
    folder = tmp_path / "lake" / "people"
    folder.mkdir(parents=True)
    return Path(shutil.copy(people_file, folder)).parent


@pytest.fixture
def table(people: Path) -> Iterator[sb.Table]:
    with sb.open_table(people, keys=KEYRING) as opened:
        yield opened


@pytest.fixture
def read_groups(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """The number of row groups that each scan of a query read."""
    counts: list[int] = []
    batches = TableRead.batches

    def counted(self: TableRead) -> Iterator[pa.RecordBatch]:
        yield from batches(self)
        counts.append(sum(len(file.row_groups) for file in self.plan().files))

    monkeypatch.setattr(TableRead, "batches", counted)
    return counts


QUERIES = [
    "SELECT * FROM people",
    "SELECT count(*) FROM people",
    "SELECT country, count(*) FROM people WHERE email LIKE '%@x.example' GROUP BY 1",
    "SELECT * FROM people WHERE email = 'user07@x.example'",
    "SELECT id FROM people WHERE email IN ('user07@x.example', 'user08@x.example', 'nobody')",
    "SELECT id FROM people WHERE email NOT IN ('user07@x.example')",
    "SELECT id FROM people WHERE NOT (id IN (1, 2, 3))",
    "SELECT id, address.city FROM people WHERE address.zip = '00007'",
    "SELECT ID FROM people WHERE Email LIKE 'user1%' ORDER BY id DESC LIMIT 3",
    "SELECT id FROM people WHERE born BETWEEN DATE '1960-01-05' AND DATE '1960-01-07'",
    (
        "SELECT id FROM people WHERE seen >= TIMESTAMP '2026-01-01 00:05:00' "
        "AND seen < '2026-01-01 00:07:00'"
    ),
    "SELECT id FROM people WHERE noted > TIMESTAMP '2026-01-01 00:50:00'",
    "SELECT id FROM people WHERE seen::date = DATE '2026-01-01' AND extract(minute FROM seen) = 7",
    'SELECT id FROM people WHERE "Limit" = 2.5 OR big = 7',
    "SELECT id FROM people WHERE active AND id < 10",
    "SELECT id FROM people WHERE share > 5",
    "SELECT count(*) FROM people WHERE country IS NULL",
    "SELECT id FROM people WHERE country = 'it' AND id IS NOT NULL",
    "SELECT id FROM people WHERE list_contains(tags, '7')",
    "SELECT id FROM people WHERE raw = '\\x07'::blob",
    "SELECT id FROM people WHERE small = 7 AND wide = 7",
    "SELECT id FROM people WHERE id = 7.0",
    "SELECT id FROM people WHERE id = 7.5",
    'SELECT max(seen), min(born), sum("Limit"), avg(share) FROM people',
    "SELECT p.country, sum(o.amount) FROM people p JOIN orders o ON o.person = p.id GROUP BY ALL",
    "SELECT count(*) FROM people a JOIN people b ON a.id = b.id + 1",
    "SELECT id FROM people WHERE id IN (SELECT person FROM orders WHERE amount = 7)",
    "WITH p AS (SELECT * FROM people WHERE id < 3) SELECT email FROM p",
    (
        "WITH RECURSIVE t AS (SELECT 1 AS k UNION ALL SELECT k + 1 FROM t WHERE k < 4) "
        "SELECT id FROM people JOIN t ON id = k"
    ),
    "WITH people AS (SELECT id FROM people WHERE id < 3) SELECT * FROM people",
    "SELECT id FROM people ORDER BY email DESC LIMIT 2",
    (
        "SELECT id, row_number() OVER (ORDER BY id) FROM people "
        "QUALIFY row_number() OVER (ORDER BY id) < 3"
    ),
    "SELECT count(*) FROM people LIMIT 1",
    "SELECT DISTINCT country FROM people LIMIT 5",
    "(SELECT id FROM people WHERE id = 1) UNION ALL (SELECT oid FROM orders WHERE oid = 2)",
    "FROM people SELECT id WHERE id = 7",
    "SUMMARIZE SELECT id, country FROM people",
]


@pytest.mark.parametrize("query", QUERIES)
def test_the_answer_is_duckdb_s_on_the_plain_files(
    query: str, plain: duckdb.DuckDBPyConnection, people: Path, orders: Path
) -> None:
    found = sb.sql(query, {"people": people, "orders": orders}, keys=KEYRING)
    wanted = plain.sql(query).to_arrow_table()
    assert found.schema.names == wanted.schema.names
    assert sorted(map(repr, found.to_pylist())) == sorted(map(repr, wanted.to_pylist()))


def test_types_are_duckdb_s_own(plain: duckdb.DuckDBPyConnection, table: sb.Table) -> None:
    described = "SELECT column_name, column_type FROM (DESCRIBE {})"
    found = table.sql(described.format("self")).to_pylist()
    assert found == plain.sql(described.format("people")).to_arrow_table().to_pylist()


@pytest.mark.parametrize(
    ("where", "most"),
    [
        ("email = 'user07@x.example'", 1),
        ("email = 'nobody'", 0),
        ("email IN ('user07@x.example', 'user08@x.example')", 1),
        ("id = 33", 1),
        ("id BETWEEN 10 AND 19", 1),
        ("id > 49 AND lower(country) = 'no'", 1),
        ("born = DATE '1960-01-05'", 1),
        ("seen = TIMESTAMP '2026-01-01 00:05:00'", 1),
        ("noted >= TIMESTAMP '2026-01-01 00:50:00'", 1),
        ('"Limit" = 2.5', 1),
        ("address.zip = '00007'", 1),
        ("id = $wanted", 1),
        ("id = 1 OR id = 2", 1),
    ],
)
def test_row_groups_that_are_ruled_out_are_not_read(
    where: str, most: int, table: sb.Table, read_groups: list[int]
) -> None:
    parameters = {"wanted": 33} if "$" in where else None
    table.sql(f"SELECT * FROM self WHERE {where}", parameters=parameters)
    assert len(read_groups) == 1
    assert read_groups[0] <= most


def test_a_first_look_reads_no_more_rows_than_it_shows(table: sb.Table) -> None:
    asked = []
    ask = sb.Table.ask

    def noted(self: sb.Table, question: object, **more: object) -> TableRead:
        asked.append(question.limit)  # type: ignore[attr-defined]
        return ask(self, question, **more)  # type: ignore[arg-type]

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(sb.Table, "ask", noted)
        assert table.sql("SELECT * FROM self LIMIT 3 OFFSET 2").num_rows == 3
        assert table.sql("SELECT count(*) AS n FROM self LIMIT 3").to_pylist() == [{"n": ROWS}]
        assert table.sql("SELECT id FROM self WHERE id > 50 LIMIT 3").num_rows == 3
    assert asked == [5, None, None]


@pytest.mark.parametrize("name", ["self", "SELF", "people", "{path}"])
def test_a_table_has_its_own_names(name: str, table: sb.Table, people: Path) -> None:
    query = f"SELECT count(*) AS n FROM '{name.format(path=people)}'"
    assert table.sql(query).to_pylist() == [{"n": ROWS}]


def test_a_table_that_was_not_given_is_refused_and_never_guessed(table: sb.Table) -> None:
    with pytest.raises(sb.PolicyError, match="the query names the table orders") as caught:
        table.sql("SELECT * FROM orders")
    assert "self" in str(caught.value.hint)


def test_tables_are_paths_in_the_query(people: Path, orders: Path) -> None:
    query = f"SELECT count(*) AS n FROM '{people}' p JOIN \"{orders}\" o ON p.id = o.person"
    assert sb.sql(query, keys=KEYRING).to_pylist() == [{"n": 90}]
    with pytest.raises(sb.PolicyError, match="no such file") as caught:
        sb.sql("SELECT * FROM custmers", keys=KEYRING)
    assert "in quotes" in str(caught.value.hint)


def test_names_that_differ_in_case_alone_are_refused(people: Path) -> None:
    query = "SELECT * FROM 'a/X', 'a/x'"
    with pytest.raises(sb.PolicyError, match="have the names"):
        sb.sql(query, {"a/x": people}, keys=KEYRING)
    with pytest.raises(sb.PolicyError, match="two entries for the name a/x"):
        sb.sql(query, {"a/x": people, "a/X": people}, keys=KEYRING)


@pytest.mark.parametrize(
    "query",
    [
        "SELECT * FROM read_csv('{secret}')",
        "SELECT * FROM read_text('{secret}')",
        "SELECT * FROM read_parquet('{secret}')",
        "SELECT * FROM glob('{folder}/*')",
        "COPY (SELECT * FROM self) TO '{folder}/out.csv'",
        "COPY self TO '{folder}/out.parquet'",
        "ATTACH '{folder}/out.db'",
        "CREATE TABLE t AS FROM self",
        "INSTALL httpfs",
        "SET enable_external_access = true",
        "SELECT 1; SELECT 2",
        "EXPORT DATABASE '{folder}/out'",
        "PRAGMA database_list",
        "",
    ],
)
def test_a_query_reads_and_writes_nothing_but_tables(
    query: str, table: sb.Table, tmp_path: Path
) -> None:
    secret = tmp_path / "secret.csv"
    secret.write_text("a\n1\n")
    before = sorted(tmp_path.rglob("*"))
    with pytest.raises(sb.PolicyError):
        table.sql(query.format(secret=secret, folder=tmp_path))
    assert sorted(tmp_path.rglob("*")) == before


@pytest.mark.parametrize(
    "query",
    [
        "SELECT email::int FROM self",
        "SELECT error(email) FROM self",
        "SELECT * FROM self WHERE strptime(email, '%Y') IS NOT NULL",
        'SELECT * FROM self WHERE email = "user07@x.example"',
        "SELECT * FROM self WHERE id = 'user07@x.example'",
    ],
)
def test_errors_have_no_values(query: str, table: sb.Table) -> None:
    with pytest.raises(sb.PolicyError) as caught:
        table.sql(query)
    shown = f"{caught.value}{caught.value.hint}{caught.value.__cause__}"
    assert "user0" not in shown
    assert "example" not in shown


@pytest.mark.parametrize(
    ("query", "kind"),
    [
        ("SELECT '2020-13-45'::date", "cannot be converted to a type (DuckDB: Conversion Error)"),
        ("SELECT email::int FROM self", "Conversion Error"),
        ("SELECT (id + 300)::tinyint FROM self", "Conversion Error"),
        ("SELECT id + 9223372036854775807 FROM self", "Out of Range Error"),
        ("SELECT strptime(email, '%Y') FROM self", "Invalid Input Error"),
        ("SELECT error(email) FROM self", "Invalid Input Error"),
    ],
)
def test_an_error_about_a_value_names_its_kind(query: str, kind: str, table: sb.Table) -> None:
    with pytest.raises(sb.PolicyError) as caught:
        table.sql(query)
    assert kind in str(caught.value)


@pytest.mark.parametrize(
    ("query", "hint"),
    [
        ("PIVOT self ON country USING count(*)", "ON country IN ('it', 'no')"),
        ("SELECT * FROM (pivot self ON country USING count(*))", "ON country IN ('it', 'no')"),
        ("EXPLAIN SELECT 1", "--explain"),
        ("COPY self TO 'x.csv'", "--output FILE"),
        ("SET threads = 1", "settings of DuckDB are fixed"),
        ("ATTACH 'x.db'", "--table NAME=PATH"),
        ("CREATE TABLE t AS FROM self", "only read"),
        ("WITH a AS (SELECT 1) INSERT INTO self FROM a", "only read"),
        ("VACUUM", "SELECT ... FROM"),
        ("SELECT 1; SELECT 2", "one by one"),
        ("-- nothing", "SELECT ... FROM"),
        ("SELECT country, count(*) FROM self", "GROUP BY ALL"),
        ("SELECT id FROM self a, self b", "write the table before the column"),
        ("FROM read_parquet('x.parquet')", "a table is its path in quotes"),
        ("SELECT len(id) FROM self", "cast(COLUMN AS DATE)"),
        ("SELECT getdate()", "functions are those of DuckDB"),
        ("SELECT id FROM self WHERE count(*) > 3 GROUP BY 1", "HAVING"),
        ("SELECT s.idd FROM self s", "DESCRIBE"),
        ("SELECT emial FROM self", "email"),
        ("SELECT * FROM lake/people", "texts and paths in single quotes"),
    ],
)
def test_what_is_no_query_and_common_mistakes_have_a_hint(
    query: str, hint: str, table: sb.Table
) -> None:
    with pytest.raises(sb.PolicyError) as caught:
        table.sql(query)
    assert hint in str(caught.value.hint)


def test_pivot_takes_values(table: sb.Table) -> None:
    found = table.sql("PIVOT self ON country IN ('it', 'no') USING count(*) GROUP BY active")
    assert found.schema.names == ["active", "it", "no"]


@pytest.mark.parametrize(
    "condition",
    [
        "raw = $raw",
        "$raw = s.raw",
        "raw IN ($raw)",
        "raw BETWEEN $raw AND $raw",
        "raw <= $raw AND id=7",
    ],
)
@pytest.mark.parametrize("value", ["hex:07", b"\x07"])
def test_bytes_are_given_as_they_are_written(
    condition: str, value: object, table: sb.Table
) -> None:
    found = table.sql(f"SELECT id FROM self AS s WHERE {condition}", parameters={"raw": value})
    assert found.to_pylist() == [{"id": 7}]


def test_a_text_is_never_taken_for_bytes(table: sb.Table) -> None:
    with pytest.raises(sb.PolicyError, match="compares bytes with a text") as caught:
        table.sql("SELECT id FROM self WHERE raw = 'hex:07'")
    assert "from_hex(" in str(caught.value.hint)
    given = {"text": "hex:07"}
    assert (
        table.sql("SELECT $text AS x FROM self WHERE email = $text", parameters=given).num_rows == 0
    )


@pytest.mark.parametrize(
    ("query", "values", "names"),
    [
        ("SELECT 1", {"most": 1}, "$most"),
        ("SELECT id FROM self WHERE id = $id", {"id": 1, "most": 1, "x": 2}, "$most, $x"),
        ("SELECT id FROM self LIMIT $n", {"n": 1, "country": "user07"}, "$country"),
    ],
)
def test_a_value_that_the_query_does_not_use_is_named(
    query: str, values: dict[str, object], names: str, table: sb.Table
) -> None:
    with pytest.raises(sb.PolicyError, match="the query has no parameter") as caught:
        table.sql(query, parameters=values)
    assert f"parameter {names}," in str(caught.value)
    assert "user07" not in f"{caught.value}{caught.value.hint}"


@pytest.mark.parametrize(
    "query",
    [
        "SELECT id FROM self ORDER BY id LIMIT $n OFFSET $M",
        "WITH x AS (SELECT $m::int AS m) SELECT $n + m FROM x",
        "SELECT list_transform([1], lambda x: x + $n + $m)",
        "SELECT sum(id) FILTER (id < $n) FROM self HAVING count(*) > $m",
        "SELECT 1 FROM self a JOIN (SELECT $n AS n) b ON a.id = $m UNION ALL SELECT $n",
    ],
)
def test_a_value_may_be_used_anywhere_in_a_query(query: str, table: sb.Table) -> None:
    assert table.sql(query, parameters={"n": 2, "m": 1}).num_rows > 0


@pytest.mark.parametrize(
    ("rows", "named"),
    [
        ({"User": [1], "id": [2], "user": [3]}, "User and user"),
        ({"s": [{"A": 1, "a": 2}]}, "s.A and s.a"),
        ({"l": [[{"A": 1, "a": 2}]]}, ".a differ"),
    ],
)
@pytest.mark.parametrize("query", ['SELECT "user" FROM self', "SELECT * FROM self"])
def test_columns_that_differ_in_case_alone_are_refused(
    query: str, rows: dict[str, list[object]], named: str, tmp_path: Path
) -> None:
    path = write(tmp_path / "x.parquet", pa.table(rows), Mode.PLAIN)
    with sb.open_table(path) as table, pytest.raises(sb.PolicyError) as caught:
        table.sql(query)
    assert named in str(caught.value)
    assert "case" in str(caught.value)


def test_names_that_sql_distinguishes_are_no_mistake(tmp_path: Path) -> None:
    rows = {"Ä": [1], "ä": [2], "a": [{"A": 3}], "b": [{"a": 4, "A1": 5}]}
    path = write(tmp_path / "x.parquet", pa.table(rows), Mode.PLAIN)
    with sb.open_table(path) as table:
        assert table.sql('SELECT "ä" AS x, a.A AS y, b.a AS z FROM self').to_pylist() == [
            {"x": 2, "y": 3, "z": 4}
        ]


def test_the_error_of_a_table_is_its_own(people: Path) -> None:
    keyring = sb.Keyring(master_keys={})
    with pytest.raises(sb.KeyUnavailableError):
        sb.sql("SELECT * FROM people", {"people": people}, keys=keyring)
    with sb.open_table(people, keys=KEYRING) as table:
        (file,) = people.glob("*.parquet")
        content = bytearray(file.read_bytes())
        content[-40] ^= 1  # a byte of the footer
        file.write_bytes(content)
        with pytest.raises(sb.SecureBloomError) as caught:
            table.sql("SELECT * FROM self")
    assert caught.value.path == str(file)


def test_rows_come_as_a_stream_while_the_query_is_open(table: sb.Table) -> None:
    with OpenQuery("SELECT id FROM t WHERE id < 3 ORDER BY id") as query:
        assert query.table_names == ["t"]
        rows = query.run({"t": table})
        assert rows.read_all().column("id").to_pylist() == [0, 1, 2]


def test_the_answer_outlives_the_query(table: sb.Table) -> None:
    found = table.sql("SELECT email FROM self WHERE id = 7")
    table.close()
    assert pickle.loads(pickle.dumps(found)).to_pylist() == [{"email": "user07@x.example"}]


@pytest.fixture(scope="module")
def uuids(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("uuids") / "0.parquet"
    duckdb.connect().execute(
        f"""
        COPY (
            SELECT i, u, {{'u': u, 'a "b"': i}} AS st, [u, NULL] AS l, MAP([i % 2], [u]) AS m,
                [{{'u': u}}] AS sl, '{{}}'::JSON AS j, {{'j': '{{}}'::JSON}} AS sj
            FROM (SELECT i, ('00000000-0000-0000-0000-' || lpad(i::VARCHAR, 12, '0'))::UUID AS u
                  FROM range(9) r(i))
        ) TO '{path}' (FORMAT parquet)
        """
    )
    sb.add_bloom_filters(path, columns=["u"])
    return path


@pytest.mark.parametrize(
    "condition",
    [
        "u = '{}'",
        "u <= '{}'",
        "u IN ('{}', NULL)",
        "u = (SELECT max(u) FROM t WHERE i <= 5)",
        "st.u = '{}'",
        "l[1] = '{}'",
        "m[1] = '{}'",
        "sl[1].u = '{}'",
    ],
)
def test_uuids_are_compared_as_uuids(uuids: Path, condition: str) -> None:
    query = f"SELECT * FROM t WHERE {condition}".format("00000000-0000-0000-0000-000000000005")
    plain = duckdb.connect()
    plain.execute(f"CREATE VIEW t AS FROM read_parquet('{uuids}')")
    with sb.open_table(uuids) as table:
        found = sb.sql(query, {"t": table}).to_pylist()
    assert found
    wanted = plain.sql(query).to_arrow_table().to_pylist()
    assert found == [row | {"u": UUID(row["u"])} for row in wanted]


def test_uuids_come_as_uuids(uuids: Path) -> None:
    query = f"SELECT u, NULLIF(u, '{UUID_TEXT}') AS other, u::VARCHAR AS text FROM t ORDER BY i"
    found = sb.sql(query, {"t": uuids})
    assert found.schema.types == [pa.uuid(), pa.uuid(), pa.string()]
    assert found["u"].to_pylist() == sb.read_table(uuids)["u"].to_pylist()
    assert found["other"].null_count == 1
    assert sb.sql(query + " LIMIT 0", {"t": uuids}).schema == found.schema


UUID_TEXT = "00000000-0000-0000-0000-000000000005"


@pytest.mark.parametrize(
    ("condition", "is_skipped"),
    [
        (f"u = '{UUID_TEXT}'", True),
        (f"x.U = '{UUID_TEXT}'::UUID AND i >= 0", True),
        (f"'{UUID_TEXT.upper()}' = u", True),
        (f"u IN ('{UUID_TEXT}', UUID '{UUID_TEXT}')", True),
        ("u = $text", True),
        ("u = $value", True),
        (f"'{UUID_TEXT}'::VARCHAR = u", False),
        (f"u = '{UUID_TEXT}' OR i = 1", False),
        (f"NOT u = '{UUID_TEXT}'", False),
        (f"u = '{{{UUID_TEXT}}}'", False),
        (f"u IN ('{UUID_TEXT}', NULL)", False),
        (f"u = '{UUID_TEXT}' AND i < (SELECT count(*) FROM t)", False),
    ],
)
def test_row_groups_without_a_uuid_are_not_read(
    tmp_path: Path, read_groups: list[int], condition: str, is_skipped: bool
) -> None:
    duckdb.connect().execute(
        f"""
        COPY (SELECT i, ('00000000-0000-0000-0000-' || lpad(i::VARCHAR, 12, '0'))::UUID AS u
              FROM range(6000) r(i)) TO '{tmp_path / "u.parquet"}'
        (FORMAT parquet, ROW_GROUP_SIZE 2048)
        """
    )
    query = f"SELECT i FROM t AS x WHERE {condition} ORDER BY i"
    given = {"text": UUID_TEXT, "value": UUID(UUID_TEXT)}
    given = {name: value for name, value in given.items() if f"${name}" in condition}
    plain = duckdb.connect()
    plain.execute(f"CREATE VIEW t AS FROM '{tmp_path / 'u.parquet'}'")
    found = sb.sql(query, {"t": tmp_path}, parameters=given).to_pylist()
    assert found == plain.execute(query, given).to_arrow_table().to_pylist()
    assert (read_groups[-1] == 1) == is_skipped


@pytest.mark.parametrize(
    "query",
    [
        "WITH c AS (SELECT *, count(*) OVER () AS n FROM t) SELECT n FROM c WHERE u = '{}'",
        "SELECT n FROM (SELECT *, count(*) OVER () AS n FROM t) WHERE u = '{}'",
        "SELECT count(*), (SELECT count(*) FROM t) FROM t WHERE u = '{}'",
        "SELECT a.i, b.i FROM t AS a LEFT JOIN t AS b ON b.u = '{}' ORDER BY ALL",
        "SELECT i FROM t WHERE u = '{}' UNION ALL SELECT count(*) FROM t ORDER BY ALL",
    ],
)
def test_a_condition_on_a_uuid_leaves_the_rest_of_a_query_its_rows(uuids: Path, query: str) -> None:
    plain = duckdb.connect()
    plain.execute(f"CREATE VIEW t AS FROM read_parquet('{uuids}')")
    query = query.format(UUID_TEXT)
    found = sb.sql(query, {"t": uuids}).to_pylist()
    assert found == plain.sql(query).to_arrow_table().to_pylist()


def test_a_row_group_without_a_match_has_uuids_inside_other_types(uuids: Path) -> None:
    assert sb.read_table(uuids, "i > 3 and i < 4").num_rows == 0


@pytest.mark.parametrize(
    ("query", "reason"),
    [
        ("select " + "(" * 2_000, "nests deeper than 250 brackets"),
        ("select " + "[" * 2_000, "nests deeper than 250 brackets"),
        ("select '((' from a where x = '\u00e9' and ((" + "(" * 2_000, "nests deeper than 250"),
        ("select " + "1 + " * 600 + "1", "nests too deep"),
        ("select 1 where 1 in (" + "1, " * 150_000 + "1)", "the query takes"),
        ("select '" + "a" * 9_000_000 + "'", "the query takes"),
    ],
)
def test_a_query_that_takes_gigabytes_to_parse_is_refused(query: str, reason: str) -> None:
    with pytest.raises(sb.SecureBloomError, match=reason) as caught:
        OpenQuery(query)
    assert caught.value.hint
    assert len(str(caught.value)) < 500


def test_a_long_list_and_a_long_sum_are_answered() -> None:
    listed = ", ".join(f"'user{number}@example.com'" for number in range(20_000))
    with OpenQuery(f"select 1 where 'a' in ({listed})") as query:
        assert query.table_names == []
    with OpenQuery("select " + "n + " * 200 + "1 from people") as query:
        assert query.table_names == ["people"]
    with OpenQuery("select '" + "(" * 300 + "' from people") as query:
        assert query.table_names == ["people"]
