"""parquet-java finds the same in a file before and after its keys changed, whatever they were."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pyarrow as pa
import pytest

import secure_bloom as sb
from testing.columns import CASES
from testing.spark.cluster import POLICY
from testing.spark.parquet_java import contents
from tests.interop.test_corpus import FILES_AND_KEYS, KEYS, placed
from tests.interop.test_rekeying import (
    CHAIN,
    CODECS,
    OPTIONS,
    ROWS,
    named,
    options_of,
    policy,
    typed_table,
    versioned,
    with_filters,
    write,
)
from tests.spark.versions import since_4_0

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = pytest.mark.spark
#: Those of the session.
KEYRING = sb.Keyring.load(POLICY.parent / "dev-keyring.json")


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "x.parquet"


@since_4_0
# What pyarrow and DuckDB read in one version `make test` shows to parquet-java in the other one.
@pytest.mark.parametrize(("options", "version"), versioned(OPTIONS, turn=1), ids=named)
def test_every_type_and_encoding(
    spark: SparkSession, path: Path, cold_keys: None, options: tuple, version: str
) -> None:
    table, encodings = typed_table(case for case in CASES if options_of(case[0]) == options)
    write(path, table, encodings, data_page_version=version, compression="zstd", **dict(options))
    with_filters(path, table)
    is_always_the_same(spark, path, table.column_names)


@pytest.mark.parametrize(("codec", "version"), versioned(CODECS, turn=1), ids=named)
def test_every_codec(
    spark: SparkSession, path: Path, cold_keys: None, codec: str, version: str
) -> None:
    texts = [None if n % 7 == 3 else f"some text {n}" for n in range(ROWS)]
    table = pa.table({"x0": texts, "x1": range(ROWS), "x2": [[n] * (n % 3) for n in range(ROWS)]})
    write(path, table, {}, data_page_version=version, compression=codec, data_page_size=64)
    with_filters(path, table)
    is_always_the_same(spark, path, table.column_names)


def is_always_the_same(spark: SparkSession, path: Path, columns: list[str]) -> None:
    """Through all protections, rotations and into the clear."""
    before = contents(spark, path)
    assert before.count(", filter 0:") < before.count(", filter ")
    for name, now in protections(path, columns):
        assert contents(spark, now) == before, name


def protections(path: Path, columns: list[str]) -> Iterator[tuple[str, Path]]:
    for number, (name, settings) in enumerate(CHAIN.items()):
        wanted = policy(number, columns, **settings)
        assert not sb.reencrypt(path, policy=wanted, keys=KEYRING).failed
        yield name, path
        moves = {"k_pii": "k_finance"}
        assert not sb.rotate_keys(path, policy=wanted, moves=moves, keys=KEYRING).failed
        yield f"{name}, rotated", path
    clear = path.parent / "clear"
    assert not sb.decrypt(path, output=clear, keys=KEYRING).failed
    yield "decrypted", clear / path.name


@pytest.mark.parametrize(("source", "name", "kind"), FILES_AND_KEYS)
def test_a_file_of_any_writer(
    spark: SparkSession, source: Path | None, name: str, kind: str, tmp_path: Path, cold_keys: None
) -> None:
    """From any mode into the clear, and from there under the keys of the session."""
    original, clear = placed(source, name, tmp_path), tmp_path / "clear"
    assert not sb.decrypt(original, output=clear, keys=KEYS[kind]).failed
    before = contents(spark, clear / name)
    wanted = policy(0, [], uniform=True)
    assert not sb.reencrypt(clear / name, policy=wanted, keys=KEYRING, output=tmp_path).failed
    assert contents(spark, tmp_path / name) == before
