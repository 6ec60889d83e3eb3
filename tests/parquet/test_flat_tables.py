"""Tables of FlatBuffers as Arrow writes them."""

from __future__ import annotations

import struct

import pyarrow as pa
import pytest

from secure_bloom.parquet.flat_tables import field_at, root, scalar, table_at, tables, vector

MESSAGE = pa.schema([("one", pa.int8()), ("two", pa.string())]).serialize().to_pybytes()[8:]


def test_fields_are_found_by_their_positions() -> None:
    top = root(MESSAGE)
    assert scalar(MESSAGE, top, 1, "<B") == 1
    assert scalar(MESSAGE, top, 3, "<q") == 0
    assert (field_at(MESSAGE, top, 9), table_at(MESSAGE, top, 9)) == (0, None)
    schema = table_at(MESSAGE, top, 2)
    assert schema is not None
    names = [vector(MESSAGE, it, 0) for it in tables(MESSAGE, schema, 1)]
    assert [MESSAGE[start : start + size] for start, size in names] == [b"one", b"two"]


def test_what_leads_out_of_the_bytes_is_an_error() -> None:
    for cut in range(len(MESSAGE)):
        try:
            schema = table_at(MESSAGE[:cut], root(MESSAGE[:cut]), 2)
            assert schema is None or len(tables(MESSAGE[:cut], schema, 1)) == 2
        except (struct.error, ValueError):
            continue
    with pytest.raises(ValueError, match="longer"):
        tables(struct.pack("<IHHIII", 12, 6, 4, 4, 8, 4) + b"\xff" * 4, 8, 0)
