"""Our verdicts against parquet-java's, for values of any type."""

from __future__ import annotations

import itertools
import struct
from pathlib import Path
from typing import TYPE_CHECKING, Any

import secure_bloom as sb
from secure_bloom.encryption.kms import Keyring, KmsClient
from secure_bloom.parquet.literals import physical_values
from secure_bloom.parquet.structures.metadata import Type
from testing.columns import Column
from testing.spark.parquet_java import bloom_filter_verdicts
from testing.surgery import opened
from testing.tables import KEYRING
from testing.typed_files import probed_verdicts

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

#: How many absent values are asked for.
ABSENT = 84


def check_verdicts(
    spark: SparkSession,
    path: Path,
    name: str,
    column: Column,
    present: list[int],
    keys: Keyring | KmsClient = KEYRING,
) -> int:
    """Our probe and parquet-java say the same; returns how many absent values both let pass.

    ``name`` is the leaf that holds the column's values.
    """
    absent = column.values(0, ABSENT, absent=True)
    texts = [column.written(n) for n in present + absent]
    ours = probed_verdicts(path, name, texts, keys=keys)
    forms = _forms(path, name, texts, keys)
    said = [_parquet_java(spark, path, row_group, name, forms) for row_group in range(len(ours[0]))]
    assert said == [
        [verdict is sb.Verdict.MAYBE for verdict in of_group]
        for of_group in zip(*ours, strict=True)
    ]
    found = [any(verdicts) for verdicts in zip(*said, strict=True)]
    assert all(found[: len(present)])
    return sum(sum(verdicts[len(present) :]) for verdicts in said)


def _parquet_java(
    spark: SparkSession, path: Path, row_group: int, name: str, forms: list[list[Any]]
) -> list[bool]:
    """Whether a value may be there, in any of its forms."""
    flat = list(itertools.chain(*forms))
    verdicts = bloom_filter_verdicts(spark, path, row_group, name, flat)
    assert verdicts is not None
    each = iter(verdicts)
    return [any(list(itertools.islice(each, len(form)))) for form in forms]


def _forms(path: Path, name: str, texts: list[str], keys: Keyring | KmsClient) -> list[list[Any]]:
    """The physical values under which each value may stand, as parquet-java takes them."""
    with opened(path, keys) as it:
        leaf = next(leaf for leaf in it.footer.leaves if leaf.name == name)
    return [
        [unpacked(leaf.type, encoding) for encoding in physical_values(leaf, text) or ()]
        for text in texts
    ]


_FORMATS = {Type.INT32: "<i", Type.INT64: "<q", Type.FLOAT: "<f", Type.DOUBLE: "<d"}


def unpacked(physical: Type, encoding: bytes) -> int | float | bytes:
    """A value in PLAIN encoding, as parquet-java takes it."""
    form = _FORMATS.get(physical)
    return encoding if form is None else struct.unpack(form, encoding)[0]
