"""Hashes equal those of Paimon's Java code, and in bulk those of one value at a time."""

from __future__ import annotations

import subprocess
import sys
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from secure_bloom.errors import PolicyError, UnsupportedFeatureError
from secure_bloom.paimon import DataType, hash_long, hash_longs, hash_value
from tests.paimon.vectors import load, value_of

VECTORS = load("hash")
LONGS = st.integers(-(1 << 63), (1 << 63) - 1)


@pytest.mark.parametrize("case", VECTORS["cases"], ids=lambda case: case["type"])
def test_hashes_are_those_of_java(case: dict[str, Any]) -> None:
    data_type = DataType.parse(case["type"])
    hashes = [hash_value(data_type, value_of(data_type, value)) for value in case["values"]]
    assert hashes == case["hashes"]


@pytest.mark.parametrize("case", VECTORS["unsupported"], ids=lambda case: case["type"])
def test_a_type_without_a_hash_is_refused_by_name(case: dict[str, Any]) -> None:
    with pytest.raises(UnsupportedFeatureError) as refused:
        DataType.parse(case["type"])
    assert case["type"] in str(refused.value)


@given(st.lists(LONGS))
def test_longs_hash_in_bulk_as_one_at_a_time(numbers: list[int]) -> None:
    hashes = hash_longs(np.array(numbers, np.int64))
    assert hashes.tolist() == [hash_long(number) for number in numbers]


def test_null_has_no_hash() -> None:
    assert hash_value(DataType.parse("INT"), None) is None


@pytest.mark.parametrize(
    ("text", "canonical"),
    [
        ("timestamp(6) with local time zone", "TIMESTAMP_LTZ(6)"),
        ("TIMESTAMP", "TIMESTAMP(6)"),
        ("BIGINT NOT NULL", "BIGINT"),
        ("INTEGER", "INT"),
        ("VARCHAR(10)", "VARCHAR(10)"),
        ("TIME", "TIME(0)"),
    ],
)
def test_types_are_read_as_paimon_writes_them(text: str, canonical: str) -> None:
    assert str(DataType.parse(text)) == canonical


@pytest.mark.parametrize(
    ("data_type", "value"),
    [
        ("TINYINT", 128),
        ("INT", 1 << 31),
        ("INT", True),
        ("STRING", b"secret"),
        ("BYTES", "secret"),
        ("TIMESTAMP(3)", 5),
        ("FLOAT", "secret"),
    ],
)
def test_the_error_for_a_value_of_another_type_does_not_show_it(data_type: str, value: Any) -> None:
    with pytest.raises(PolicyError, match="not one of the type") as refused:
        hash_value(DataType.parse(data_type), value)
    assert "secret" not in str(refused.value)


def test_one_value_is_hashed_and_checked_without_numpy() -> None:
    code = """
import sys
from secure_bloom import paimon
filter64 = paimon.BloomFilter64.sized(10, 0.1)
filter64.insert_hash(paimon.hash_value(paimon.DataType.parse("BIGINT"), 5))
assert filter64.check_hash(paimon.hash_long(5)), filter64.fpp()
assert not {"numpy", "pyarrow"} & set(sys.modules)
"""
    subprocess.run([sys.executable, "-c", code], check=True)
