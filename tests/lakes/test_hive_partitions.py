"""Values of partition columns, from the names of folders."""

from __future__ import annotations

import pyarrow as pa
import pytest

from secure_bloom.errors import PolicyError
from secure_bloom.lakes.hive_partitions import (
    partition_fields,
    partition_scalar,
    partition_values,
)


def test_folders_below_the_path_give_values() -> None:
    file = "/lake/t=0/table/country=it/day=2024-03-01/part-0.parquet"
    assert partition_values(file, ["/lake/t=0/table"]) == {"country": "it", "day": "2024-03-01"}


def test_of_two_paths_the_shorter_counts() -> None:
    file = "/lake/country=it/day=1/x.parquet"
    assert partition_values(file, ["/lake/country=it", "/lake"]) == {"country": "it", "day": "1"}


def test_names_and_values_are_percent_decoded() -> None:
    file = "/lake/a%20b=c%2Fd/x.parquet"
    assert partition_values(file, ["/lake"]) == {"a b": "c/d"}


def test_the_default_partition_is_null() -> None:
    values = partition_values("/lake/n=__HIVE_DEFAULT_PARTITION__/x.parquet", ["/lake"])
    assert values == {"n": None}
    (field,) = partition_fields([values, {"n": "1"}])
    assert field.type == pa.int32()
    assert partition_scalar(field, values).as_py() is None
    assert partition_scalar(field, {"n": "1"}).as_py() == 1


@pytest.mark.parametrize("text", ["2147483648", "1.5", "0x1", ""])
def test_a_column_with_one_text_is_of_texts(text: str) -> None:
    (field,) = partition_fields([{"n": "1"}, {"n": text}])
    assert field.type == pa.string()


def test_a_folder_whose_name_is_no_text_is_an_error() -> None:
    with pytest.raises(PolicyError, match="UTF-8"):
        partition_values("/lake/n=\udcff/x.parquet", ["/lake"])
