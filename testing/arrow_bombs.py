"""Arrow schemas that are small as bytes, and large once Arrow has decoded them."""

from __future__ import annotations

import base64
import io
import struct

import pyarrow as pa
import pyarrow.parquet as pq

from secure_bloom.parquet.flat_tables import root, table_at, tables, vector

#: Bytes before the tables of a message; bytes after the footer of a file.
_PREFIX, _END = 8, 10
#: Fields of tables, by their positions.
_FIELDS, _CHILDREN, _HEADER, _SCHEMA = 1, 5, 2, 1


def shared_children(depth: int, padding: int = 0) -> bytes:
    """A message of a schema: both members of each structure are the next structure.

    It has ``2 ** (depth + 1) - 1`` fields.  Arrow decodes no more than eight tables for each byte,
    so the schema is padded.
    """
    message = _nested(depth, padding).serialize().to_pybytes()
    return message[:_PREFIX] + _shared(message[_PREFIX:], _HEADER, depth)


def arrow_file(depth: int, padding: int) -> bytes:
    """An Arrow file whose footer has such a schema."""
    sink = io.BytesIO()
    pa.ipc.new_file(sink, _nested(depth, padding)).close()
    content = sink.getvalue()
    start = len(content) - _END - struct.unpack_from("<i", content, len(content) - _END)[0]
    return content[:start] + _shared(content[start:], _SCHEMA, depth)


def parquet_with(message: bytes) -> bytes:
    """A Parquet file whose footer has a message as the writer's Arrow schema."""
    sink, table = io.BytesIO(), pa.table({"a": [1, 2, 3]})
    with pq.ParquetWriter(sink, table.schema, store_schema=False) as writer:
        writer.write_table(table)
        writer.add_key_value_metadata({"ARROW:schema": base64.b64encode(message).decode()})
    return sink.getvalue()


def _nested(depth: int, padding: int) -> pa.Schema:
    kind: pa.DataType = pa.int64()
    for _ in range(depth):
        kind = pa.struct([pa.field("a", kind), pa.field("b", pa.int8())])
    return pa.schema([pa.field("top", kind)], metadata={"padding": "x" * padding})


def _shared(tables_of: bytes, schema_field: int, depth: int) -> bytes:
    data = bytearray(tables_of)
    schema = table_at(data, root(data), schema_field)
    assert schema is not None
    (field,) = tables(data, schema, _FIELDS)
    for _ in range(depth):
        first, _ = tables(data, field, _CHILDREN)
        second = vector(data, field, _CHILDREN)[0] + 4
        struct.pack_into("<I", data, second, first - second)
        field = first
    return bytes(data)
