"""Types of a Delta schema in Arrow, as deltalake has them; files may have more members."""

from __future__ import annotations

import json

import deltalake
import pyarrow as pa
import pytest

from secure_bloom.errors import FormatError, UnsupportedFeatureError
from secure_bloom.lakes.delta.arrow_types import (
    arrow_field,
    arrow_type,
    partition_value,
)
from secure_bloom.reading.table.table_state import of_table

INNER = pa.struct({"a": pa.int64(), "b": pa.string()})
SCHEMA = pa.schema(
    {
        "l": pa.int64(), "i": pa.int32(), "s": pa.int16(), "b": pa.int8(), "f": pa.float32(),
        "d": pa.float64(), "t": pa.string(), "o": pa.bool_(), "x": pa.binary(),
        "day": pa.date32(), "at": pa.timestamp("us", "UTC"), "local": pa.timestamp("us"),
        "n": pa.decimal128(12, 3), "in": INNER, "list": pa.list_(INNER),
        "map": pa.map_(pa.string(), pa.list_(pa.int32())),
    }
)  # fmt: skip


def test_types_are_those_that_were_written() -> None:
    written = json.loads(deltalake.Schema.from_arrow(SCHEMA).to_json())
    found = pa.schema([arrow_field(column) for column in written["fields"]])
    assert [field.type for field in found] == [field.type for field in SCHEMA]


@pytest.mark.parametrize("kind", ["interval", "variant", "decimal(40, 2)", 5, {"type": "set"}])
def test_a_type_that_is_not_known_is_refused(kind: object) -> None:
    with pytest.raises(UnsupportedFeatureError, match="not known here"):
        arrow_type(kind)


def test_an_instant_may_say_that_it_is_utc() -> None:
    of = pa.timestamp("us", "UTC")
    texts = ["2026-01-31 12:00:00", "2026-01-31T12:00:00Z", "2026-01-31T12:00:00.000000Z"]
    assert len({partition_value(text, of) for text in texts}) == 1
    with pytest.raises(FormatError):
        partition_value("noon", of)


def test_members_that_the_table_has_no_more_are_left_out() -> None:
    table = pa.struct({"b": pa.string(), "c": pa.int64()})
    wanted = pa.struct({"b": pa.string(), "c": pa.int64()})
    assert of_table(INNER, table) == wanted
    assert of_table(pa.list_(INNER), pa.list_(table)) == pa.list_(wanted)
    stored, mapped = (pa.map_(pa.string(), it) for it in (INNER, table))
    assert of_table(stored, mapped) == pa.map_(pa.string(), wanted)
    # What the file has in another type keeps it.
    assert of_table(pa.int32(), pa.int64()) == pa.int32()
