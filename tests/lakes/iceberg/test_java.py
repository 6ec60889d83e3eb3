"""Iceberg's own Java library, by Spark SQL, reads the same rows after add, deletes included."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest
from pyiceberg.schema import Schema
from pyiceberg.table import Table
from pyiceberg.transforms import BucketTransform
from pyiceberg.types import (
    BinaryType,
    DateType,
    DecimalType,
    DoubleType,
    FixedType,
    FloatType,
    IntegerType,
    LongType,
    NestedField,
    StringType,
    TimestampType,
    TimestamptzType,
    UUIDType,
)

import secure_bloom as sb
from secure_bloom.encryption.policy_tables import ColumnRule
from testing.hadoop_catalog import HadoopCatalog, in_settings
from testing.iceberg_java import IcebergSpark, IcebergSparkError, relocated
from testing.tables import KEYRING
from tests.lakes.iceberg.tables import NAME, all_rows, data_files, entries, local, people, rows

# `make test-all` installs the library.  DuckDB and pyiceberg read the same rows in every run.
pytestmark = pytest.mark.slow

Rows = list[dict[str, Any]]
MERGE_ON_READ = {"write.delete.mode": "merge-on-read"}


class Lake:
    """A table that pyiceberg and Java share, and how each reads it."""

    def __init__(self, catalog: HadoopCatalog, spark: IcebergSpark) -> None:
        self.catalog, self._spark = catalog, spark
        self._name = spark.catalog(type="hadoop", warehouse=catalog.properties["warehouse"])

    @property
    def name(self) -> str:
        return f"{self._name}.db.people"

    def rows(self, more: str = "") -> Rows:
        return self._spark.sql(f"SELECT * FROM {self.name} {more} ORDER BY id")


@pytest.fixture(scope="session")
def iceberg_spark() -> Iterator[IcebergSpark]:
    """One process for all tests that ask Iceberg's Java library."""
    with IcebergSpark() as spark:
        yield spark


@pytest.fixture
def lake(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    iceberg_spark: IcebergSpark,
) -> Lake:
    return Lake(in_settings(tmp_path, monkeypatch), iceberg_spark)


def _data(table: Table) -> list[Path]:
    return [it for it in (local(table.location()) / "data").iterdir() if it.suffix == ".parquet"]


def _head(table: Table) -> int:
    snapshot = table.refresh().current_snapshot()
    assert snapshot is not None
    return snapshot.snapshot_id


def test_java_reads_the_same_rows_after_add(
    lake: Lake,
    iceberg_spark: IcebergSpark,
) -> None:
    """Position deletes and equality deletes are written by Java itself."""
    table = people(lake.catalog, **MERGE_ON_READ)
    iceberg_spark.sql(f"DELETE FROM {lake.name} WHERE id = 5")
    iceberg_spark.delete_equal(
        lake.name, "email", ["user7@example.org", "user150@example.org", "user250@example.org"]
    )
    table.refresh().append(rows(7, 1))  # comes after the delete, so it stays
    before, head = lake.rows(), _head(table)
    assert [row["id"] for row in before] == [i for i in range(300) if i not in {5, 150, 250}]
    report = sb.add_bloom_filters(NAME, columns=["email"])
    # A position delete names the first file, whose new file has one of its own.
    assert len(report.commits[0].files) == 4
    assert lake.rows() == before
    assert lake.rows(f"VERSION AS OF {head}") == before
    assert lake.rows(f"VERSION AS OF {report.commits[0].version}") == before
    location = table.refresh().metadata_location
    without_catalog = sorted(iceberg_spark.read(location), key=lambda row: row["id"])
    assert without_catalog == before
    assert sb.read_table(NAME).sort_by("id").to_pylist() == before


def test_java_reads_the_same_rows_after_changes_of_keys(
    lake: Lake, iceberg_spark: IcebergSpark
) -> None:
    """Java has no keys: it reads the old snapshots, and the files that are in clear again."""
    table = people(lake.catalog, **MERGE_ON_READ)
    iceberg_spark.sql(f"DELETE FROM {lake.name} WHERE id IN (5, 105, 7, 250)")
    iceberg_spark.delete_equal(lake.name, "city", ["nowhere"])
    before, head = lake.rows(), _head(table)
    assert len(before) == 296
    policy = sb.KeyPolicy(
        footer_key="k_footer", columns={"email": ColumnRule(path="email", key="k_pii")}
    )
    sb.reencrypt(NAME, policy=policy, keys=KEYRING, commit_every=2)
    assert sb.read_table(NAME, keys=KEYRING).sort_by("id").to_pylist() == before
    assert lake.rows(f"VERSION AS OF {head}") == before
    with pytest.raises(IcebergSparkError):
        lake.rows()
    # Its planning takes our manifests all the same, and counts what they say.
    (counted,) = iceberg_spark.sql(f"SELECT sum(record_count) AS n FROM {lake.name}.data_files")
    assert counted["n"] == 300
    sb.rotate_keys(NAME, policy=policy, keys=KEYRING, moves={"k_pii": "k_finance"})
    sb.decrypt(NAME, keys=KEYRING)
    assert lake.rows() == before
    iceberg_spark.sql(f"DELETE FROM {lake.name} WHERE id = 8")
    iceberg_spark.rewrite_manifests(lake.name)
    iceberg_spark.expire(lake.name)
    assert lake.rows() == [row for row in before if row["id"] != 8]
    assert len(table.refresh().snapshots()) == 1


@pytest.mark.slow
def test_java_deletes_and_writes_on(lake: Lake, iceberg_spark: IcebergSpark) -> None:
    """A table with our snapshots goes on to be written by Java, and by us after it."""
    table = people(lake.catalog, **MERGE_ON_READ)
    for low in (0, 100):
        sb.add_bloom_filters(NAME, columns=["email"], replace_filters=low > 0)
        iceberg_spark.sql(f"DELETE FROM {lake.name} WHERE id >= {low} AND id < {low + 10}")
        iceberg_spark.sql(f"INSERT INTO {lake.name} VALUES ({low}, 'new{low}', 'city')")
    expected = sorted({0, 100} | set(range(10, 100)) | set(range(110, 300)))
    assert [row["id"] for row in lake.rows()] == expected
    assert lake.rows() == all_rows(table)
    assert sb.read_table(NAME).sort_by("id").to_pylist() == lake.rows()


@pytest.mark.slow
def test_javas_maintenance_removes_the_old_files_alone(
    lake: Lake,
    iceberg_spark: IcebergSpark,
) -> None:
    """Java decides by the entries of manifests which files only old snapshots name."""
    table = people(lake.catalog, **MERGE_ON_READ)
    iceberg_spark.delete_equal(lake.name, "email", ["user150@example.org"])
    iceberg_spark.sql(f"DELETE FROM {lake.name} WHERE id = 5")
    before = lake.rows()
    (commit,) = sb.add_bloom_filters(NAME, columns=["email"]).commits
    numbers = iceberg_spark.sql(
        "SELECT sequence_number AS data, file_sequence_number AS file, status FROM "
        f"{lake.name}.entries WHERE data_file.content = 0 AND status < 2 ORDER BY data"
    )
    # The new files are of the sixth snapshot, with the rows of their first day.
    assert sorted((it["data"], it["file"]) for it in numbers) == [(1, 6), (2, 6), (3, 6)]
    sb.add_bloom_filters(NAME, columns=["city"])
    iceberg_spark.rewrite_manifests(lake.name)
    assert lake.rows() == before
    iceberg_spark.expire(lake.name)
    assert lake.rows() == before == sb.read_table(NAME).sort_by("id").to_pylist()
    assert len(table.refresh().snapshots()) == 1
    assert {local(path) for path in data_files(table)} <= set(_data(table))
    gone = [local(it.removed) for it in commit.files] + [local(it.added) for it in commit.files]
    assert not [path for path in gone if path.exists()]
    # Three data files and two of deletes.
    assert len(_data(table)) == 5


@pytest.mark.slow
def test_java_notices_that_a_file_of_its_delete_was_replaced(
    lake: Lake,
    iceberg_spark: IcebergSpark,
) -> None:
    """A delete by position that names a replaced file would delete nothing: it must fail."""
    table = people(lake.catalog)
    first, second, _ = data_files(table)
    iceberg_spark.plan_delete(lake.name, first, [0, 1])
    sb.add_bloom_filters(NAME, columns=["email"])
    with pytest.raises(IcebergSparkError, match="missing data files"):
        iceberg_spark.commit_delete()
    assert len(lake.rows()) == 300
    # Planned on what is there now, it is committed, also after an append.
    (new,) = (it for it in data_files(table) if local(second).stem in it)
    iceberg_spark.plan_delete(lake.name, new, [0, 1])
    table.refresh().append(rows(300, 1))
    iceberg_spark.commit_delete()
    assert len(lake.rows()) == 299


@pytest.mark.slow
def test_java_reads_partitions_and_schemas_of_their_time(
    lake: Lake,
    iceberg_spark: IcebergSpark,
) -> None:
    table = people(lake.catalog, files=2)
    with table.update_spec() as spec:
        spec.add_field("id", BucketTransform(2), "bucket")
    with table.update_schema() as schema:
        schema.rename_column("email", "mail")
        schema.add_column("age", IntegerType())
    # pyiceberg writes no buckets without its core in Rust.
    added = "SELECT id, concat('user', id, '@example.org'), 'city', 30 FROM range(200, 300)"
    iceberg_spark.sql(f"INSERT INTO {lake.name} {added}")
    iceberg_spark.delete_equal(lake.name, "mail", ["user3@example.org"])
    before = lake.rows()
    assert len(before) == 299
    report = sb.add_bloom_filters(NAME, columns=["mail", "id"])
    assert len(report.commits[0].files) == 4
    assert lake.rows() == before
    assert lake.rows("WHERE mail = 'user250@example.org' AND id = 250")[0]["id"] == 250


def _without_values(path: Path) -> None:
    """Overwrite the pages of a file's columns, so that who reads one fails."""
    group = pq.read_metadata(path).row_group(0)
    columns = [group.column(position) for position in range(group.num_columns)]
    content = bytearray(path.read_bytes())
    for column in columns:
        start, length = column.data_page_offset, column.total_compressed_size
        start = min(start, column.dictionary_page_offset or start)
        content[start : start + length] = bytes(length)
    path.write_bytes(content)


@pytest.mark.slow
def test_java_asks_our_filters_before_it_reads_pages(
    lake: Lake,
    iceberg_spark: IcebergSpark,
) -> None:
    # Java looks into dictionaries first, and writes none where this little is allowed for them.
    table = people(lake.catalog, files=0, **{"write.parquet.dict-size-bytes": "1"})
    iceberg_spark.sql(
        f"INSERT INTO {lake.name} SELECT /*+ REPARTITION(1) */ id, "
        "concat('user', id, '@example.org'), 'city' FROM range(100)"
    )
    table.refresh()
    absent = "WHERE email = 'user55x@example.org'"
    old = local(data_files(table)[0])
    sb.add_bloom_filters(NAME, columns=["email"])
    (new,) = map(local, data_files(table))
    _without_values(new)
    assert lake.rows(absent) == []
    # A value that is there is looked for in the pages.
    with pytest.raises(IcebergSparkError):
        lake.rows("WHERE email = 'user55@example.org'")
    # The same question to the file without filters: its pages are read.
    _without_values(old)
    before = table.refresh().snapshots()[0].snapshot_id
    with pytest.raises(IcebergSparkError):
        lake.rows(f"VERSION AS OF {before} {absent}")


#: Type of a column -> its value for a number, in Spark's SQL.
_VALUES = {
    "int": "cast({} as int)",
    "long": "cast({} as bigint)",
    "float": "cast({} as float)",
    "double": "cast({} as double)",
    "string": "concat('user', cast({} as string))",
    "binary": "cast(concat('user', cast({} as string)) as binary)",
    "fixed": "cast(lpad(cast({} as string), 8, '0') as binary)",
    "uuid": "concat('00000000-0000-0000-0000-', lpad(cast({} as string), 12, '0'))",
    "date": "date_add(date'2026-01-01', cast({} as int))",
    "timestamp": "cast(timestamp_seconds(1767225600 + {}) as timestamp_ntz)",
    "timestamptz": "timestamp_seconds(1767225600 + {})",
    "decimal9": "cast({} as decimal(9, 2))",
    "decimal18": "cast({} as decimal(18, 2))",
    "decimal38": "cast({} as decimal(38, 2))",
}
_TYPES = {
    "int": IntegerType(),
    "long": LongType(),
    "float": FloatType(),
    "double": DoubleType(),
    "string": StringType(),
    "binary": BinaryType(),
    "fixed": FixedType(8),
    "uuid": UUIDType(),
    "date": DateType(),
    "timestamp": TimestampType(),
    "timestamptz": TimestamptzType(),
    "decimal9": DecimalType(9, 2),
    "decimal18": DecimalType(18, 2),
    "decimal38": DecimalType(38, 2),
}


@pytest.mark.slow
def test_java_finds_every_value_of_every_type(
    lake: Lake,
    iceberg_spark: IcebergSpark,
) -> None:
    """Even numbers are there.  Of odd ones a filter says so, and no page is read."""
    fields = [
        NestedField(number, f"c_{name}", kind, required=False)
        for number, (name, kind) in enumerate(_TYPES.items(), 1)
    ]
    properties = {"format-version": "2", "write.parquet.dict-size-bytes": "1"}
    table = lake.catalog.create_table("db.people", Schema(*fields), properties=properties)
    values = ", ".join(value.format("id") for value in _VALUES.values())
    source = f"SELECT /*+ REPARTITION(1) */ {values} FROM range(0, 400, 2)"
    iceberg_spark.sql(f"INSERT INTO {lake.name} {source}")
    report = sb.add_bloom_filters(NAME, columns=[it.name for it in fields])
    assert len(report.files[0].filters) == len(fields)

    def found(name: str, number: int, at: str = "") -> int:
        where = f"c_{name} = {_VALUES[name].format(number)}"
        return len(iceberg_spark.sql(f"SELECT c_int FROM {lake.name} {at} WHERE {where}"))

    for name in _VALUES:
        assert [found(name, number) for number in range(0, 400, 40)] == [1] * 10, name
    (replaced,) = report.commits[0].files
    _without_values(local(replaced.removed))
    _without_values(local(replaced.added))
    first = f"VERSION AS OF {table.refresh().snapshots()[0].snapshot_id}"
    for name in _VALUES:
        assert [found(name, number) for number in (51, 151)] == [0, 0], name
        # The file without filters has to be read.
        with pytest.raises(IcebergSparkError):
            found(name, 51, first)


@pytest.mark.slow
def test_javas_own_rewrite_loses_equality_deletes_and_ours_keeps_them(
    lake: Lake,
    iceberg_spark: IcebergSpark,
) -> None:
    """RewriteFiles of Iceberg 1.10 drops a delete file as soon as all older files are replaced.

    The page on Iceberg tables warns of it.  If this fails, Java keeps them now: drop the warning.
    """
    table = people(lake.catalog, files=2)
    iceberg_spark.delete_equal(lake.name, "email", ["user5@example.org", "user150@example.org"])
    before = lake.rows()
    assert len(before) == 198
    sb.add_bloom_filters(NAME, columns=["email"])
    assert lake.rows() == before
    assert sum(it.data_file.content.value == 2 for it in entries(table)) == 1
    # Copies of the same files, by Java's operation: deleted rows come back.
    replaced = {}
    for path in data_files(table):
        copy = local(path).with_suffix(".copy.parquet")
        copy.write_bytes(local(path).read_bytes())
        replaced[path] = copy.as_uri()
    iceberg_spark.rewrite(lake.name, replaced)
    assert len(lake.rows()) == 200


@pytest.mark.slow
def test_a_streaming_reader_goes_on_over_our_snapshot(
    lake: Lake,
    iceberg_spark: IcebergSpark,
    tmp_path: Path,
) -> None:
    table = people(lake.catalog)
    found = iceberg_spark.stream(lake.name, tmp_path / "checkpoint")
    assert sorted(row["id"] for row in found) == list(range(300))
    sb.add_bloom_filters(NAME, columns=["email"])
    assert iceberg_spark.stream(lake.name, tmp_path / "checkpoint") == []
    table.refresh().append(rows(300, 5))
    found = iceberg_spark.stream(lake.name, tmp_path / "checkpoint")
    assert sorted(row["id"] for row in found) == list(range(300, 305))
    # A reader that begins now sees each row once, too.
    found = iceberg_spark.stream(lake.name, tmp_path / "another")
    assert sorted(row["id"] for row in found) == list(range(305))
    # What the reader does not pass over: an operation `overwrite`, here of pyiceberg.
    table.refresh().delete("id = 3")
    with pytest.raises(IcebergSparkError, match="overwrite snapshot"):
        iceberg_spark.stream(lake.name, tmp_path / "checkpoint")


def test_names_in_a_class_file_are_relocated() -> None:
    """A constant pool with a text, a long, which takes two numbers, and a class of Jackson."""
    head, name = b"\xca\xfe\xba\xbe\x00\x00\x00\x41", b"Lcom/fasterxml/jackson/core/Version;"
    new = name.replace(b"Lcom", b"Lorg/apache/iceberg/shaded/com")
    rest = b"\x05" + bytes(8) + b"\x07\x00\x01" + b"the code com/fasterxml/jackson/"

    def pool(text: bytes) -> bytes:
        return b"\x00\x05\x01" + len(text).to_bytes(2, "big") + text + rest

    assert relocated(head + pool(name)) == head + pool(new)
