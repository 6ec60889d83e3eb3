"""Hudi's lookup on Spark, and Hadoop's own filters in the JVM as judges of ours."""

from __future__ import annotations

import base64
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any
from unittest import mock

import pytest

import secure_bloom as sb
from secure_bloom import hudi
from secure_bloom.encryption.access import Access
from secure_bloom.encryption.file_keys import KeyResolver
from secure_bloom.errors import PolicyError
from secure_bloom.hudi import HashType
from secure_bloom.hudi.record_keys.bloom_filter import HudiBloomFilter
from secure_bloom.spark import hudi as step
from secure_bloom.spark.hudi import hudi_lookup
from secure_bloom.spark.package_archive import ship
from secure_bloom.storage import open_input
from testing.hudi_files import KEY_COLUMN, base_file, base_table
from testing.spark.cluster import POLICY, Cluster

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

pytestmark = pytest.mark.spark

FILES = 5


def keys_from(start: int, stop: int, step: int = 1) -> list[str]:
    return [f"key-{i:06d}" for i in range(start, stop, step)]


@pytest.fixture(scope="module")
def lake(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Files whose keys interleave, so that ranges rule nothing out; one of them far behind."""
    folder = tmp_path_factory.mktemp("base files")
    for i in range(FILES - 1):
        base_file(folder / f"{i}.parquet", keys_from(i, 4000, FILES - 1))
    base_file(folder / "behind.parquet", keys_from(9000, 9100))
    hudi.add_record_key_filter(folder)
    return folder


def keys_frame(spark: SparkSession, keys: list[str | None]) -> DataFrame:
    return spark.createDataFrame([(key,) for key in keys], "record_key string")


def answer(frame: DataFrame) -> set[tuple[str, str]]:
    rows = [(row.key, row.path) for row in frame.collect()]
    assert len(rows) == len(set(rows))
    return set(rows)


@pytest.mark.parametrize("groups", [None, 3, pytest.param(99, marks=pytest.mark.slow)])
def test_it_answers_as_the_local_lookup(
    spark: SparkSession, lake: Path, groups: int | None
) -> None:
    # Skewed: one key many times; nulls find nothing.
    wanted = [*keys_from(3000, 5000, 7), *keys_from(9050, 9060), "nowhere", *["key-000001"] * 500]
    found = hudi_lookup(spark, lake, keys_frame(spark, [*wanted, None]), file_groups=groups)
    local = hudi.lookup(lake, wanted).found
    assert answer(found) == {(key, path) for key, paths in local.items() for path in paths}
    assert found.schema.simpleString() == "struct<key:string,path:string>"
    # A key that comes often is dropped before it is copied for each task.
    plan = found._jdf.queryExecution().optimizedPlan().toString()
    assert 0 < plan.index("Generate explode") < plan.index("Aggregate [")


def test_no_keys_and_no_hits_are_empty_answers(spark: SparkSession, lake: Path) -> None:
    for keys in ([], [None], ["nowhere"]):
        assert answer(hudi_lookup(spark, lake, keys_frame(spark, keys))) == set()


def test_the_column_of_keys_can_be_named(spark: SparkSession, lake: Path) -> None:
    frame = spark.createDataFrame([(7, "key-000002")], "n int, id string")
    assert {key for key, _ in answer(hudi_lookup(spark, lake, frame, key="id"))} == {"key-000002"}
    with pytest.raises(PolicyError, match="2 columns"):
        hudi_lookup(spark, lake, frame)
    with pytest.raises(PolicyError, match="file_groups is 0"):
        hudi_lookup(spark, lake, frame, key="id", file_groups=0)


def test_keys_must_be_texts(spark: SparkSession, lake: Path) -> None:
    with pytest.raises(PolicyError, match="record keys are int, wanted text") as refused:
        hudi_lookup(spark, lake, spark.createDataFrame([(7,)], "n int"))
    assert "cast" in str(refused.value.hint)


def test_an_empty_key_is_refused_by_name(spark: SparkSession, lake: Path) -> None:
    frame = keys_frame(spark, ["key-000002", ""])
    with pytest.raises(Exception, match="a record key is empty, which Hudi refuses"):
        hudi_lookup(spark, lake, frame).collect()


def test_encrypted_files_are_searched_under_the_policy(spark: SparkSession, tmp_path: Path) -> None:
    folder = tmp_path / "lake"
    table = spark.createDataFrame(
        [(key, "x", 1, "it") for key in keys_from(0, 100)],
        "email string, iban string, national_id long, country string",
    )
    table.coalesce(1).write.parquet(str(folder))
    keys = sb.KeyPolicy.load(POLICY).kms_client()
    hudi.add_record_key_filter(folder, column="email", keys=keys)
    frame = keys_frame(spark, ["key-000042", "key-000999"])
    found = hudi_lookup(spark, folder, frame, POLICY, column="email")
    assert {key for key, _ in answer(found)} == {"key-000042"}


def test_a_file_that_cannot_be_read_fails_the_job(spark: SparkSession, tmp_path: Path) -> None:
    base_file(tmp_path / "a.parquet", ["k1"])
    (tmp_path / "b.parquet").write_bytes(b"no Parquet file")
    with pytest.raises(Exception, match=r"b\.parquet: not a Parquet file"):
        hudi_lookup(spark, tmp_path, keys_frame(spark, ["k1"])).collect()


def test_each_footer_is_read_once_and_data_of_candidates_alone(lake: Path) -> None:
    paths = sorted(map(str, lake.iterdir()))
    opened: list[str] = []

    def noting(path: str) -> Any:
        opened.append(path)
        return real(path)

    real = open_input
    with (
        mock.patch.object(step, "open_input", noting),
        mock.patch.object(step, "_BATCH", 10),
    ):
        search = step._GroupSearch(paths, KEY_COLUMN, KeyResolver(None))
        rows = [row for key in keys_from(5000, 5100) for row in search.take([key])]
        assert sorted(opened) == paths
        rows += search.take(["key-000005"])
        rows += list(search.finish())
    assert opened[FILES:] == [str(lake / "1.parquet")]
    assert rows == [("key-000005", str(lake / "1.parquet"))]


def test_many_candidates_do_not_pile_up(lake: Path) -> None:
    paths = sorted(map(str, lake.iterdir()))
    with mock.patch.object(step, "_BATCH", 50), mock.patch.object(step, "_MOST_CANDIDATES", 120):
        search = step._GroupSearch(paths, KEY_COLUMN, KeyResolver(None))
        early = [row for key in keys_from(0, 400) for row in search.take([key])]
        rest = list(search.finish())
    assert len(early) >= 240
    assert sorted(key for key, _ in early + rest) == keys_from(0, 400)


def test_what_travels_holds_no_key(lake: Path) -> None:
    shared = ship(Access())
    assert step._handler([str(lake)], 1, KEY_COLUMN, shared)().searches == {}
    assert step._resolver(shared).explicit.columns == {}


@pytest.mark.slow
def test_on_a_cluster(cluster: Cluster, lake: Path) -> None:
    found = cluster.run(_lookup_on_cluster, str(lake))
    assert sorted(key for key, _ in found) == keys_from(100, 200)


def _lookup_on_cluster(spark: SparkSession, folder: str) -> list[list[str]]:
    from secure_bloom.spark.hudi import hudi_lookup

    keys = spark.range(100, 300).selectExpr("format_string('key-%06d', id) as k")
    keys = keys.where("id < 200 or id > 5000")
    return [list(row) for row in hudi_lookup(spark, folder, keys).collect()]


# --- Hadoop's own classes read what we write ---------------------------------------------------


def filters() -> Iterator[tuple[HudiBloomFilter, str]]:
    for hash_type in HashType:
        yield hudi.SimpleBloomFilter(400, 0.05, hash_type=hash_type), "BloomFilter"
        dynamic = hudi.DynamicBoundedBloomFilter(100, 0.05, 300, hash_type=hash_type)
        yield dynamic, "DynamicBloomFilter"


@pytest.mark.parametrize(
    ("ours", "java_class"), list(filters()), ids=lambda v: v if isinstance(v, str) else repr(v)
)
def test_hadoop_reads_our_bytes_and_gives_the_same_verdicts(
    spark: SparkSession, ours: HudiBloomFilter, java_class: str
) -> None:
    ours.insert_many([*keys_from(0, 350), "schlüssel-ß", "\U0001d4b3-key", "a"])
    jvm: Any = spark.sparkContext._jvm
    stored = jvm.java.util.Base64.getDecoder().decode(ours.serialize())
    theirs = getattr(jvm.org.apache.hadoop.util.bloom, java_class)()
    theirs.readFields(jvm.java.io.DataInputStream(jvm.java.io.ByteArrayInputStream(stored)))
    probes = [*keys_from(0, 700), "schlüssel-ß", "\U0001d4b3-key", "a", "ab", "abc", "é", "ÿÿÿ"]
    key = jvm.org.apache.hadoop.util.bloom.Key
    verdicts = [theirs.membershipTest(key(probe.encode())) for probe in probes]
    assert ours.check_many(probes).tolist() == verdicts
    assert 353 < sum(verdicts) < len(probes)
    out = jvm.java.io.ByteArrayOutputStream()
    theirs.write(jvm.java.io.DataOutputStream(out))
    assert base64.b64decode(
        jvm.java.util.Base64.getEncoder().encodeToString(out.toByteArray())
    ) == (ours.to_bytes())


def test_spark_reads_a_file_that_got_a_filter(spark: SparkSession, lake: Path) -> None:
    rows = spark.read.parquet(str(lake / "0.parquet")).collect()
    assert [row[KEY_COLUMN] for row in rows] == keys_from(0, 4000, FILES - 1)
    assert rows[0].email == base_table(["k"])["email"][0].as_py()
