"""Values of partition columns, from the names of folders."""

from __future__ import annotations

import math
from datetime import date

import pyarrow as pa
import pytest

from secure_bloom.errors import FormatError, PolicyError
from secure_bloom.lakes.hive_partitions import (
    folder_type,
    folder_values,
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


@pytest.mark.parametrize(
    ("texts", "wanted"),
    [
        (["1", "-2", None], "int32"),
        (["01"], "int32"),
        (["1", "2147483648"], "int64"),
        (["1", "9223372036854775808"], "string"),
        (["1", "2.5"], "double"),
        (["1.5e3"], "double"),
        (["+1", "2"], "int32"),
        (["+1.5", ".5"], "double"),
        (["NaN", "1.5", "7"], "double"),
        (["Infinity", "-Infinity"], "double"),
        (["nan"], "string"),
        (["inf"], "string"),
        (["+"], "string"),
        (["-+1"], "string"),
        (["1d"], "string"),
        (["٣"], "string"),
        (["2024-03-01"], "date32[day]"),
        (["2024-02-30"], "string"),
        (["2024-03-01", "soon"], "string"),
        (["2024-03-01 10:00:00"], "string"),
        ([None], "string"),
        ([], "string"),
    ],
)
def test_texts_of_folders_have_the_type_that_spark_gives_them(
    texts: list[str | None], wanted: str
) -> None:
    assert str(folder_type(texts)) == wanted


def test_texts_of_folders_become_values_of_that_type() -> None:
    found = folder_values("day", ["2024-03-01", None], pa.date32())
    assert found.to_pylist() == [date(2024, 3, 1), None]


def test_numbers_as_java_spells_them() -> None:
    assert folder_values("n", ["+1", "-2", None], pa.int32()).to_pylist() == [1, -2, None]
    found = folder_values("n", ["+1.5", ".5", "Infinity", "-Infinity", "+Infinity"], pa.float64())
    assert found.to_pylist() == [1.5, 0.5, math.inf, -math.inf, math.inf]
    assert math.isnan(folder_values("n", ["NaN"], pa.float64())[0].as_py())
    assert folder_values("n", ["+1"], pa.string()).to_pylist() == ["+1"]


def test_a_text_that_is_none_of_the_type_is_not_quoted() -> None:
    with pytest.raises(FormatError, match="column day: the name of a folder is not a date") as e:
        folder_values("day", ["soon"], pa.date32())
    assert "soon" not in str(e.value)
