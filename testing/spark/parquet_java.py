"""parquet-java as the judge: its verdicts on filters, ours and its own."""

from __future__ import annotations

import struct
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

from secure_bloom.spark.jvm import compile_jar

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

#: Options of a write that shall be plain in a session that encrypts.
PLAIN_WRITE = {"parquet.encryption.footer.key": "", "parquet.encryption.column.keys": ""}

_OTHER_FILTERS = (
    "parquet.filter.stats.enabled",
    "parquet.filter.dictionary.enabled",
    "parquet.filter.columnindex.enabled",
)


def judge_jar() -> Path:
    """The jar :func:`bloom_filter_verdicts` needs in the session's `spark.jars`."""
    source = Path(__file__).with_name("BloomJudge.java")
    return compile_jar(source.stem, source.read_bytes())


def bloom_filter_verdicts(
    spark: SparkSession,
    path: Path | str,
    row_group: int,
    column: str,
    values: Sequence[int | float | str | bytes],
) -> list[bool] | None:
    """parquet-java's answer for each *physical* value: may it be there?  None: no filter.

    ``column`` is the dotted path; keys come from the session's KMS.  One round trip.
    """
    return packed_verdicts(spark, path, row_group, column, packed(values), len(values))


def packed(values: Iterable[float | str | bytes]) -> bytes:
    """Physical values as `BloomJudge.verdicts` reads them."""
    return b"".join(map(_pack, values))


def packed_verdicts(
    spark: SparkSession, path: Path | str, row_group: int, column: str, values: bytes, count: int
) -> list[bool] | None:
    """:func:`bloom_filter_verdicts` on values that are packed once and asked of many files."""
    conf = spark._jsparkSession.sessionState().newHadoopConf()
    judge = _class(spark, "secure_bloom.spark.tests.BloomJudge")
    verdicts = judge.verdicts(conf, str(path), row_group, column, values, count)
    return None if verdicts is None else [verdict == 1 for verdict in verdicts]


def contents(spark: SparkSession, path: Path | str) -> str:
    """All that parquet-java finds in a file, but for offsets, stored sizes and protection."""
    conf = spark._jsparkSession.sessionState().newHadoopConf()
    found: str = _class(spark, "secure_bloom.spark.tests.BloomJudge").contents(conf, str(path))
    return found


@contextmanager
def only_bloom_filters(spark: SparkSession) -> Iterator[None]:
    """Switch off what else prunes row groups: statistics, dictionaries, column indexes."""
    for name in _OTHER_FILTERS:
        spark.conf.set(name, "false")
    try:
        yield
    finally:
        for name in _OTHER_FILTERS:
            spark.conf.unset(name)


def forget_keys(spark: SparkSession) -> None:
    """Empty the JVM's caches of KMS clients and keys; warm ones hide a wrong keyring or policy."""
    toolkit = _class(spark, "org.apache.parquet.crypto.keytools.KeyToolkit")
    toolkit.removeCacheEntriesForAllTokens()


def _class(spark: SparkSession, name: str) -> Any:
    """A class of the JVM, by its whole name.

    For each part of a name in its turn, the JVM would look through all jars for a class of it.
    """
    return getattr(spark._jvm, name)


def _pack(value: float | str | bytes) -> bytes:
    """One value as `BloomJudge.verdicts` reads it."""
    if isinstance(value, int):
        return struct.pack(">q", value)
    if isinstance(value, float):
        return struct.pack(">d", value)
    raw = value.encode() if isinstance(value, str) else value
    return struct.pack(">i", len(raw)) + raw
