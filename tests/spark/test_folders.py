"""The types of partition columns, by what all folders say."""

from __future__ import annotations

from datetime import date

import pyarrow as pa
import pytest

from secure_bloom.errors import FormatError
from secure_bloom.spark.folders import folder_type, folder_values


@pytest.mark.parametrize(
    ("texts", "wanted"),
    [
        (["1", "-2", None], "int"),
        (["01"], "int"),
        (["1", "2147483648"], "bigint"),
        (["1", "9223372036854775808"], "string"),
        (["1", "2.5"], "double"),
        (["1.5e3"], "double"),
        (["1d"], "string"),
        (["٣"], "string"),
        (["2024-03-01"], "date"),
        (["2024-02-30"], "string"),
        (["2024-03-01", "soon"], "string"),
        (["2024-03-01 10:00:00"], "string"),
        ([None], "string"),
        ([], "string"),
    ],
)
def test_types(texts: list[str | None], wanted: str) -> None:
    assert folder_type(texts).simpleString() == wanted


def test_values() -> None:
    found = folder_values("day", ["2024-03-01", None], pa.date32())
    assert found.to_pylist() == [date(2024, 3, 1), None]


def test_a_text_that_is_none_of_the_type_is_not_quoted() -> None:
    with pytest.raises(FormatError, match="column day: the name of a folder holds no date") as e:
        folder_values("day", ["soon"], pa.date32())
    assert "soon" not in str(e.value)
