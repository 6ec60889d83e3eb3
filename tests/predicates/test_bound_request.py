"""What is asked of a table: columns out, columns needed, and the order of both."""

from __future__ import annotations

import pyarrow as pa
import pytest

from secure_bloom.errors import PolicyError
from secure_bloom.predicates.bound_request import Request, request, whole_schema
from secure_bloom.predicates.from_text import from_text

SCHEMA = pa.schema({"a": pa.int32(), "b": pa.struct({"c": pa.string()}), "day": pa.string()})
DAY = pa.field("day", pa.date32())


def asked(columns: list[str] | None, where: str | None = None) -> Request:
    return request(
        whole_schema(SCHEMA, [DAY]), [DAY], columns, None if where is None else from_text(where), []
    )


def test_partition_columns_come_last_in_the_type_of_their_folders() -> None:
    found = asked(None)
    assert found.output_schema == pa.schema([SCHEMA.field("a"), SCHEMA.field("b"), DAY])
    assert found.no_rows.schema == found.output_schema
    assert found.no_rows.num_rows == 0


def test_columns_come_in_the_order_of_the_request_and_once() -> None:
    assert asked(["day", "a", "day"]).output_schema.names == ["day", "a"]


def test_a_predicate_needs_columns_that_are_not_put_out() -> None:
    found = asked(["a"], "b.c = 'x'")
    assert found.filtered == ("b",)
    assert set(found.needed) == {"a", "b"}
    assert found.output_schema.names == ["a"]


def test_a_column_that_is_not_there_is_named() -> None:
    with pytest.raises(PolicyError, match="emial"):
        asked(["emial"])
    with pytest.raises(PolicyError, match="emial"):
        asked(None, "emial = 'x'")
    with pytest.raises(PolicyError, match="no column"):
        asked([])
