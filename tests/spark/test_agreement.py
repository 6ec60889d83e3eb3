"""parquet-java and secure-bloom say the same of every filter, whoever wrote it."""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import reduce
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow.parquet as pq
import pytest

import secure_bloom as sb
from secure_bloom.spark import add_bloom_filters
from secure_bloom.spark.scan_metrics import collect_scanned, rows_scanned
from testing.spark.cluster import POLICY
from testing.spark.parquet_java import PLAIN_WRITE, bloom_filter_verdicts, only_bloom_filters
from tests.spark.typed_tables import (
    COLUMNS,
    Mode,
    RowGroup,
    copy,
    data_files,
    footer_start,
    read_with_pyarrow,
    row_groups,
    write,
)
from tests.spark.versions import since_4_0

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

pytestmark = pytest.mark.spark

ROWS = 6000
FPP = 0.02
OPTIONS = dict.fromkeys(COLUMNS, sb.BloomFilterOptions(fpp=FPP))
KEYS = sb.KeyPolicy.load(POLICY).kms_client()

Tables = Callable[..., Path]


@pytest.fixture(scope="module")
def written(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> Tables:
    """The table of a mode as Spark wrote it, written when it is first asked for."""
    folder = tmp_path_factory.mktemp("written")

    def table(mode: Mode) -> Path:
        target = folder / mode.name
        return target if target.exists() else write(spark, target, mode=mode, rows=ROWS)

    return table


@pytest.fixture(scope="module")
def filtered(
    spark: SparkSession, written: Tables, tmp_path_factory: pytest.TempPathFactory
) -> Tables:
    """A copy of the table with filters in every column, replaced or appended to."""
    folder = tmp_path_factory.mktemp("filtered")

    def table(mode: Mode, *, in_place: bool) -> Path:
        target = folder / f"{mode.name}-{in_place}"
        if not target.exists():
            copy(written(mode), target)
            report = add_bloom_filters(
                spark,
                target,
                POLICY,
                columns=OPTIONS,
                in_place=in_place,
                allow_unprotected=mode is Mode.SIGNED,
            )
            assert {row.error for row in report.collect()} == {None}
        return target

    return table


@pytest.fixture(scope="module")
def native(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """An encrypted table in which Spark itself wrote filters of some columns."""
    options = {}
    for name in ("text", "i32", "f64", "stamp"):
        options[f"parquet.bloom.filter.enabled#{name}"] = "true"
        options[f"parquet.bloom.filter.expected.ndv#{name}"] = "600"
    folder = tmp_path_factory.mktemp("native") / "table"
    return write(spark, folder, mode=Mode.ENCRYPTED, rows=ROWS, **options)


#: Every mode and both ways of writing; both ways of one mode in the slow cases.
WAYS = [
    (Mode.ENCRYPTED, False),
    pytest.param(Mode.ENCRYPTED, True, marks=pytest.mark.slow),
    (Mode.SIGNED, True),
    (Mode.UNIFORM, False),
]


def parquet_java(
    spark: SparkSession, group: RowGroup, name: str, numbers: list[int] | range
) -> list[bool]:
    stored = [COLUMNS[name].stored(n) for n in numbers]
    verdicts = bloom_filter_verdicts(spark, group.path, group.ordinal, name, stored)
    assert verdicts is not None, f"{group.path.name} row group {group.ordinal} {name}: no filter"
    return verdicts


def secure_bloom(path: Path, name: str, numbers: list[int] | range) -> list[list[bool]]:
    """What our probe says, for each row group of the file."""
    values = [COLUMNS[name].value(n) for n in numbers]
    (file,) = sb.probe(path, name, values, keys=KEYS).files
    assert file.error is None
    return [
        [group.verdicts[value] is sb.Verdict.MAYBE for value in values] for group in file.row_groups
    ]


def most_false_positives(trials: int) -> float:
    """Five standard deviations above what the requested rate gives."""
    return trials * FPP + 5 * math.sqrt(trials * FPP * (1 - FPP))


#: In the slow cases all; the test after these asks parquet-java in every mode.
FEWER_WAYS = [
    *WAYS[:2],
    pytest.param(Mode.SIGNED, True, marks=pytest.mark.slow),
    pytest.param(Mode.UNIFORM, False, marks=pytest.mark.slow),
]


@pytest.mark.parametrize(("mode", "in_place"), FEWER_WAYS)
class TestOurFilters:
    def test_parquet_java_finds_every_value_and_rejects_the_absent(
        self, spark: SparkSession, filtered: Tables, mode: Mode, in_place: bool
    ) -> None:
        groups = list(row_groups(filtered(mode, in_place=in_place)))
        assert len(groups) >= 4
        absent = range(1, 2001, 2)
        for group in groups:
            for name in COLUMNS:
                said = parquet_java(spark, group, name, [*group.numbers, *absent])
                assert all(said[: len(group.numbers)]), name
                passed = sum(said[len(group.numbers) :])
                assert passed <= most_false_positives(len(absent)), name

    @pytest.mark.slow  # `tests/adding` compares the bytes, `test_written` the rows
    def test_rows_and_all_bytes_before_the_old_footer_are_the_same(
        self, spark: SparkSession, written: Tables, filtered: Tables, mode: Mode, in_place: bool
    ) -> None:
        before, after = written(mode), filtered(mode, in_place=in_place)
        assert len(data_files(before)) == 2
        for old, new in zip(data_files(before), data_files(after), strict=True):
            assert old.name == new.name
            kept = old.stat().st_size if in_place else footer_start(old)
            assert new.read_bytes()[:kept] == old.read_bytes()[:kept]
        assert not list(after.glob(".*.parquet.crc"))
        ours, theirs = (_sum_of_rows(spark.read.parquet(str(path))) for path in (after, before))
        assert ours[0] == ROWS
        assert ours == theirs
        assert read_with_pyarrow(after).equals(read_with_pyarrow(before))


def _sum_of_rows(table: DataFrame) -> tuple[Any, ...]:
    """The number of rows, and the sum of their hashes: one pass, without a shuffle of them."""
    (row,) = table.selectExpr("count(*)", "sum(cast(xxhash64(*) AS decimal(30)))").collect()
    return tuple(row)


@pytest.mark.parametrize(("mode", "in_place"), WAYS[1:])
def test_our_probe_and_parquet_java_agree_on_our_filters(
    spark: SparkSession, filtered: Tables, mode: Mode, in_place: bool
) -> None:
    table = filtered(mode, in_place=in_place)
    numbers = range(500, 1000)
    for path in data_files(table):
        groups = [group for group in row_groups(table) if group.path == path]
        for name in COLUMNS:
            ours = secure_bloom(path, name, numbers)
            assert ours == [parquet_java(spark, group, name, numbers) for group in groups], name


def test_what_is_in_clear_can_be_pruned_without_any_key(filtered: Tables) -> None:
    """In a signed footer the filters of plain columns are for everyone, the others for nobody."""
    table = filtered(Mode.SIGNED, in_place=True)
    (verdict,) = sb.probe(table, "i32", [7]).verdicts
    assert verdict is sb.Verdict.ABSENT
    assert all("'k_pii'" in str(file.error) for file in sb.probe(table, "i64", [7]).files)


class TestLookups:
    """What Spark scans is what the filters say, everything else that prunes being off."""

    def equals(self, name: str, number: int) -> str:
        return f"{name} = {COLUMNS[name].of(number)}"

    def absent_everywhere(self, table: Path, name: str) -> int:
        values = {COLUMNS[name].value(n): n for n in range(501, 601, 2)}
        files = sb.probe(table, name, list(values), keys=KEYS).files
        groups = [group for file in files for group in file.row_groups]
        return next(
            n
            for value, n in values.items()
            if all(group.verdicts[value] is sb.Verdict.ABSENT for group in groups)
        )

    def maybe_rows(self, table: Path, name: str, number: int) -> int:
        """Rows of the row groups that may hold a number, by our probe."""
        value = COLUMNS[name].value(number)
        verdicts = [
            group.verdicts[value]
            for file in sb.probe(table, name, [value], keys=KEYS).files
            for group in file.row_groups
        ]
        return sum(
            len(group.numbers)
            for group, verdict in zip(row_groups(table), verdicts, strict=True)
            if verdict is sb.Verdict.MAYBE
        )

    def test_absent_values_read_nothing_and_present_ones_their_row_groups(
        self, spark: SparkSession, written: Tables, filtered: Tables
    ) -> None:
        """A value of each column, all in one query."""
        table, old = filtered(Mode.ENCRYPTED, in_place=False), written(Mode.ENCRYPTED)
        absent = {name: self.absent_everywhere(table, name) for name in COLUMNS}
        present = 7000
        with only_bloom_filters(spark):
            assert rows_scanned(self.lookups(spark.read.parquet(str(table)), absent)) == 0
            without = self.lookups(spark.read.parquet(str(old)), absent)
            assert rows_scanned(without) == ROWS * len(COLUMNS)
            every = dict.fromkeys(COLUMNS, present)
            found, scanned = collect_scanned(self.lookups(spark.read.parquet(str(table)), every))
        assert [row.text for row in found] == [COLUMNS["text"].value(present)] * len(COLUMNS)
        maybe = [self.maybe_rows(table, name, present) for name in COLUMNS]
        assert scanned == sum(maybe)
        assert all(0 < rows < ROWS for rows in maybe)

    def lookups(self, table: DataFrame, numbers: dict[str, int]) -> DataFrame:
        """The rows that hold a number in a column, for each column."""
        found = (table.where(self.equals(name, number)) for name, number in numbers.items())
        return reduce(lambda one, other: one.unionAll(other), found)

    @pytest.mark.parametrize(("mode", "in_place"), [WAYS[2], FEWER_WAYS[3]])
    def test_the_other_modes_prune_too(
        self, spark: SparkSession, filtered: Tables, mode: Mode, in_place: bool
    ) -> None:
        table = filtered(mode, in_place=in_place)
        absent = self.absent_everywhere(table, "text")
        with only_bloom_filters(spark):
            rows = spark.read.parquet(str(table))
            assert rows_scanned(rows.where(self.equals("text", absent))) == 0
            assert 0 < rows_scanned(rows.where(self.equals("text", 7000))) < ROWS

    def test_a_long_list_of_absent_values_reads_nothing(
        self, spark: SparkSession, filtered: Tables
    ) -> None:
        """More than ten values stay an IN, where a filter that cannot be read fails the query."""
        table = filtered(Mode.ENCRYPTED, in_place=False)
        emails = [f"nobody{n}@example.com" for n in range(11)]
        report = sb.probe(table, "text", emails, keys=KEYS)
        maybe = sum(
            len(rows.numbers)
            for rows, group in zip(
                row_groups(table),
                (g for file in report.files for g in file.row_groups),
                strict=True,
            )
            if sb.Verdict.MAYBE in group.verdicts.values()
        )
        with only_bloom_filters(spark):
            query = spark.read.parquet(str(table)).where(f"text IN {tuple(emails)}")
            assert rows_scanned(query) == maybe < ROWS


class TestFiltersOfSpark:
    def test_our_probe_and_parquet_java_agree(self, spark: SparkSession, native: Path) -> None:
        numbers = range(1000)
        false_positives = 0
        for path in data_files(native):
            groups = [group for group in row_groups(native) if group.path == path]
            for name in ("text", "i32", "f64", "stamp"):
                ours = secure_bloom(path, name, numbers)
                theirs = [parquet_java(spark, group, name, numbers) for group in groups]
                assert ours == theirs, name
                false_positives += sum(sum(verdicts[1::2]) for verdicts in theirs)
        assert false_positives > 0  # or the agreement would say little

    @since_4_0
    def test_they_are_kept_beside_ours(
        self, spark: SparkSession, native: Path, tmp_path: Path
    ) -> None:
        def filters(table: Path) -> dict[tuple[int, int, str], Any]:
            return {
                (i, group.row_group, column.column): column.bloom
                for i, file in enumerate(sb.inspect(table, keys=KEYS).files)
                for group in file.row_groups
                for column in group.columns
                if column.bloom is not None
            }

        table = copy(native, tmp_path / "table")
        before = filters(table)
        report = add_bloom_filters(spark, table, POLICY, columns=OPTIONS).collect()
        after = filters(table)
        assert {row.column for row in report if row.action == "kept"} == {
            "text",
            "i32",
            "f64",
            "stamp",
        }
        assert {row.action for row in report} == {"kept", "added"}
        assert before.items() <= after.items()
        assert len(after) == len(list(row_groups(table))) * len(COLUMNS)


@pytest.fixture(scope="module")
def zeros(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Half of the rows are -0.0 and none is 0.0; Spark itself wrote the filter of ``theirs``."""
    folder = tmp_path_factory.mktemp("zeros") / "table"
    value = "if(id % 2 = 0, -0.0D, cast(id AS double))"
    rows = spark.range(1000).selectExpr(
        f"{value} AS theirs", f"{value} AS ours", f"cast({value} AS float) AS single"
    )
    options = {
        **PLAIN_WRITE,
        "parquet.enable.dictionary": "false",
        "parquet.bloom.filter.enabled#theirs": "true",
    }
    rows.coalesce(1).write.options(**options).parquet(str(folder))
    return folder


class TestZeros:
    """Engines hold both zeros equal, raw bits do not: a filter must not lose rows."""

    def test_rows_with_the_other_zero_are_found(
        self, spark: SparkSession, zeros: Path, tmp_path: Path
    ) -> None:
        table = copy(zeros, tmp_path / "table")
        add_bloom_filters(spark, table, columns=["ours", "single"])
        for zero in ("0.0", "-0.0"):
            rows = spark.read.parquet(str(table))
            assert rows.where(f"ours = {zero}D").count() == 500
            assert rows.where(f"single = cast({zero}D AS float)").count() == 500
        assert rows_scanned(rows.where("ours = 2.5D")) == 0

    def test_a_filter_of_raw_bits_loses_them(self, spark: SparkSession, zeros: Path) -> None:
        """Why both zeros go in; when parquet-java learns it, this is where it shows."""
        assert spark.read.parquet(str(zeros)).where("theirs = 0.0D").count() == 0
        off = spark.read.option("parquet.filter.bloom.enabled", "false").parquet(str(zeros))
        assert off.where("theirs = 0.0D").count() == 500

    def test_the_probe_knows_it_too(self, zeros: Path) -> None:
        assert pq.read_table(zeros, columns=["theirs"]).num_rows == 1000
        for zero in (0.0, -0.0, "0", "-0.0"):
            assert sb.probe(zeros, "theirs", [zero]).verdicts == {sb.Verdict.MAYBE}
