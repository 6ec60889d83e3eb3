"""Columns, and members of structures, whose key is missing: an error, null, or left out."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import polars as pl
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
import pytest

import secure_bloom as sb
from secure_bloom.encryption.kms import Keyring
from secure_bloom.errors import (
    IntegrityError,
    KeyUnavailableError,
    KmsUnavailableError,
    PolicyError,
    SecureBloomError,
)
from testing.command_line import run
from testing.tables import KEYRING, MASTER_KEYS, Mode, keyring_json, write

PHONES = pa.list_(pa.struct([("kind", pa.string()), ("number", pa.string())]))
GEO = pa.struct([("lat", pa.float64()), ("lon", pa.float64())])
ADDRESS = pa.struct([("city", pa.string()), ("zip", pa.string()), ("geo", GEO)])
TABLE = pa.table(
    {
        "id": pa.array(range(12)),
        "email": [f"user{i}@x.example" for i in range(12)],
        "address": pa.array(
            [
                None
                if i % 5 == 4
                else {"city": f"c{i % 3}", "zip": f"{i:05}", "geo": {"lat": 0.5 * i, "lon": i}}
                for i in range(12)
            ],
            ADDRESS,
        ),
        "phones": pa.array(
            [[{"kind": "home", "number": f"+{i}{k}"} for k in range(i % 3)] for i in range(12)],
            PHONES,
        ),
        "tags": pa.array([[("a", str(i))] for i in range(12)], pa.map_(pa.string(), pa.string())),
    }
)
SECRET = [
    "email",
    "address.zip",
    "address.geo.lat",
    "phones.list.element.number",
    "tags.key_value.value",
]
#: A keyring without the key of the columns above.
ANALYST = Keyring(master_keys={"k_footer": MASTER_KEYS["k_footer"]})
HIDDEN = ("address.geo.lat", "address.zip", "email", "phones.element.number", "tags")


def _city(row: dict) -> str | None:
    return None if row["address"] is None else row["address"]["city"]


@pytest.fixture(scope="module")
def lake(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Two files of two row groups each, in two modes; the columns of one key are secret."""
    folder = tmp_path_factory.mktemp("lake")
    for place, mode in enumerate((Mode.ENCRYPTED, Mode.SIGNED)):
        write(
            folder / f"{place}.parquet",
            TABLE.slice(6 * place, 6),
            mode,
            row_group_size=3,
            column_keys={"k_pii": SECRET, "k_footer": ["address.city"]},
        )
    return folder


@pytest.fixture
def table(lake: Path) -> Iterator[sb.Table]:
    with sb.open_table(lake, keys=ANALYST) as opened:
        yield opened


def _expected(missing_keys: str) -> list[dict]:
    rows = TABLE.to_pylist()
    for row in rows:
        members = [row, row["address"], row["address"] and row["address"]["geo"], *row["phones"]]
        for member in filter(None, members):
            for name in {"email", "zip", "lat", "number", "tags"} & member.keys():
                if missing_keys == "drop":
                    del member[name]
                else:
                    member[name] = None
    return rows


@pytest.mark.parametrize("missing_keys", ["null", "drop"])
def test_hidden_columns_and_members_are_null_or_left_out(lake: Path, missing_keys: str) -> None:
    found = sb.read_table(lake, keys=ANALYST, missing_keys=missing_keys)
    assert found.to_pylist() == _expected(missing_keys)
    with sb.open_table(lake, keys=ANALYST, missing_keys=missing_keys) as opened:
        assert opened.read().equals(found)
        assert opened.read("id = 7").to_pylist() == _expected(missing_keys)[7:8]
        frame = opened.scan_polars().filter(pl.col("id") == 7).collect()
        # Polars has a list of structures in place of a map.
        assert frame.drop("tags", strict=False).to_dicts() == [
            {name: value for name, value in row.items() if name != "tags"}
            for row in _expected(missing_keys)[7:8]
        ]
        assert opened.sql("SELECT * FROM self ORDER BY id").num_rows == 12
    plan = sb.plan_read(lake, where="id > 4", keys=ANALYST, missing_keys=missing_keys)
    planned = [
        row
        for file in plan.files
        for batch in sb.read_row_groups(plan, file, keys=ANALYST)
        for row in batch.to_pylist()
    ]
    assert planned == _expected(missing_keys)[5:]


def test_by_default_a_hidden_column_is_an_error(lake: Path, table: sb.Table) -> None:
    for ask in (table.read, lambda: sb.read_table(lake, keys=ANALYST)):
        with pytest.raises(KeyUnavailableError, match="is not available") as raised:
            ask()
        assert "--missing-keys drop" in str(raised.value.hint)
    with pytest.raises(PolicyError, match="wanted one of error, null, drop"):
        sb.read_table(lake, keys=ANALYST, missing_keys="hide")


def test_with_all_keys_nothing_changes(lake: Path) -> None:
    for missing_keys in ("error", "null", "drop"):
        assert sb.read_table(lake, keys=KEYRING, missing_keys=missing_keys).equals(TABLE)


def test_members_are_read_alone(table: sb.Table) -> None:
    found = table.read(columns=["address.city", "address.geo.lon", "phones.element.kind"])
    judge = pa.table(
        {
            "address": pa.array(
                [
                    row["address"]
                    and {"city": _city(row), "geo": {"lon": row["address"]["geo"]["lon"]}}
                    for row in TABLE.to_pylist()
                ]
            ),
            "phones": pa.array(
                [[{"kind": it["kind"]} for it in row["phones"]] for row in TABLE.to_pylist()]
            ),
        }
    )
    assert found.to_pylist() == judge.to_pylist()


def test_members_that_are_read_alone_are_those_of_pyarrow(tmp_path: Path) -> None:
    path = write(tmp_path / "plain.parquet", TABLE)
    for names in (["address.city"], ["address.geo.lat", "id"], ["phones.list.element.number"]):
        judge = pq.ParquetFile(path).read(columns=names)
        for spelled in (names, [name.replace(".list.", ".") for name in names]):
            found = sb.read_table(path, columns=spelled)
            assert found.select(judge.column_names).to_pylist() == judge.to_pylist()


@pytest.mark.parametrize("where", [None, "id >= 0", "id in (4, 7)", "address.city = 'c1'"])
def test_a_hidden_member_alone_is_in_a_structure_that_is_null_where_it_is(
    lake: Path, where: str | None
) -> None:
    with sb.open_table(lake, keys=ANALYST, missing_keys="null") as opened:
        # A condition on the structure reads all members.
        judges = opened.read(where)
        for wanted in (
            ["address.zip", "phones.element.number"],
            ["address.geo.lat"],
            ["address.geo.lat", "address.city", "phones"],
        ):
            expected = [_only(row, wanted) for row in judges.to_pylist()]
            assert opened.read(where, columns=wanted).to_pylist() == expected
            batches = opened.read_batches(where, columns=wanted)
            assert [row for it in batches for row in it.to_pylist()] == expected
            plan = opened.plan(where, columns=wanted)
            planned = [sb.read_row_groups(plan, file, keys=ANALYST) for file in plan.files]
            assert [row for it in planned for one in it for row in one.to_pylist()] == expected


def _only(row: dict, wanted: list[str]) -> dict:
    """Return a row with only the members that were asked for."""

    def picked(value: object, paths: list[list[str]]) -> object:
        if value is None or [] in paths:
            return value
        if isinstance(value, list):
            return [picked(it, [path[1:] for path in paths]) for it in value]
        tops = dict.fromkeys(path[0] for path in paths)
        return {
            top: picked(value[top], [path[1:] for path in paths if path[0] == top]) for top in tops
        }

    found = picked(row, [name.split(".") for name in wanted])
    assert isinstance(found, dict)
    return found


@pytest.mark.parametrize("missing_keys", ["error", "null", "drop"])
def test_conditions_on_readable_members(lake: Path, missing_keys: str) -> None:
    rows = sb.read_table(
        lake,
        where="address.city = 'c1'",
        columns=["id"],
        keys=ANALYST,
        missing_keys=missing_keys,
    )
    assert rows.column("id").to_pylist() == [
        row["id"] for row in TABLE.to_pylist() if _city(row) == "c1"
    ]


HIDDEN_CONDITIONS = [
    "email = 'user1@x.example'",
    "email is null",
    "email is not null",
    "address.zip = '00001'",
    "address.zip is null",
    "address.geo.lat is null",
    "address.geo.lat > 1 or id = 3",
    "phones is not null and tags is null",
]


@pytest.mark.parametrize("missing_keys", ["null", "drop"])
@pytest.mark.parametrize("where", HIDDEN_CONDITIONS)
def test_a_condition_on_hidden_values_is_an_error(
    lake: Path, where: str, missing_keys: str
) -> None:
    with pytest.raises(KeyUnavailableError, match="its key is missing"):
        sb.read_table(lake, where=where, keys=ANALYST, missing_keys=missing_keys)
    with pytest.raises(KeyUnavailableError):
        # Nothing is left out instead: files in which the key is there would lose rows.
        sb.read_table(
            lake, where=where, keys=ANALYST, missing_keys=missing_keys, without_filter_keys=True
        )


EMAIL, ZIP = pl.col("email"), pl.col("address").struct.field("zip")


@pytest.mark.parametrize(
    "predicate",
    [EMAIL.is_null(), EMAIL.str.contains("x"), ZIP.is_null(), ZIP.str.len_chars() > 3],
    ids=["null", "contains", "member", "computed"],
)
def test_a_predicate_of_polars_on_hidden_values_is_an_error(
    table: sb.Table, predicate: pl.Expr
) -> None:
    frame = table.scan_polars(missing_keys="null")
    assert frame.select("id").collect().height == 12
    with pytest.raises(Exception, match="its key is missing"):
        frame.filter(predicate).select("id").collect()
    with pytest.raises(Exception, match=r"email|zip"):
        table.scan_polars(missing_keys="drop").filter(predicate).collect()


@pytest.mark.parametrize(
    "query",
    [
        "SELECT id FROM self WHERE email IS NULL",
        "SELECT id FROM self WHERE email LIKE '%x%'",
        "SELECT id, email AS e FROM self WHERE e IS NULL",
        "SELECT id FROM self WHERE address.zip IS NULL",
        "SELECT id FROM self WHERE (address).zip IS NULL",
        "SELECT id FROM self WHERE address['zip'] IS NULL",
        "SELECT count(email) FROM self",
        "SELECT email, count(*) FROM self GROUP BY ALL",
        "SELECT DISTINCT * FROM self",
        "SELECT * FROM self ORDER BY 2",
        "SELECT * FROM self ORDER BY ALL",
        "SELECT id FROM self WHERE COLUMNS(*) IS NOT NULL",
        "SELECT id FROM (SELECT * FROM self) WHERE email IS NULL",
        "SELECT id FROM (SELECT id, email AS e FROM self) WHERE e IS NULL",
        "SELECT a FROM self AS t(a, b) WHERE b IS NULL",
        "SELECT a.id FROM self a NATURAL JOIN self b",
        "SELECT coalesce(email, 'none') FROM self",
        "SELECT * REPLACE (email IS NULL AS email) FROM self",
        "SELECT * FROM self EXCEPT SELECT * FROM self",
        "SELECT id FROM self QUALIFY row_number() OVER (PARTITION BY email) = 1",
        "SELECT a.address.city FROM self a JOIN self b USING (EMAIL)",
        "SELECT e.city FROM (SELECT address AS e FROM self) WHERE e.zip IS NULL",
        "SELECT address.city, count(*) FROM self GROUP BY address, 1",
        "SELECT address.city FROM self GROUP BY 1 ORDER BY count(address.geo.lat)",
        "SELECT address.city FROM self, LATERAL (SELECT unnest(phones)) AS t",
        "PIVOT (SELECT * FROM self) ON id IN (1, 2) USING count(*) GROUP BY email",
        "SELECT a.address.city, (SELECT count(b.id) FROM self b WHERE b.email IS NULL) FROM self a",
        "SELECT struct_extract(address, 'zip') IS NULL FROM self",
        'SELECT "ADDRESS".ZIP IS NULL FROM self',
        "WITH x(a, e) AS (SELECT id, email FROM self) SELECT id FROM self JOIN x ON e IS NULL",
        "SELECT DISTINCT ON (self.email) address.city FROM self",
        "SELECT address.city, count(DISTINCT s) FROM self AS s GROUP BY ALL",
        "SELECT count(*) FROM (SELECT unnest(phones) AS p FROM self) WHERE p.number IS NULL",
        "SELECT count(*) FROM self, unnest(phones) AS u(p) WHERE p.number IS NULL",
        "SELECT count(*) FROM self, unnest(phones) AS u(p) GROUP BY p",
        "SELECT count(*) FROM (SELECT unnest(address) FROM self) WHERE zip IS NULL",
        "SELECT count(*) FROM (SELECT address.* FROM self) WHERE zip IS NULL",
        "SELECT phones = [] FROM self",
        "SELECT count(tags) FROM self",
        "SELECT e FROM (SELECT email AS f FROM self) AS t(e) WHERE e IS NULL",
        "SELECT e FROM (SELECT id AS e FROM self UNION ALL SELECT length(email) FROM self)",
        "SELECT x FROM (SELECT 'a' AS x UNION ALL SELECT email FROM self) WHERE x IS NULL",
        "SELECT email FROM self UNION SELECT email FROM self",
        "SELECT id, email FROM self UNION ALL SELECT id, email FROM self ORDER BY 2",
        "SELECT id FROM (SELECT id, s FROM self AS s) AS t WHERE t.s.email IS NULL",
        "SELECT (SELECT first(email) FROM self) AS e",
        "SELECT id FROM self WHERE id IN (SELECT length(email) FROM self)",
        "SELECT id FROM self a WHERE EXISTS (SELECT 1 FROM self b WHERE b.email = a.email)",
        "SELECT id FROM (SELECT (email) AS \"e\" , id FROM self) AS q WHERE q.e LIKE 'x'",
        "SELECT id, row_number() OVER (ORDER BY email) FROM self",
        "SELECT id FROM self LIMIT (SELECT count(email) FROM self)",
    ],
)
def test_a_query_that_uses_hidden_values_is_an_error(table: sb.Table, query: str) -> None:
    with pytest.raises(KeyUnavailableError, match="its key is missing"):
        table.sql(query, missing_keys="null")
    # Without the column there is another answer, or none, and the query's text says so.
    with pytest.raises(KeyUnavailableError):
        table.sql(query)


@pytest.mark.parametrize(
    ("query", "rows"),
    [
        ("SELECT count(*) AS n FROM self", [{"n": 12}]),
        ("SELECT id, email FROM self WHERE id = 3", [{"id": 3, "email": None}]),
        (
            "SELECT address.city, address.zip FROM self WHERE address.city = 'c2' AND id < 3",
            [{"city": "c2", "zip": None}],
        ),
        ("SELECT max(id) AS n FROM self", [{"n": 11}]),
        ("SELECT email FROM self ORDER BY id DESC LIMIT 1", [{"email": None}]),
        (
            "WITH x AS (SELECT id, email AS e FROM self) SELECT x.e FROM x WHERE id = 3",
            [{"e": None}],
        ),
        ("SELECT * FROM (SELECT id, email FROM self) WHERE id = 3", [{"id": 3, "email": None}]),
        ("SELECT COLUMNS('id|email') FROM self WHERE id = 3", [{"id": 3, "email": None}]),
        ("SELECT * EXCLUDE (tags, phones, address) FROM self LIMIT 1", [{"id": 0, "email": None}]),
        (
            "SELECT a.email, b.id FROM self a JOIN self b USING (id) WHERE id = 3",
            [{"email": None, "id": 3}],
        ),
        (
            "SELECT len(phones) AS n, count(*) AS m FROM self GROUP BY 1 ORDER BY 1",
            [{"n": 0, "m": 4}, {"n": 1, "m": 4}, {"n": 2, "m": 4}],
        ),
        (
            "SELECT p.kind, count(*) AS n FROM (SELECT unnest(phones) AS p FROM self) GROUP BY 1",
            [{"kind": "home", "n": 12}],
        ),
        (
            "SELECT count(*) AS n FROM self, unnest(phones) AS u(p) WHERE p.kind = 'home'",
            [{"n": 12}],
        ),
        (
            "SELECT phones[1].kind AS k, phones[1].number AS n FROM self WHERE id = 1",
            [{"k": "home", "n": None}],
        ),
        ("SELECT count(*) AS n FROM self WHERE phones IS NOT NULL AND address IS NULL", [{"n": 2}]),
        (
            "SELECT email FROM self WHERE id = 1 UNION ALL SELECT email FROM self WHERE id = 2",
            [{"email": None}, {"email": None}],
        ),
    ],
)
def test_a_query_that_only_shows_hidden_values(
    table: sb.Table, query: str, rows: list[dict]
) -> None:
    assert table.sql(query, missing_keys="null").to_pylist() == rows


def test_the_error_names_the_member_that_a_query_computes_with(table: sb.Table) -> None:
    for query, name in {
        "SELECT id, email FROM (SELECT * FROM self) WHERE tags IS NULL": "tags",
        "SELECT email FROM self WHERE address.zip LIKE '0%'": "address.zip",
        "SELECT tags FROM self ORDER BY email": "email",
    }.items():
        with pytest.raises(KeyUnavailableError, match="its key is missing") as raised:
            table.sql(query, missing_keys="null")
        assert raised.value.column == name


@pytest.mark.parametrize("missing_keys", ["error", "null", "drop"])
@pytest.mark.parametrize(
    "query",
    [
        "SELECT id, address.city FROM self WHERE address.city = 'c2' ORDER BY id",
        "SELECT s.address.geo.lon AS x, count(*) AS n FROM self s GROUP BY ALL ORDER BY 1",
        "SELECT a.id, b.address.city FROM self a JOIN self b USING (id) ORDER BY 1",
        "WITH x AS (SELECT address.city AS c FROM self) SELECT count(c) FROM x",
        "SELECT upper(address.city) AS c FROM self QUALIFY row_number() OVER (ORDER BY id) < 3",
        "SELECT address['city'] AS c, struct_extract(address.geo, 'lon') FROM self ORDER BY id",
        "SELECT phones[1].kind AS k, list_extract(phones, 2)['kind'] AS l FROM self ORDER BY id",
        "SELECT id FROM self WHERE address IS NULL AND len(phones) < 2 ORDER BY id",
    ],
)
def test_a_query_of_other_members_needs_no_key_of_the_hidden_ones(
    table: sb.Table, lake: Path, query: str, missing_keys: str
) -> None:
    with sb.open_table(lake, keys=KEYRING) as whole:
        wanted = whole.sql(query)
    assert table.sql(query, missing_keys=missing_keys).equals(wanted)


@pytest.mark.parametrize(
    ("query", "name"),
    [
        ("SELECT email FROM self WHERE address.city = 'c2'", "email"),
        ("SELECT tags FROM self WHERE address['city'] = 'c2'", "tags"),
        ("SELECT address.geo.lat FROM self WHERE phones[1].kind = 'home'", "address.geo.lat"),
        ("SELECT phones[1].number, address.city FROM self", "phones.element.number"),
    ],
)
def test_the_error_named_a_member_that_the_query_did_not_use(
    table: sb.Table, query: str, name: str
) -> None:
    with pytest.raises(KeyUnavailableError) as raised:
        table.sql(query)
    assert raised.value.column is not None
    assert raised.value.column.replace(".list.", ".").startswith(name)
    assert table.sql(f"{query} LIMIT 0").num_rows == 0


def test_a_query_of_a_column_that_is_left_out_says_so(table: sb.Table) -> None:
    for query in ("SELECT email FROM self", "SELECT address.zip FROM self"):
        with pytest.raises(PolicyError) as caught:
            table.sql(query, missing_keys="drop")
        assert "is missing, so it is left out" in str(caught.value.hint)


def test_a_table_without_its_hidden_columns_does_not_list_them(lake: Path) -> None:
    with sb.open_table(lake, keys=ANALYST, missing_keys="drop") as opened:
        shown = opened.read().schema
        assert opened.columns == shown.names == ["id", "address", "phones"]
        assert opened.schema == shown
        assert opened.read(columns=opened.columns).num_rows == 12
        assert "email" not in opened._repr_html_()


def test_a_query_without_the_hidden_members(table: sb.Table) -> None:
    query = "SELECT address.city AS c, count(*) AS n FROM self GROUP BY ALL ORDER BY ALL"
    judge = pa.table({"c": [_city(row) for row in TABLE.to_pylist()]}).group_by("c")
    judge = judge.aggregate([([], "count_all")]).sort_by("c")
    found = table.sql(query, missing_keys="drop")
    assert [*found.to_pydict().values()] == [*judge.to_pydict().values()]


def test_what_is_hidden_is_named(table: sb.Table) -> None:
    marks = {field.name: field.metadata for field in table.schema}
    assert marks == {
        "id": None,
        "email": {b"secure_bloom.hidden": b"email"},
        "address": {b"secure_bloom.hidden": b"address.geo.lat, address.zip"},
        "phones": {b"secure_bloom.hidden": b"phones.element.number"},
        "tags": {b"secure_bloom.hidden": b"tags"},
    }
    assert table.readable_columns == [
        "id",
        "address.city",
        "address.geo.lon",
        "phones.element.kind",
    ]
    assert table.read(columns=table.readable_columns).num_rows == 12
    report = table.explain(missing_keys="null")
    assert report.hidden == HIDDEN
    assert report.to_dict()["hidden"] == list(HIDDEN)
    assert f"hidden:     {', '.join(HIDDEN)}: their keys are missing" in str(report)
    one = table.explain(columns=["id", "email"], missing_keys="null")
    assert "hidden:     email: its key is missing" in str(one)
    assert "no key: address.geo.lat, address.zip" in table._repr_html_()
    shown = table.read(missing_keys="null").schema.field("email")
    assert shown.metadata == {b"secure_bloom.hidden": b"email"}


def test_a_column_that_is_left_out_cannot_be_asked_for(table: sb.Table) -> None:
    for name in ("email", "address.zip", "address.geo.lat", "phones.element.number", "tags"):
        with pytest.raises(KeyUnavailableError, match="the read leaves it out") as raised:
            table.read(columns=["id", name], missing_keys="drop")
        assert raised.value.column == name
        assert table.read(columns=["id", name], missing_keys="null").num_rows == 12


def test_a_column_is_hidden_if_one_file_hides_it(tmp_path: Path) -> None:
    """Otherwise a count of the column would silently be that of some files."""
    columns = {"k_pii": ["email"]}
    write(tmp_path / "a.parquet", TABLE.select(["id", "email"]), Mode.PLAIN)
    write(
        tmp_path / "b.parquet", TABLE.select(["id", "email"]), Mode.ENCRYPTED, column_keys=columns
    )
    found = sb.read_table(tmp_path, keys=ANALYST, missing_keys="null")
    assert found.num_rows == 24
    assert found.column("email").null_count == 24
    with pytest.raises(KeyUnavailableError, match="column email"):
        sb.read_table(tmp_path, where="email is not null", keys=ANALYST, missing_keys="null")


class _Down(Keyring):
    def unwrap_key(self, wrapped_key: str, master_key_identifier: str) -> bytes:
        if master_key_identifier == "k_pii":
            raise KmsUnavailableError("the KMS is down")
        return super().unwrap_key(wrapped_key, master_key_identifier)


class _Wrong:
    """A KMS whose key of that name is another one."""

    def unwrap_key(self, wrapped_key: str, master_key_identifier: str) -> bytes:
        keys = {**MASTER_KEYS, "k_pii": bytes(24)}
        return Keyring(master_keys=keys).unwrap_key(wrapped_key, master_key_identifier)

    def wrap_key(self, key_bytes: bytes, master_key_identifier: str) -> str:
        raise NotImplementedError


@pytest.mark.parametrize("missing_keys", ["null", "drop"])
@pytest.mark.parametrize("keys", [_Down(master_keys=MASTER_KEYS), _Wrong()], ids=["down", "wrong"])
def test_a_kms_that_is_down_and_a_wrong_key_hide_nothing(
    lake: Path, keys: sb.KmsClient, missing_keys: str
) -> None:
    with pytest.raises(SecureBloomError) as raised:
        sb.read_table(lake, keys=keys, missing_keys=missing_keys)
    assert "hidden" not in str(raised.value)


@pytest.mark.parametrize("missing_keys", ["null", "drop"])
def test_an_altered_module_hides_nothing(tmp_path: Path, missing_keys: str) -> None:
    """Of a column whose key is there, and of one beside a hidden one."""
    path = write(
        tmp_path / "x.parquet",
        TABLE.select(["id", "address"]),
        Mode.ENCRYPTED,
        column_keys={"k_pii": ["address.zip"], "k_footer": ["id"]},
        compression="none",
    )
    content = bytearray(path.read_bytes())
    # The pages of `id` come first: their ciphertext follows the magic, a length and a nonce.
    content[4 + 4 + 12 + 2] ^= 1
    path.write_bytes(content)
    with pytest.raises(IntegrityError):
        sb.read_table(path, keys=ANALYST, missing_keys=missing_keys)


def test_a_value_in_place_of_a_missing_column_does_not_show_for_a_hidden_one(
    tmp_path: Path,
) -> None:
    """A column that a file lacks may have a default; a hidden one is null in that file too."""
    write(tmp_path / "a.parquet", TABLE.select(["id"]), Mode.PLAIN)
    write(
        tmp_path / "b.parquet",
        TABLE.select(["id", "email"]),
        Mode.ENCRYPTED,
        column_keys={"k_pii": ["email"]},
    )
    found = sb.read_table(tmp_path, keys=ANALYST, missing_keys="null")
    assert found.column("email").null_count == found.num_rows == 24


def test_a_table_given_to_another_library_has_the_error_of_its_key(lake: Path) -> None:
    with sb.open_table(lake, keys=ANALYST) as table:
        for take in (pa.table, pl.DataFrame):
            with pytest.raises(KeyUnavailableError, match="column email") as caught:
                take(table)
            assert "missing_keys" in str(caught.value.hint)
    with sb.open_table(lake, keys=ANALYST, missing_keys="null") as table:
        assert pa.table(table).equals(table.read())


def test_the_command_line_names_hidden_columns(lake: Path, tmp_path: Path) -> None:
    keyring = tmp_path / "analyst.json"
    keyring.write_text(keyring_json({"k_footer": MASTER_KEYS["k_footer"]}))
    for verb in (
        ["read", str(lake), "--where", "id = 3"],
        ["sql", f"select * from '{lake}' where id = 3"],
    ):
        argv = [*verb, "--keyring", str(keyring), "--format", "jsonl"]
        assert run(*argv).returncode == 2
        done = run(*argv, "--missing-keys", "null")
        assert json.loads(done.stdout)["email"] is None
        assert "columns without a key are null: address.geo.lat, address.zip, email" in done.stderr
        done = run(*argv, "--missing-keys", "drop")
        assert list(json.loads(done.stdout)) == ["id", "address", "phones"]
        assert "columns without a key are left out" in done.stderr
    asked = f"select id, address.zip from '{lake}' where id = 3"
    done = run("sql", asked, "--keyring", str(keyring), "--missing-keys", "null")
    assert "columns without a key are null: address.zip\n" in done.stderr
    asked = f"select id from '{lake}' where id = 3"
    for mode in ("null", "drop"):
        done = run("sql", asked, "--keyring", str(keyring), "--missing-keys", mode)
        assert done.stdout == "id\n3\n"
        assert "without a key" not in done.stderr
    done = run("read", lake, "--keyring", keyring, "--missing-keys", "null", "--explain")
    assert "hidden:     address.geo.lat, address.zip, email" in done.stdout


def test_a_column_that_is_hidden_as_a_whole_has_its_own_name_in_the_note(tmp_path: Path) -> None:
    of = pa.table({"id": [1], "tags": [["a"]], "ad": [{"x": 1, "y": 2}]})
    secret = {"k_pii": ["tags.list.element", "ad.x", "ad.y"]}
    write(tmp_path / "t.parquet", of, Mode.ENCRYPTED, column_keys=secret)
    keyring = tmp_path / "analyst.json"
    keyring.write_text(keyring_json({"k_footer": MASTER_KEYS["k_footer"]}))
    for verb in (
        ["read", tmp_path / "t.parquet"],
        ["sql", f"select * from '{tmp_path}/t.parquet'"],
    ):
        done = run(*verb, "--keyring", keyring, "--missing-keys", "null")
        assert "columns without a key are null: ad, tags\n" in done.stderr, done.stderr


def test_the_expression_of_pyarrow_is_refused_too(lake: Path) -> None:
    with pytest.raises(KeyUnavailableError, match=r"column address\.zip"):
        sb.read_table(
            lake,
            where=pc.field("address", "zip").is_null(),
            keys=ANALYST,
            missing_keys="null",
        )
