"""The types of partition columns, by what all folders say."""

from __future__ import annotations

import math
from datetime import date

import pyarrow as pa
import pytest

from secure_bloom.errors import FormatError
from secure_bloom.lakes.folder_types import folder_type, folder_values


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
