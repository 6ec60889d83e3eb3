"""DuckDB judges our filters, we judge its: the same rows, the same verdicts, the same bits."""

from __future__ import annotations

import json
import os
import struct
import subprocess
import sys
from collections.abc import Iterator
from datetime import datetime, timedelta
from decimal import Decimal
from itertools import product
from pathlib import Path
from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.parquet as pq
import pyarrow.parquet.encryption as pe
import pytest

import secure_bloom as sb
import secure_bloom.adding.preflight
import secure_bloom.adding.rewrite_plan
from secure_bloom.encryption.kms import ExplicitKeys
from secure_bloom.errors import IntegrityError, UnsupportedFeatureError
from secure_bloom.parquet.structures.metadata import ConvertedType
from testing.columns import CASES_IN_TURNS, COLUMNS, DICTIONARY, Column
from testing.compatibility import MOMENTS, Claim, Compatibility, Shown, Sighting
from testing.table_readers import DUCKDB
from testing.thrift.metadata import SchemaElement
from testing.typed_files import (
    TypedFile,
    add_filter,
    declare,
    filters_of,
    folded_to,
    our_verdicts,
    typed_file,
)

if TYPE_CHECKING:
    import duckdb
else:
    duckdb = pytest.importorskip("duckdb")

#: Types whose filters DuckDB leaves alone: it excludes nothing, so there is no verdict to compare.
LEFT_ALONE = ("INT96", "BYTE_ARRAY decimal", "FIXED_LEN_BYTE_ARRAY decimal")


@pytest.fixture(scope="module")
def database() -> Iterator[duckdb.DuckDBPyConnection]:
    with duckdb.connect() as connection:
        connection.execute("SET timezone = 'UTC'")
        connection.execute("SET threads = 1")
        yield connection


def _rows(database: duckdb.DuckDBPyConnection, path: Path) -> list[tuple]:
    return database.execute(f"SELECT x::VARCHAR FROM '{path}'").fetchall()


def _found(database: duckdb.DuckDBPyConnection, file: TypedFile, numbers: list[int]) -> list[int]:
    """How many rows an equality lookup of each value finds."""
    lookups = [
        f"(SELECT count(*) FROM '{file.path}' WHERE {file.column.lookup.format(literal)})"
        for literal in map(file.column.literal, numbers)
    ]
    return list(database.execute(f"SELECT {', '.join(lookups)}").fetchone())


def _verdicts(
    database: duckdb.DuckDBPyConnection, file: TypedFile, numbers: list[int]
) -> list[list[str]]:
    """Per value, DuckDB's verdict in each row group."""
    probes = [
        f"SELECT list(if(bloom_filter_excludes, 'absent', 'maybe') ORDER BY row_group_id)"
        f" FROM parquet_bloom_probe('{file.path}', '{file.column.leaf}', {literal})"
        for literal in map(file.column.literal, numbers)
    ]
    return [verdicts for (verdicts,) in database.execute(" UNION ALL ".join(probes)).fetchall()]


def _expected(file: TypedFile, numbers: list[int]) -> list[list[str]]:
    """Our verdicts; of a FLOAT16 those for the FLOAT that DuckDB looks up in its place."""
    if file.column.logical != "FLOAT16":
        return our_verdicts(file, numbers)
    filters = filters_of(file.path)
    forms = [_as_floats(file.column.stored(n)) for n in numbers]
    return [["maybe" if any(map(f.check, form)) else "absent" for f in filters] for form in forms]


def _as_floats(value: float) -> set[bytes]:
    """The bytes of a FLOAT; DuckDB, as we do, takes a zero for both zeros."""
    signs = (value, -value) if value == 0 else (value,)
    return {struct.pack("<f", sign) for sign in signs}


@pytest.mark.parametrize(("column", "encoding"), CASES_IN_TURNS)
def test_duckdb_agrees(
    tmp_path: Path,
    database: duckdb.DuckDBPyConnection,
    compatibility: Compatibility,
    column: Column,
    encoding: str,
) -> None:
    file = typed_file(tmp_path, column, encoding)
    place = {"type": column.name, "encoding": encoding, "mode": "plain", "reader": "DuckDB"}
    try:
        rows = _rows(database, file.path)
    except duckdb.Error:
        compatibility.record(Claim(**place, shown=Shown.NOT_READ))
        return
    sample = file.sample(12)
    found = _found(database, file, sample)
    assert all(found)
    add_filter(file)
    assert _rows(database, file.path) == rows
    compatibility.record(Claim(**place, shown=Shown.ROWS))
    assert _found(database, file, sample) == found
    compatibility.record(Claim(**place, shown=Shown.LOOKUPS))
    if _can_be_asked(column):
        _check_verdicts(database, file, sample + column.values(0, 24, absent=True))
        compatibility.record(Claim(**place, shown=Shown.VERDICTS))


def _can_be_asked(column: Column) -> bool:
    """Whether `parquet_bloom_probe` takes the column, which must not be nested, and its type.

    DuckDB does not read BSON at all.
    """
    return column.leaf == "x" and not column.name.startswith((*LEFT_ALONE, "BYTE_ARRAY BSON"))


def _check_verdicts(
    database: duckdb.DuckDBPyConnection, file: TypedFile, numbers: list[int]
) -> None:
    ours = _expected(file, numbers)
    assert _verdicts(database, file, numbers) == ours
    absent = [verdict for verdicts in ours[-24:] for verdict in verdicts]
    # Without false positives the bits could differ unnoticed.
    assert 0 < absent.count("maybe") < len(absent) / 4


@pytest.mark.slow
@pytest.mark.parametrize(
    "column", list(filter(_can_be_asked, COLUMNS)), ids=lambda column: column.name.replace(" ", "_")
)
def test_duckdb_agrees_on_very_many_values(
    tmp_path: Path, database: duckdb.DuckDBPyConnection, column: Column
) -> None:
    file = typed_file(tmp_path, column, DICTIONARY, row_groups=128)
    add_filter(file)
    absent = column.values(0, min(300, column.distinct // 2), absent=True)
    present = file.sample(300)
    assert all(count for count in _found(database, file, present))
    _check_verdicts(database, file, present + absent)


#: What DuckDB writes with its own filters, as SQL over a number i.
WRITTEN = {
    "TINYINT": "(i % 250 - 125)::TINYINT",
    "USMALLINT": "(i * 7 + 30000)::USMALLINT",
    "INTEGER": "(i * 7919 - 9999999)::INTEGER",
    "UINTEGER": "(i * 7919 + 2147000000)::UINTEGER",
    "BIGINT": "i * 7919 - 9999999",
    "UBIGINT": "(i * 7919)::UBIGINT + 9223372036854770000::UBIGINT",
    "FLOAT": "((i + 1) / 7)::FLOAT",
    "DOUBLE": "(i + 1) / 7",
    "VARCHAR": "'value ' || i",
    "BLOB": "encode('value ' || i)",
}


@pytest.mark.parametrize(("sql", "value"), WRITTEN.items(), ids=WRITTEN)
def test_what_duckdb_writes_holds_the_bits_that_we_would_write(
    tmp_path: Path, database: duckdb.DuckDBPyConnection, sql: str, value: str
) -> None:
    path = tmp_path / "x.parquet"
    # Each value often, so that DuckDB makes a dictionary, without which it writes no filter.
    database.execute(
        f"COPY (SELECT {value} AS x FROM (SELECT n % 900 AS i FROM range(9000) r(n))) TO '{path}'"
        " (ROW_GROUP_SIZE 4096, DICTIONARY_SIZE_LIMIT 4096,"
        " BLOOM_FILTER_FALSE_POSITIVE_RATIO 0.1)"
    )
    theirs = filters_of(path)
    _check_their_verdicts(database, path, sql, value)
    sb.add_bloom_filters(path, columns={"x": sb.BloomFilterOptions(fpp=1e-4)}, replace_filters=True)
    assert len(theirs) > 1
    assert folded_to(theirs, filters_of(path)) == theirs


def _check_their_verdicts(
    database: duckdb.DuckDBPyConnection, path: Path, sql: str, value: str
) -> None:
    for start, is_present in ((0, True), (100_000, False)):
        if sql in ("TINYINT", "USMALLINT") and not is_present:
            start = 905
        cells = database.execute(
            f"SELECT DISTINCT {value} AS x FROM range({start}, {start + 60}) r(i)"
        ).fetchall()
        (probed,) = sb.probe(path, "x", [cell for (cell,) in cells]).files
        for (cell,) in cells:
            theirs = database.execute(
                f"SELECT bloom_filter_excludes FROM parquet_bloom_probe('{path}', 'x', ?::{sql})"
                " ORDER BY row_group_id",
                [cell],
            ).fetchall()
            ours = [group.verdicts[cell] == "absent" for group in probed.row_groups]
            assert ours == [excludes for (excludes,) in theirs]


#: Types in which DuckDB looks for other bytes than are stored: `=` would lose rows.
MISLEADING = {
    "INTERVAL": pa.array([(i).to_bytes(4, "little") * 3 for i in range(99)], pa.binary(12)),
    "DECIMAL of 60 digits": pa.array(map(Decimal, range(99)), pa.decimal256(60, 2)),
}


@pytest.mark.parametrize("kind", MISLEADING)
def test_a_filter_that_would_mislead_duckdb_is_refused(tmp_path: Path, kind: str) -> None:
    path = tmp_path / "x.parquet"
    pq.write_table(pa.table({"x": MISLEADING[kind]}), path, store_schema=False)
    if kind == "INTERVAL":
        declare(path, _as_interval)
    before = path.read_bytes()
    with pytest.raises(sb.UnsupportedFeatureError, match=f"{kind}.*could lose rows"):
        sb.add_bloom_filters(path, columns=["x"])
    assert path.read_bytes() == before


def _as_interval(element: SchemaElement) -> None:
    element.converted_type = ConvertedType.INTERVAL


NUMBERS = range(0, 3000, 7)
#: Conditions on other types than the column's, over expressions, and in lists; of 7 * i.
CONDITIONS = [
    "i + 1 = 71",
    "i::VARCHAR = '70'",
    "i = 70::DOUBLE",
    "i IN (70, 77, 78)",
    "i = 70 OR i = 77",
    "i IS NOT DISTINCT FROM 70",
    "i IN (SELECT 70)",
    "i::DECIMAL(20, 2) = 70.00",
    "lower(s) = 'v70'",
    "s COLLATE NOCASE = 'v70'",
    "s = 'V70' COLLATE NOACCENT",
    "s::BLOB = 'V70'::BLOB",
    "f = 10",
    "f::FLOAT = 10::FLOAT",
    "d = 7",
    "d = 7.00::DECIMAL(18, 2)",
    "d::DOUBLE = 7",
    "t::DATE = '2020-01-03'",
    "t = '2020-01-03 22:00:00'::TIMESTAMP_NS",
    "t = '2020-01-03 22:00:00+00'::TIMESTAMPTZ",
    "date_trunc('day', t) = '2020-01-03'",
]


def test_conditions_of_every_kind_find_the_same(
    tmp_path: Path, database: duckdb.DuckDBPyConnection
) -> None:
    path = tmp_path / "x.parquet"
    table = pa.table(
        {
            "i": pa.array(NUMBERS, pa.int64()),
            "s": [f"V{i}" for i in NUMBERS],
            "f": [i / 7 for i in NUMBERS],
            "d": pa.array([Decimal(i) / 10 for i in NUMBERS], pa.decimal128(18, 1)),
            "t": [datetime(2020, 1, 1) + timedelta(hours=i) for i in NUMBERS],
        }
    )
    pq.write_table(table, path, row_group_size=40, store_decimal_as_integer=True)
    columns = ", ".join(f"count(*) FILTER ({condition})" for condition in CONDITIONS)
    wanted = list(database.execute(f"SELECT {columns} FROM '{path}'").fetchone())
    assert all(wanted)
    sb.add_bloom_filters(path, columns=table.column_names)
    found = [
        database.execute(f"SELECT count(*) FROM '{path}' WHERE {condition}").fetchone()[0]
        for condition in CONDITIONS
    ]
    assert found == wanted


MIXED = {
    "long and int": (pa.int64(), pa.int32()),
    "int and long": (pa.int32(), pa.int64()),
    "double and float": (pa.float64(), pa.float32()),
    "double and int": (pa.float64(), pa.int32()),
    "text and int": (pa.string(), pa.int32()),
    "bytes and text": (pa.binary(), pa.string()),
}


@pytest.mark.parametrize("kinds", MIXED.values(), ids=MIXED)
def test_files_of_mixed_types_are_looked_up_by_their_own(
    tmp_path: Path, database: duckdb.DuckDBPyConnection, kinds: tuple[pa.DataType, pa.DataType]
) -> None:
    for kind in kinds:
        numbers = pa.array(NUMBERS, pa.int64())
        array = numbers.cast(kind) if kind != pa.binary() else numbers.cast("string").cast(kind)
        pq.write_table(
            pa.table({"x": array}), tmp_path / f"{len(list(tmp_path.iterdir()))}.parquet"
        )
    assert not sb.add_bloom_filters(tmp_path, columns=["x"]).failed
    literal = "'70'" if kinds[0] in (pa.string(), pa.binary()) else "70"
    found = database.execute(f"SELECT x FROM '{tmp_path}/*.parquet' WHERE x = {literal}").fetchall()
    assert len(found) == 2


def test_a_file_that_duckdb_encrypted_is_not_called_tampered_with(tmp_path: Path) -> None:
    """Its modules have no AAD, which the format prescribes."""
    path, key = tmp_path / "x.parquet", b"footer-key-16byt"
    with duckdb.connect() as database:
        database.execute("SET force_mbedtls_unsafe = 'true'")
        database.execute(f"PRAGMA add_parquet_key('k', '{key.decode()}')")
        database.execute(
            f"COPY (SELECT range AS a FROM range(10)) TO '{path}' "
            "(ENCRYPTION_CONFIG {footer_key: 'k'})"
        )
    keys, policy = ExplicitKeys(footer=key), sb.KeyPolicy(footer_key="k", columns={})
    with pytest.raises(UnsupportedFeatureError, match="without the AAD"):
        sb.read_table(path, keys=keys)
    findings = sb.audit(path, policy=policy, keys=keys).findings
    assert "unchecked-feature" in {finding.id for finding in findings}
    assert "not-authentic" not in {finding.id for finding in findings}
    other = ExplicitKeys(footer=bytes(16))
    with pytest.raises(IntegrityError):
        sb.read_table(path, keys=other)


_FOOTER_KEY = "footer-key-16byt"


def _encrypted(path: Path, *, pages: str, footer: str) -> None:
    """Write columns ``x`` and ``n``, encrypted with keys that no KMS wraps."""
    many, version = pages.startswith("several"), "2.0" if "version 2" in pages else "1.0"
    properties = pe.create_encryption_properties(
        footer_key=_FOOTER_KEY.encode(), plaintext_footer=footer == "signed"
    )
    rows = pa.table({"x": [f"user{n}" for n in range(1000)], "n": pa.array(range(1000))})
    pq.write_table(
        rows,
        path,
        encryption_properties=properties,
        data_page_version=version,
        write_batch_size=64,
        data_page_size=256 if many else 1 << 20,
        use_dictionary="dictionary" in pages,
    )


def _read_by_duckdb(path: Path, column: str) -> Shown:
    # A connection of its own: some of these files leave DuckDB's in an error that does not end.
    with duckdb.connect() as connection:
        connection.execute(f"PRAGMA add_parquet_key('k', '{_FOOTER_KEY}')")
        source = f"read_parquet('{path}', encryption_config = {{footer_key: 'k'}})"
        try:
            rows = connection.execute(f"SELECT {column} FROM {source}").fetchall()
        except duckdb.Error:
            return Shown.NOT_READ
    assert len(rows) == 1000
    assert len(set(rows)) == 1000
    return Shown.ROWS


@pytest.mark.parametrize(
    ("footer", "pages"),
    [
        ("encrypted", "one of version 1"),
        ("encrypted", "a dictionary and one of version 1"),
        ("encrypted", "several of version 1"),
        ("signed", "one of version 1"),
    ],
)
def test_duckdb_and_a_column_of_an_encrypted_file(
    tmp_path: Path, compatibility: Compatibility, footer: str, pages: str
) -> None:
    path = tmp_path / "x.parquet"
    _encrypted(path, footer=footer, pages=pages)
    keys = ExplicitKeys(footer=_FOOTER_KEY.encode())
    seen = [_read_by_duckdb(path, "x")]
    report = sb.add_bloom_filters(path, columns=["x"], keys=keys)
    assert not report.failed
    seen += [_read_by_duckdb(path, column) for column in ("x", "n")]
    for moment, shown in zip(MOMENTS, seen, strict=True):
        compatibility.record(Sighting(footer, pages, moment, shown))
    # Whatever is lost for DuckDB, the run said so.
    assert any("DuckDB" in note for note in report.notes)


def test_a_policy_can_say_that_duckdb_reads_the_files(tmp_path: Path) -> None:
    _encrypted(tmp_path / "x.parquet", footer="encrypted", pages="one")
    before = (tmp_path / "x.parquet").read_bytes()
    policy = tmp_path / "policy.toml"
    policy.write_text("[readers]\nduckdb = true\n[columns.x]\nbloom = true\n")
    keys = ExplicitKeys(footer=_FOOTER_KEY.encode())
    for columns in (None, ["x"]):
        report = sb.add_bloom_filters(tmp_path, columns=columns, policy=policy, keys=keys)
        [failed] = report.failed
        assert "DuckDB cannot read" in failed.error
        assert "[readers]" in failed.hint
    assert (tmp_path / "x.parquet").read_bytes() == before
    assert _read_by_duckdb(tmp_path / "x.parquet", "x") is Shown.ROWS


def test_files_in_clear_get_filters_where_duckdb_reads(tmp_path: Path) -> None:
    pq.write_table(pa.table({"x": ["a", "b"]}), tmp_path / "x.parquet")
    policy = tmp_path / "policy.toml"
    policy.write_text("[readers]\nduckdb = true\n[columns.x]\nbloom = true\n")
    [file] = sb.add_bloom_filters(tmp_path, policy=policy).files
    assert (file.status, file.notes) == ("added", ())


_BLOBS = [bytes([n, 255 - n, 0x80 | n % 128]) for n in range(1, 200)]
_COUNT_LOST = """
import json, sys, duckdb
paths, blobs = json.load(sys.stdin)
with duckdb.connect() as connection:
    lost = 0
    for path in paths:
        for blob in blobs:
            query = f"SELECT count(*) FROM '{path}' WHERE x = ?"
            lost += connection.execute(query, [bytes.fromhex(blob)]).fetchall() == [(0,)]
print(duckdb.__version__, lost)
"""


def _lost_blobs(paths: list[Path], **environment: str) -> tuple[str, int]:
    """The version of DuckDB, and how many of the values it does not find in the files."""
    done = subprocess.run(
        [sys.executable, "-c", _COUNT_LOST],
        input=json.dumps([list(map(str, paths)), [blob.hex() for blob in _BLOBS]]),
        env={**os.environ, **environment},
        capture_output=True,
        text=True,
        check=True,
    )
    version, lost = done.stdout.split()
    return version, int(lost)


def test_binary_values_are_found_by_duckdb_before_2_too(tmp_path: Path) -> None:
    paths = []
    for kind, dictionary in product([pa.binary(), pa.binary(3)], [False, True]):
        paths.append(tmp_path / f"{len(paths)}.parquet")
        rows = pa.table({"x": pa.array(_BLOBS, kind)})
        pq.write_table(rows, paths[-1], use_dictionary=dictionary, row_group_size=50)
        sb.add_bloom_filters(paths[-1], columns=["x"])
    assert _lost_blobs(paths) == (duckdb.__version__, 0)
    if not DUCKDB.is_dir():
        pytest.skip("needs an older DuckDB beside the environment")
    assert _lost_blobs(paths, PYTHONPATH=str(DUCKDB)) == ("1.5.5", 0)


def test_a_filter_of_intervals_would_lose_rows_in_files_of_duckdb_itself(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Why INTERVAL is refused; if this fails, the refusal can be lifted."""
    path = tmp_path / "x.parquet"
    with duckdb.connect() as connection:
        connection.execute(
            "CREATE TABLE wanted AS SELECT n, to_months(n % 13) + to_days(n) + to_hours(n) AS x "
            "FROM (SELECT unnest(range(1, 60))::INT AS n)"
        )
        connection.execute(f"COPY wanted TO '{path}' (FORMAT parquet)")
        texts = connection.execute("SELECT x::VARCHAR FROM wanted").fetchall()

        def found() -> int:
            query = f"SELECT count(*) FROM '{path}' WHERE x = INTERVAL "
            return sum(
                connection.execute(f"{query} '{text}'").fetchall() != [(0,)] for (text,) in texts
            )

        assert found() == len(texts)
        with pytest.raises(UnsupportedFeatureError, match="INTERVAL"):
            sb.add_bloom_filters(path, columns=["x"], replace_filters=True)
        for module in (secure_bloom.adding.rewrite_plan, secure_bloom.adding.preflight):
            monkeypatch.setattr(module, "require_filterable", lambda _leaf: None)
        sb.add_bloom_filters(path, columns=["x"], replace_filters=True)
        assert found() < len(texts)
