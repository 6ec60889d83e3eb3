"""Filters that have one of the two zeros."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest

import secure_bloom as sb
from secure_bloom.encryption.policy import KeyPolicy
from testing.tables import write
from tests.auditing.datasets import ids
from tests.auditing.examples import (
    Example,
    put_filter,
    some_filter,
)


@pytest.mark.parametrize("dictionary", [True, False])
@pytest.mark.parametrize("kind", ["f2", "f4", "f8"])
def test_our_filters_know_both_zeros_or_none(tmp_path: Path, kind: str, dictionary: bool) -> None:
    types = {"f2": pa.float16(), "f4": pa.float32(), "f8": pa.float64()}
    values = pa.array([-1.5, 0.0, 2.5, float("nan")] * 10, pa.float64()).cast(types[kind])
    path = write(
        tmp_path / "x.parquet",
        pa.table({"rate": values, "other": pa.array([1.0, 2.0] * 20)}),
        use_dictionary=dictionary,
    )
    sb.add_bloom_filters(path, columns=["rate", "other"])
    assert ids(Example(path=path, policy=KeyPolicy()).audit(check_values=True)) == []


@pytest.mark.parametrize(("has_zero", "found"), [(True, ["filter-one-zero"]), (False, [])])
def test_values_show_whether_there_is_a_zero(
    tmp_path: Path, has_zero: bool, found: list[str]
) -> None:
    values = [-1.0, 1.0, 0.0 if has_zero else 2.0] * 20
    path = write(tmp_path / "x.parquet", pa.table({"rate": values}), use_dictionary=False)
    raw = pa.array([*values[:3], 0.0]).buffers()[1].to_pybytes()
    put_filter(path, "rate", some_filter(*(raw[i : i + 8] for i in range(0, 32, 8))))
    example = Example(path=path, policy=KeyPolicy())
    assert ids(example.audit()) == ["unchecked-zeros"]
    assert "filter-wrong" not in ids(example.audit(check_values=True)) or has_zero
    assert [i for i in ids(example.audit(check_values=True)) if i != "filter-wrong"] == found


def test_a_zero_by_chance_in_our_own_filters_is_no_finding(tmp_path: Path) -> None:
    values = np.random.default_rng(1).normal(size=20_000)
    table = pa.table({"rate": values})
    path = write(tmp_path / "x.parquet", table, use_dictionary=False, row_group_size=200)
    options = sb.BloomFilterOptions(fpp=0.05)
    assert not sb.add_bloom_filters(path, columns={"rate": options}).failed
    example = Example(path=path, policy=KeyPolicy())
    assert ids(example.audit()) == []
    assert ids(example.audit(check_values=True)) == []


def test_many_filters_that_know_one_zero_are_no_chance(tmp_path: Path) -> None:
    values = np.random.default_rng(1).normal(size=2_000)
    values[::100] = 0.0
    path = write(
        tmp_path / "x.parquet",
        pa.table({"rate": values}),
        use_dictionary=False,
        row_group_size=100,
        bloom_filter_options={"rate": {"ndv": 100, "fpp": 0.05}},
    )
    example = Example(path=path, policy=KeyPolicy())
    assert set(ids(example.audit())) == {"unchecked-zeros"}
    found = set(ids(example.audit(check_values=True)))
    # All values are there, but for the zero of the other sign.
    assert found == {"filter-one-zero"}
