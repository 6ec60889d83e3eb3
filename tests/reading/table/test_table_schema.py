"""The schema of a table is the union of those of its files."""

from __future__ import annotations

import pyarrow as pa
import pytest

from secure_bloom.errors import SecureBloomError
from secure_bloom.reading.table.table_schema import unite


def test_columns_of_all_files_stand_in_the_order_of_their_appearance() -> None:
    one = pa.schema([("a", pa.int64()), ("b", pa.string())])
    other = pa.schema([("c", pa.int64()), ("a", pa.int64())])
    assert unite([("x", one), ("y", other)]).names == ["a", "b", "c"]


def test_a_type_that_grew_is_the_larger_one() -> None:
    small, large = pa.schema([("a", pa.int32())]), pa.schema([("a", pa.int64())])
    assert unite([("x", small), ("y", large)]).field("a").type == pa.int64()


def test_types_with_nothing_in_common_name_a_file() -> None:
    text, number = pa.schema([("a", pa.string())]), pa.schema([("a", pa.int64())])
    with pytest.raises(SecureBloomError) as caught:
        unite([("x", text), ("y", number)])
    assert "a" in str(caught.value)
