"""The data source beside Spark's own reader: the same rows of the same table, without the JVM."""

from __future__ import annotations

import base64
import functools
import json
import math
import pickle
import re
import shutil
from collections.abc import Callable, Iterator, Sequence
from decimal import Decimal
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyspark.sql import datasource as sd
from pyspark.sql.types import StructType

import secure_bloom as sb
from secure_bloom.errors import (
    FileChangedError,
    PolicyError,
    SecureBloomError,
    UnsupportedFeatureError,
)
from secure_bloom.spark import register
from secure_bloom.spark.source import PushdownSource, SecureBloomSource, SourcePartition
from testing.columns import COLUMNS, Column
from testing.spark.cluster import POLICY, Cluster
from testing.spark.parquet_java import PLAIN_WRITE, forget_keys
from testing.surgery import assert_tells_no_secret, flip, opened
from testing.tables import KEYRING, MASTER_KEYS, customers, keyring_json, read
from testing.tables import Mode as ArrowMode
from testing.tables import write as write_file
from testing.typed_files import typed_file
from tests.spark.typed_tables import Mode, data_files, write
from tests.spark.versions import since_4_1

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession


pytestmark = pytest.mark.spark

#: A session that ends before a better compiler would pay for itself.
_INSTANT = pa.timestamp("us", "UTC")
#: Types that Spark's own reader refuses.
REFUSED = {
    "INT32 time ms",
    "INT64 time us UTC",
    "INT64 timestamp ns",
    "INT64 timestamp ns UTC",
    "FIXED_LEN_BYTE_ARRAY FLOAT16",
    "FIXED_LEN_BYTE_ARRAY UUID",
}


@pytest.fixture(scope="module", autouse=True)
def registered(spark: SparkSession) -> Iterator[None]:
    """The data source with Spark's filters, in a session in UTC that has the type TIME.

    Spark's own reader judges no row groups: what it says of NaN in their statistics is not so.
    """
    register(spark, push_filters=True)
    settings = {
        "spark.sql.session.timeZone": "UTC",
        "spark.sql.timeType.enabled": "true",
        "spark.sql.parquet.filterPushdown": "false",
    }
    for name, value in settings.items():
        spark.conf.set(name, value)
    yield
    for name in (*settings, "spark.sql.python.filterPushdown.enabled"):
        spark.conf.unset(name)


@pytest.fixture(scope="module")
def keyring(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A keyring file with the keys of ``testing.tables``."""
    path = tmp_path_factory.mktemp("keys") / "keyring.json"
    path.write_text(keyring_json())
    path.chmod(0o600)
    return path


@pytest.fixture
def other_keys(spark: SparkSession, keyring: Path) -> Iterator[None]:
    """The JVM with the keys of ``testing.tables``."""
    forget_keys(spark)
    spark.conf.set("secure_bloom.keyring", str(keyring))
    yield
    spark.conf.unset("secure_bloom.keyring")
    forget_keys(spark)


def ours(spark: SparkSession, *paths: Path, **options: str) -> DataFrame:
    if "keyring" not in options:
        # Many tables here are in clear, or signed: what they hold is the point.
        options = {"policy": str(POLICY), "allowUnprotected": "true", **options}
    return spark.read.format("secure_bloom").options(**options).load(list(map(str, paths)))


def rows_of(df: DataFrame) -> list[str]:
    """The rows in an order of their own; NaN is a text here, which equals itself."""
    return sorted(map(repr, df.collect()))


def assert_same(load: Callable[[], DataFrame], native: DataFrame, *questions: str) -> None:
    """The same columns, and the same rows for each question.

    Spark's own reader answers all questions in one query, in a column each.
    """
    assert load().schema == native.schema
    questions = ("true", *questions)
    answers = (f"({question}) IS TRUE AS `answer {i}`" for i, question in enumerate(questions))
    rows = [tuple(row) for row in native.selectExpr("*", *answers).collect()]
    width = len(native.columns)
    for i, question in enumerate(questions):
        wanted = sorted(repr(row[:width]) for row in rows if row[width + i])
        # Loaded anew, as filters that are pushed demand it.
        assert sorted(repr(tuple(row)) for row in load().where(question).collect()) == wanted, (
            question
        )


def check(spark: SparkSession, table: Path, *questions: str) -> None:
    """The same from both readers, of a table under the policy's keys or in clear."""
    assert_same(lambda: ours(spark, table), spark.read.parquet(str(table)), *questions)


class TestTypes:
    @pytest.mark.parametrize(
        "mode",
        [
            Mode.ENCRYPTED,
            # `test_what_pyarrow_writes_in_every_mode` reads these too.
            pytest.param(Mode.SIGNED, marks=pytest.mark.slow),
            pytest.param(Mode.UNIFORM, marks=pytest.mark.slow),
        ],
    )
    def test_what_spark_writes_in_every_mode(
        self, spark: SparkSession, tmp_path: Path, mode: Mode
    ) -> None:
        table = write(spark, tmp_path / "t", mode=mode, rows=600)
        assert not sb.add_bloom_filters(
            table, columns=["text", "i64", "day"], policy=POLICY, allow_unprotected=True
        ).failed
        questions = [
            "text = 'user10@example.com' and dec_int32 < 20",
            "i64 in (10000030, 20000060, 3) and f64 > 0",
            "day >= date'1972-01-01' or dec_fixed = 12.25",
        ]
        check(spark, table, *questions)

    @pytest.mark.usefixtures("other_keys")
    @since_4_1
    @pytest.mark.parametrize(
        "mode",
        [
            pytest.param(mode, marks=[pytest.mark.slow] * (mode is not ArrowMode.ENCRYPTED))
            for mode in ArrowMode
        ],
    )
    def test_what_pyarrow_writes_in_every_mode(
        self, spark: SparkSession, tmp_path: Path, keyring: Path, mode: ArrowMode
    ) -> None:
        columns = [c for c in COLUMNS if c.name not in REFUSED and c.declare is None]
        # INT96 is an option of the whole file, which other timestamps would not survive.
        columns = [c for c in columns if c.name != "INT96 timestamp" and c.name != "INT64 time ns"]
        rows = {f"c{i}": c.array([*c.values(0, 60), None]) for i, c in enumerate(columns)}
        path = write_file(
            tmp_path / "0.parquet",
            pa.table(rows),
            mode,
            column_keys={"k_pii": ["c0", "c1"]},
            row_group_size=13,
        )
        assert_same(
            lambda: ours(spark, path, keyring=str(keyring)),
            spark.read.parquet(str(path)),
            "c2 is null",
            "c0 < 0",
        )

    @pytest.mark.slow
    @pytest.mark.parametrize("column", COLUMNS, ids=lambda column: column.name.replace(" ", "_"))
    def test_each_type_alone(self, spark: SparkSession, tmp_path: Path, column: Column) -> None:
        file = typed_file(tmp_path, column, column.encodings[0], row_groups=2)
        if column.name in REFUSED:
            with pytest.raises(Exception, match="column x") as caught:
                ours(spark, file.path)
            assert "UnsupportedFeatureError" in str(caught.value)
            return
        # The vectorized reader of Spark 4.3 fails on decimals of 9 digits in a BYTE_ARRAY.
        is_odd = column.name == "BYTE_ARRAY decimal(9, 2)"
        spark.conf.set("spark.sql.parquet.enableVectorizedReader", str(not is_odd).lower())
        check(spark, file.path, "x is null", "x is not null")
        spark.conf.unset("spark.sql.parquet.enableVectorizedReader")

    @pytest.mark.parametrize(
        ("left", "right"),
        [
            pytest.param(
                pa.array([1, 2**31 - 1], pa.int32()),
                pa.array([Decimal("1.50"), None]),
                marks=pytest.mark.slow,
            ),
            (pa.array([-(2**63), None]), pa.array([2**64 - 1, 5], pa.uint64())),
            pytest.param(
                pa.array([0.1, 2.0], pa.float32()),
                pa.array([0.1, 2.0]),
                marks=pytest.mark.slow,
            ),
            pytest.param(
                pa.array([b"abc"], pa.binary(3)),
                pa.array([b"abc", b"d"]),
                marks=pytest.mark.slow,
            ),
            pytest.param(
                pa.array([1, 2**40], pa.timestamp("ms", "UTC")),
                pa.array([7], _INSTANT),
                marks=pytest.mark.slow,
            ),
        ],
        ids=lambda of: str(of.type),
    )
    def test_files_that_differ_are_joined_as_spark_joins_tables(
        self, spark: SparkSession, tmp_path: Path, left: pa.Array, right: pa.Array
    ) -> None:
        """Spark's own reader takes one file's type for all, and fails at the others."""
        for name, array in (("a", left), ("b", right)):
            pq.write_table(pa.table({"x": array}), tmp_path / f"{name}.parquet", row_group_size=1)
        one, other = (spark.read.parquet(str(tmp_path / f"{n}.parquet")) for n in "ab")
        questions = ["x = 0.1D", "x >= 2", "x is null"] if pa.types.is_floating(right.type) else []
        assert_same(lambda: ours(spark, tmp_path), one.union(other), *questions, "x is not null")

    @pytest.mark.parametrize(
        ("left", "right", "message"),
        [
            (pa.int64(), pa.float64(), r"column x: it is int64 in .*a.parquet and double here"),
            (pa.decimal128(38, 2), pa.decimal128(38, 10), "that Spark does not have"),
        ],
        ids=str,
    )
    def test_types_with_nothing_in_common_are_refused(
        self, tmp_path: Path, left: pa.DataType, right: pa.DataType, message: str
    ) -> None:
        for name, of in (("a", left), ("b", right)):
            pq.write_table(pa.table({"x": pa.array([1], of)}), tmp_path / f"{name}.parquet")
        with pytest.raises(SecureBloomError, match=message):
            SecureBloomSource({"path": str(tmp_path)}).schema()

    def test_a_float_is_compared_with_a_double_as_spark_does(
        self, spark: SparkSession, tmp_path: Path
    ) -> None:
        path = tmp_path / "x.parquet"
        pq.write_table(pa.table({"f": pa.array([0.1, 0.5, 0.7], pa.float32())}), path)
        assert not sb.add_bloom_filters(path, columns=["f"]).failed
        native = spark.read.parquet(str(path))
        questions = ["f = 0.1", "f = 0.1F", "f < 0.7D", "f in (0.1, 0.5)"]
        assert_same(lambda: ours(spark, path), native, *questions)
        for question in ("f < 0.7", "f in (0.1, 0.5)"):
            assert rows_of(ours(spark, path, where=question)) == rows_of(native.where(question))

    def test_nested_columns_and_nulls_in_them(self, spark: SparkSession, tmp_path: Path) -> None:
        spark.range(40).selectExpr(
            "id",
            "if(id % 5 = 0, null, array(id, null, id + 1)) AS list",
            "if(id % 7 = 0, array(), array(named_struct('a', id, 'b', array('x', null)))) AS deep",
            "if(id % 3 = 0, null, named_struct('a', id, 'b', named_struct('c', 'v' || id))) AS s",
            "map('k' || id, if(id % 2 = 0, null, id)) AS m",
            "array(map(1, array(timestamp'1955-01-01 00:00:00.000001'))) AS times",
            "named_struct('x.y', id) AS dotted",
        ).write.options(**PLAIN_WRITE).parquet(str(tmp_path / "t"))
        check(
            spark,
            tmp_path / "t",
            "s.b.c in ('v5', 'v7') or s is null",
            "s is not null and s.a > 30",
            "array_contains(list, 7L) or dotted.`x.y` = 5",
        )

    def test_what_spark_alone_knows_of_a_column(self, spark: SparkSession, tmp_path: Path) -> None:
        spark.range(20).selectExpr(
            "cast(id AS byte) AS b",
            "cast(id AS short) AS s",
            "cast('r' || id AS binary) AS raw",
            "id % 2 = 0 AS flag",
            "timestamp_ntz'2024-03-01 10:00:00' AS ntz",
            "make_dt_interval(0, id) AS hours",
            "cast(null AS string) AS nothing",
        ).write.options(**PLAIN_WRITE).parquet(str(tmp_path / "t"))
        check(
            spark,
            tmp_path / "t",
            "b = 3 or s in (4, 5)",
            "raw = X'7231'",
            "not flag and nothing is null",
            "ntz = timestamp_ntz'2024-03-01 10:00:00' and hours > interval '5' hour",
        )

    @pytest.mark.parametrize(
        ("kind", "years"),
        [
            pytest.param("INT96", (1700, 1969, 2024), marks=pytest.mark.slow),
            # Arrow reads INT96 as nanoseconds, which have no such years, unless told otherwise.
            ("INT96", (1600, 9999)),
            pytest.param("TIMESTAMP_MICROS", (1600, 1969, 2024, 9999), marks=pytest.mark.slow),
            ("TIMESTAMP_MILLIS", (1600, 1969, 2024, 9999)),
        ],
    )
    def test_timestamps_of_each_kind_are_what_spark_wrote(
        self, spark: SparkSession, tmp_path: Path, kind: str, years: tuple[int, ...]
    ) -> None:
        numbers = spark.createDataFrame([(year,) for year in years], "year int")
        spark.conf.set("spark.sql.parquet.outputTimestampType", kind)
        numbers.selectExpr(
            "year", "make_timestamp(year, 12, 31, 23, 59, 59.123) AS at"
        ).write.options(**PLAIN_WRITE).parquet(str(tmp_path / "t"))
        spark.conf.set("spark.sql.parquet.outputTimestampType", "TIMESTAMP_MICROS")
        check(
            spark,
            tmp_path / "t",
            "at = timestamp'2024-12-31 23:59:59.123'",
            "at < timestamp'1800-01-01'",
        )

    def test_a_type_that_spark_does_not_have_is_named_and_can_be_left_out(
        self, spark: SparkSession, tmp_path: Path
    ) -> None:
        table = pa.table({"half": pa.array([1.0], pa.float16()), "id": [1]})
        pq.write_table(table, tmp_path / "0.parquet")
        with pytest.raises(Exception, match="column half: Spark has no type for") as caught:
            ours(spark, tmp_path)
        assert 'option("columns"' in str(caught.value)
        assert ours(spark, tmp_path, columns="id").collect() == [(1,)]

    @pytest.mark.parametrize("first", ["INT96", "NTZ"])
    def test_an_instant_and_a_local_time_are_refused_whatever_the_names_of_the_files_are(
        self, spark: SparkSession, tmp_path: Path, first: str
    ) -> None:
        """Arrow has no zone for both; the first file decided what the others mean."""
        table = pa.table({"id": [1], "at": pa.array([0], pa.timestamp("us"))})
        for number in range(2):
            is_int96 = (number == 0) == (first == "INT96")
            pq.write_table(
                table, tmp_path / f"{number}.parquet", use_deprecated_int96_timestamps=is_int96
            )
        with pytest.raises(Exception, match="column at: some files have timestamp"):
            ours(spark, tmp_path)
        with pytest.raises(Exception, match="CANNOT_MERGE"):
            spark.read.option("mergeSchema", "true").parquet(str(tmp_path))
        assert ours(spark, tmp_path, columns="id").collect() == [(1,), (1,)]

    def test_a_type_of_a_users_own_in_a_footer_runs_no_code(
        self, spark: SparkSession, tmp_path: Path
    ) -> None:
        written = {
            "type": "struct",
            "fields": [
                {
                    "name": "id",
                    "type": {"type": "udt", "pyClass": "this.Poem", "sqlType": "long"},
                    "nullable": True,
                    "metadata": {},
                }
            ],
        }
        marks = {"org.apache.spark.sql.parquet.row.metadata": json.dumps(written)}
        pq.write_table(pa.table({"id": [1]}).replace_schema_metadata(marks), tmp_path / "0.parquet")
        assert ours(spark, tmp_path).schema.simpleString() == "struct<id:bigint>"


@pytest.fixture(scope="module")
def table(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Nulls, NaN, both zeros and bounds, in small row groups."""
    folder = tmp_path_factory.mktemp("predicates")
    f = [0.0, -0.0, math.nan, 1.5, -1.5, math.inf, -math.inf, None]
    i = [0, 1, -1, 2**31 - 1, -(2**31), None]
    t = ["", "a", "b", "é", "z" * 40, None]
    d = [Decimal("0.00"), Decimal("1.50"), Decimal("-7.25"), None]
    rows = [(f[n % 8], f[n % 7], i[n % 6], t[n % 5], t[n % 6], d[n % 4]) for n in range(240)]
    schema = "f double, g float, i int, t string, u string, d decimal(9, 2)"
    df = spark.createDataFrame(rows, schema).coalesce(1).sortWithinPartitions("f", "t")
    df.write.options(**PLAIN_WRITE).parquet(str(folder / "spark"))
    (path,) = data_files(folder / "spark")
    write_file(folder / "0.parquet", pq.read_table(path), row_group_size=24, data_page_size=40)
    names = ["f", "g", "i", "t", "u", "d"]
    assert not sb.add_bloom_filters(folder / "0.parquet", columns=names, keys=KEYRING).failed
    shutil.rmtree(folder / "spark")
    return folder


class TestPredicates:
    COMMON = (
        "f = 0.0D",
        "not (f >= 1.5D)",
        "f = double('NaN')",
        "f not in (0.0D, double('NaN'))",
        "i in (0, -2147483648, 99)",
        "i is null and f is not null",
        "t = 'a' or i = 1",
        "t > 'b' and d between -8 and 0",
    )
    RARE = (
        "f > 1.5D",
        "i = 2147483647",
        "t = 'é'",
        "t > 'b'",
        "d between -8 and 0",
        "t = 'nowhere'",
        *(f"f {op} {v}D" for op in ("=", "<>", "<", "<=", ">=", "<=>") for v in ("-0.0", "1.5")),
        *(f"not (f {op} 1.5D)" for op in ("<", "<=", ">", "<=>")),
        *(f"f {op} double('NaN')" for op in ("<>", "<", "<=", ">", ">=", "<=>")),
        *(f"g {op} float('0')" for op in ("=", "<", ">", ">=")),
        "f in (0.0D, double('NaN'))",
        "f not in (0.0D, 1.5D)",
        "f in (1.5D, null)",
        "f not in (1.5D, null)",
        "i > 3000000000",
        "i = 1.0D",
        "i <=> null",
        "not (i <=> null)",
        "t = ''",
        "t <= 'b' and t >= 'a'",
        "t like 'z%'",
        "t like '%z'",
        "u not in ('a', 'b')",
        "not (t = 'a' or i = 1)",
        "t = u",
        "upper(t) = 'A'",
        "d = 1.50",
        "d = 1.505",
        "false",
    )

    @pytest.mark.parametrize(
        "questions", [COMMON, pytest.param(RARE, marks=pytest.mark.slow)], ids=["common", "rare"]
    )
    def test_every_predicate_gives_the_rows_of_spark(
        self, spark: SparkSession, table: Path, questions: Sequence[str]
    ) -> None:
        check(spark, table, *questions)

    def test_partition_columns_have_the_types_of_spark(
        self, spark: SparkSession, tmp_path: Path
    ) -> None:
        spark.sql(
            "SELECT id, if(id = 3, null, date_add(date'2024-02-28', cast(id AS int))) AS day, "
            "id * 5000000000 AS big, id / 4 AS part, concat('a/b=', id) AS text, "
            "lpad(id, 2, '0') AS code FROM range(6)"
        ).write.options(**PLAIN_WRITE).partitionBy("day", "big", "part", "text", "code").parquet(
            str(tmp_path / "t")
        )
        check(
            spark,
            tmp_path / "t",
            "day > date'2024-02-29' and id < 5 or text = 'a/b=4'",
            "day is null",
            "big in (5000000000, 20000000000)",
            "part >= 0.5 and code <> 1",
        )

    def test_a_column_whose_name_has_a_dot(self, spark: SparkSession, tmp_path: Path) -> None:
        table = pa.table({"a.b": [1, 2], "a": [{"b": 7}, {"b": 8}]})
        write_file(tmp_path / "0.parquet", table, row_group_size=1)
        check(
            spark,
            tmp_path,
            "`a.b` = 2",
            "a.b = 8",
            "a.b = 2",
        )

    @since_4_1
    def test_a_schema_of_the_callers(self, spark: SparkSession, tmp_path: Path) -> None:
        """Other types, another order, other case, a column that is not there."""
        write_file(tmp_path / "0.parquet", pa.table({"Id": [9, 10], "x": ["u", "v"]}))
        schema = "missing int, ID decimal(20,0), x binary"
        read = functools.partial(
            lambda: spark.read.format("secure_bloom").schema(schema).load(str(tmp_path))
        )
        assert rows_of(read()) == [
            "Row(missing=None, ID=Decimal('10'), x=b'v')",
            "Row(missing=None, ID=Decimal('9'), x=b'u')",
        ]
        assert [row.ID for row in read().where("ID < 10 and x = X'75'").collect()] == [9]
        assert read().where("missing = 1").count() == 0
        assert read().where("missing is null").count() == 2

    @pytest.mark.parametrize(
        "given", ["day timestamp", "at string", "at date", "f float", "id int"]
    )
    def test_a_type_that_spark_refuses_is_refused_before_a_row_is_read(
        self, spark: SparkSession, tmp_path: Path, given: str
    ) -> None:
        row = {"day": pa.array([1], pa.date32()), "at": pa.array([1], _INSTANT)}
        write_file(tmp_path / "0.parquet", pa.table({**row, "f": [0.1], "id": [1]}))
        source = SecureBloomSource({"path": str(tmp_path)})
        with pytest.raises(PolicyError, match=r"column .* is not read as") as caught:
            source.reader(StructType.fromDDL(given))
        assert "CAST" in str(caught.value.hint)
        with pytest.raises(Exception, match="PARQUET_COLUMN_DATA_TYPE_MISMATCH"):
            spark.read.schema(given).parquet(str(tmp_path)).collect()

    def test_an_int96_is_an_instant_in_conditions(
        self, spark: SparkSession, tmp_path: Path
    ) -> None:
        """In UTC without a zone, or with one; the session's zone does not count."""
        at = pa.array([1_709_289_000_123_000, 0], pa.timestamp("us"))
        rows = pa.table({"at": at, "s": pa.StructArray.from_arrays([at], ["at"]), "n": [1, 2]})
        path = tmp_path / "0.parquet"
        pq.write_table(rows, path, use_deprecated_int96_timestamps=True)
        pq.write_table(rows.select(["n"]), tmp_path / "1.parquet")
        spark.conf.set("spark.sql.session.timeZone", "America/New_York")
        for column, text in (
            ("at", "10:30:00.123"),
            ("s.at", "10:30:00.123Z"),
            ("at", "11:30:00.123+01:00"),
        ):
            where = f"{column} = '2024-03-01T{text}' and {column} in ('2024-03-01T{text}')"
            assert [r.n for r in ours(spark, tmp_path, where=where).collect()] == [1], where
        spark.conf.set("spark.sql.session.timeZone", "UTC")
        assert planned_by(
            SecureBloomSource({"path": str(path), "where": "at < '9999-01-01T00:00:00Z'"})
        )
        with pytest.raises(PolicyError, match="column at: the value is not one"):
            planned_by(SecureBloomSource({"path": str(path), "where": "at > 'soonZ'"}))


@pytest.fixture(scope="module")
def people(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Three encrypted files of two row groups, with filters; e-mails are spread over all."""
    folder = tmp_path_factory.mktemp("people")
    rows = customers(6000)
    for part in range(3):
        path = folder / f"part-{part}.parquet"
        write_file(path, rows.slice(2000 * part, 2000), ArrowMode.ENCRYPTED)
    assert not sb.add_bloom_filters(folder, columns=["email", "id"], keys=KEYRING).failed
    return folder


def planned(
    path: Path, keyring: Path, *filters: sd.Filter, **options: str
) -> list[SourcePartition]:
    """What a query would read, as the driver plans it."""
    source = PushdownSource({"path": str(path), "keyring": str(keyring), **options})
    schema = source.schema()
    # As it travels from the process that made it.
    reader = pickle.loads(pickle.dumps(source)).reader(schema)
    assert list(reader.pushFilters(list(filters))) == list(filters)
    return reader.partitions()


def planned_by(source: SecureBloomSource) -> list[SourcePartition]:
    return list(source.reader(source.schema()).partitions())


def row_groups(partitions: list[SourcePartition]) -> list[tuple[str, int]]:
    return [
        (Path(file.path).name, group.row_group)
        for partition in partitions
        for file in partition.files
        for group in file.row_groups
    ]


class TestPlanning:
    @since_4_1
    def test_filters_skip_row_groups(self, people: Path, keyring: Path) -> None:
        assert len(row_groups(planned(people, keyring))) == 6
        present = sd.EqualTo(("email",), "user77@example.com")
        ((name, row_group),) = row_groups(planned(people, keyring, present))
        rows = read(people / name).slice(1000 * row_group, 1000)
        assert "user77@example.com" in rows["email"].to_pylist()

    @since_4_1
    def test_an_absent_value_leaves_nothing_to_read(self, people: Path, keyring: Path) -> None:
        assert planned(people, keyring, sd.EqualTo(("email",), "nobody@example.com")) == []
        assert planned(people, keyring, sd.In(("id",), (-1, None, 70_000))) == []
        assert planned(people, keyring, where="email = 'nobody@example.com' or id = -1") == []

    @since_4_1
    def test_small_row_groups_share_a_task(self, people: Path, keyring: Path) -> None:
        (partition,) = planned(people, keyring)
        assert [len(file.row_groups) for file in partition.files] == [2, 2, 2]

    @since_4_1
    def test_nothing_that_travels_has_a_key_or_a_value_in_its_text(
        self, people: Path, keyring: Path
    ) -> None:
        source = PushdownSource({"path": str(people), "keyring": str(keyring)})
        schema = source.schema()
        reader = source.reader(schema)
        reader.pushFilters([sd.EqualTo(("email",), "user77@example.com")])
        (partition,) = reader.partitions()
        shipped = pickle.dumps((source, reader, partition))
        for key in MASTER_KEYS.values():
            assert key not in shipped
            assert base64.b64encode(key) not in shipped
        assert repr(partition) == "SourcePartition(1)"


class TestOptions:
    def test_where_and_columns(self, spark: SparkSession, people: Path, keyring: Path) -> None:
        read = ours(
            spark,
            people,
            keyring=str(keyring),
            where="email = 'user77@example.com' or id = 78",
            columns="id, city",
        )
        assert sorted(read.collect()) == [(77, "lyon"), (78, "rome")]
        assert read.columns == ["id", "city"]
        assert read.where("city = 'rome'").collect() == [(78, "rome")]

    def test_a_column_without_a_key_can_be_left_out(
        self, spark: SparkSession, people: Path, tmp_path: Path
    ) -> None:
        few = {name: key for name, key in MASTER_KEYS.items() if name != "k_pii"}
        path = tmp_path / "keyring.json"
        path.write_text(keyring_json(few))
        with pytest.raises(
            Exception, match=r"KeyUnavailableError: .*part-\d.*column email.*k_pii"
        ) as caught:
            ours(spark, people, keyring=str(path)).collect()
        assert_tells_no_secret(str(caught.value))
        rows = ours(spark, people, keyring=str(path), columns='["id", "city"]')
        assert rows.count() == 6000
        asked = {"columns": "id", "where": "email = 'user77@example.com' and id = 77"}
        with pytest.raises(
            Exception,
            match=r'rows that do not fulfil it: .option\("withoutFilterKeys", "true"\)',
        ):
            ours(spark, people, keyring=str(path), **asked).collect()
        unchecked = ours(spark, people, keyring=str(path), withoutFilterKeys="true", **asked)
        assert unchecked.collect() == [(77,)]

    def test_columns_without_a_key_are_null_or_left_out(
        self, spark: SparkSession, tmp_path: Path
    ) -> None:
        few = {name: key for name, key in MASTER_KEYS.items() if name != "k_pii"}
        keyring = tmp_path / "keyring.json"
        keyring.write_text(keyring_json(few))
        places = [{"city": "rome", "zip": f"{n:05}"} for n in range(50)]
        rows = pa.table({"id": range(50), "email": [f"{n}@x" for n in range(50)], "at": places})
        table = tmp_path / "table"
        table.mkdir()
        pairs = {"k_pii": ["email", "at.zip"], "k_finance": ["id"]}
        write_file(table / "x.parquet", rows, ArrowMode.ENCRYPTED, column_keys=pairs)
        asked = {"keyring": str(keyring)}
        dropped = ours(spark, table, missingKeys="drop", **asked)
        assert dropped.schema.simpleString() == "struct<id:bigint,at:struct<city:string>>"
        assert dropped.where("id = 7").collect() == [(7, ("rome",))]
        nulls = ours(spark, table, missingKeys="null", **asked)
        assert nulls.schema["email"].metadata == {"secure_bloom.hidden": "email"}
        assert nulls.where("id = 7").collect() == [(7, None, ("rome", None))]
        for mode in ("drop", "null"):
            with pytest.raises(Exception, match=r"KeyUnavailableError: .*email") as caught:
                ours(spark, table, missingKeys=mode, where="email = '7@x'", **asked).collect()
            assert_tells_no_secret(str(caught.value))
        # What Spark asks the source for is checked, too.
        with pytest.raises(Exception, match=r"key is missing(?s:.*)ask without this condition"):
            ours(spark, table, missingKeys="null", **asked).where("email = '7@x'").collect()
        with pytest.raises(Exception, match=r"(?s)leaves it out.*option\(.missingKeys., .null.\)"):
            ours(spark, table, missingKeys="drop", columns="email", **asked).collect()

    @pytest.mark.parametrize(
        ("options", "complaint"),
        [
            ({"missingKeys": "nul"}, "missingKeys"),
            ({"polcy": "x"}, "did you mean 'policy'"),
            ({"policy": str(POLICY), "keyring": "k"}, "both policy and keyring"),
            ({"keyring": "no-such-file"}, "no-such-file"),
            ({"columns": "id, emial"}, "emial"),
            ({"columns": '["id"'}, "JSON list"),
            ({"withoutFilterKeys": "maybe"}, "neither true nor false"),
            ({"where": "id = "}, "where|predicate|value|end"),
        ],
    )
    def test_what_makes_no_sense_is_refused(
        self, people: Path, keyring: Path, options: dict[str, str], complaint: str
    ) -> None:
        given = {"path": str(people), **options}
        if "policy" not in options and "keyring" not in options:
            given["keyring"] = str(keyring)
        with pytest.raises(PolicyError) as caught:
            planned_by(SecureBloomSource(given))
        notes = getattr(caught.value, "__notes__", [])
        assert re.search(complaint, " ".join([str(caught.value), *notes]))
        assert len(notes) == len(set(notes))

    def test_a_view_keeps_the_options_and_a_table_of_the_catalog_does_not(
        self, spark: SparkSession, tmp_path: Path
    ) -> None:
        pq.write_table(pa.table({"x": [1, 2]}), tmp_path / "0.parquet")
        given = f"USING secure_bloom OPTIONS (path '{tmp_path}', where 'x = 2')"
        spark.sql(f"CREATE TEMPORARY VIEW kept {given}")
        assert spark.sql("SELECT x FROM kept").collect() == [(2,)]
        spark.sql("DROP VIEW kept")
        for place in (given, f"USING secure_bloom LOCATION '{tmp_path}'"):
            with pytest.raises(Exception, match="for a table in its catalog") as caught:
                spark.sql(f"CREATE TABLE lost {place}")
            assert "CREATE TEMPORARY VIEW name USING secure_bloom" in str(caught.value)

    def test_nothing_is_written_and_no_stream_read(
        self, spark: SparkSession, tmp_path: Path
    ) -> None:
        pq.write_table(pa.table({"id": [1]}), tmp_path / "0.parquet")
        with pytest.raises(Exception, match="secure_bloom only reads tables") as caught:
            spark.range(1).write.format("secure_bloom").mode("append").save(str(tmp_path))
        assert "secure_bloom.spark.add_bloom_filters" in str(caught.value)
        source = SecureBloomSource({"path": str(tmp_path)})
        schema = source.schema()
        with pytest.raises(UnsupportedFeatureError, match="asked to write a stream"):
            source.streamWriter(schema=schema, overwrite=False)
        with pytest.raises(UnsupportedFeatureError, match="asked to read a stream"):
            source.streamReader(schema=schema)

    def test_a_source_without_a_path_is_refused(self) -> None:
        with pytest.raises(PolicyError, match="no path"):
            SecureBloomSource({}).schema()


class TestErrors:
    def test_a_tampered_page_names_its_column(
        self, spark: SparkSession, people: Path, keyring: Path, tmp_path: Path
    ) -> None:
        path = Path(shutil.copy(people / "part-0.parquet", tmp_path))
        with opened(path) as it:
            offset = it.chunk(1, "email").meta_data.data_page_offset
        flip(path, offset + 100)
        with pytest.raises(Exception, match="row group 1, column email") as caught:
            ours(spark, path, keyring=str(keyring)).collect()
        assert "IntegrityError" in str(caught.value)
        assert_tells_no_secret(str(caught.value))
        assert "user77@" not in str(caught.value)

    def test_a_tampered_footer(
        self, spark: SparkSession, people: Path, keyring: Path, tmp_path: Path
    ) -> None:
        path = Path(shutil.copy(people / "part-0.parquet", tmp_path))
        flip(path, path.stat().st_size - 40)
        with pytest.raises(Exception, match=r"IntegrityError: .*part-0\.parquet"):
            ours(spark, path, keyring=str(keyring))

    def test_a_file_that_changed_after_the_plan_is_an_error(
        self, people: Path, keyring: Path, tmp_path: Path
    ) -> None:
        path = Path(shutil.copy(people / "part-0.parquet", tmp_path))
        source = SecureBloomSource({"path": str(path), "keyring": str(keyring)})
        reader = source.reader(source.schema())
        (partition,) = reader.partitions()
        write_file(path, customers(10), ArrowMode.ENCRYPTED)
        with pytest.raises(FileChangedError, match="part-0"):
            list(reader.read(partition))

    def test_what_a_kms_says_in_its_error_stays_out_of_sparks(
        self, spark: SparkSession, people: Path, tmp_path: Path
    ) -> None:
        policy = tmp_path / "policy.toml"
        policy.write_text(f'[kms]\nclient = "{__name__}:TalkativeKms"\n')
        # Else Spark itself cuts off what an error was caused by.
        whole = "spark.sql.execution.pyspark.udf.simplifiedTraceback.enabled"
        spark.conf.set(whole, "false")
        try:
            with pytest.raises(Exception, match="failed to unwrap a key") as caught:
                ours(spark, people, policy=str(policy)).collect()
        finally:
            spark.conf.unset(whole)
        assert "swordfish" not in str(caught.value)


class TalkativeKms:
    """Refuses, and says too much."""

    def unwrap_key(self, wrapped_key: str, master_key_identifier: str) -> bytes:
        raise ValueError("the token is swordfish")

    def wrap_key(self, key_bytes: bytes, master_key_identifier: str) -> str:
        raise NotImplementedError


class TestSessions:
    """Sessions that were told nothing of encryption."""

    @pytest.mark.slow
    def test_executors_of_a_cluster_unwrap_the_keys(
        self, cluster: Cluster, people: Path, keyring: Path
    ) -> None:
        """No property names a KMS class there: the one of the session is taken away."""
        nothing = {
            "spark.hadoop.parquet.crypto.factory.class": "",
            "spark.hadoop.parquet.encryption.kms.client.class": "",
            "spark.hadoop.secure_bloom.keyring": "",
        }
        seen = cluster.run(read_on_the_cluster, str(people), str(keyring), config=nothing)
        assert seen == {"rows": 6000, "found": [[77, "user77@example.com"]], "native": "fails"}

    def test_a_view_in_sql_reads_through_the_source(
        self, spark: SparkSession, people: Path, keyring: Path
    ) -> None:
        spark.sql(
            "CREATE OR REPLACE TEMPORARY VIEW people USING secure_bloom "
            f"OPTIONS (path '{people}', keyring '{keyring}', columns 'id, city')"
        )
        assert spark.sql("SELECT city FROM people WHERE id = 77").collect() == [("lyon",)]


def read_on_the_cluster(spark: SparkSession, table: str, keyring: str) -> dict[str, Any]:
    """Runs on the cluster."""
    register(spark)
    read = spark.read.format("secure_bloom").option("keyring", keyring).load(table)
    try:
        spark.read.parquet(table).collect()
        native = "reads"
    except Exception:
        native = "fails"
    found = read.where("email = 'user77@example.com'").select("id", "email").collect()
    return {"rows": read.count(), "found": found, "native": native}
