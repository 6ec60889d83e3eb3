"""Read and write Avro object container files, whose records may be hostile.

fastavro decodes the records of a block.  The bytes of all blocks are counted as they are unpacked,
and a schema whose values may take no bytes is refused: a short file could claim any number of them.
"""

from __future__ import annotations

import io
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Final

from secure_bloom.errors import FormatError, imported_for
from secure_bloom.lakes.avro_blocks import AvroBlocks, kept_by_text, schema_of
from secure_bloom.running.memory_budget import MemoryShare, memory_budget, refuse_beyond

_WHAT: Final = "the metadata of the table"
#: What an encoded byte of a text takes.
_TEXTS: Final = 4
PURPOSE: Final = "reading the manifests of a Paimon table"


@dataclass(frozen=True, slots=True, kw_only=True)
class AvroFile:
    """The schema of a file, and its records in their order."""

    schema: Any
    records: tuple[dict[str, Any], ...]


def decoding_room() -> MemoryShare:
    """Return the room for the decoded records of several files: the memory budget."""
    return MemoryShare(memory_budget())


def decode(content: bytes, room: MemoryShare) -> AvroFile:
    """Return the records of a container file. Their decoded size is taken from ``room``.

    Logical types are left out: a time stays a number, as the file has it.

    Raises FormatError for damaged bytes, UnsupportedFeatureError for a codec or a schema that is
    not read here, and MemoryBudgetError for more records than there is room for.
    """
    # What is unpacked is not kept; only the records count.
    blocks, records = AvroBlocks(io.BytesIO(content), lambda _: None), list[dict[str, Any]]()
    with imported_for(PURPOSE, "paimon"):
        import fastavro
    read = RecordReader(blocks, fastavro)
    for number, data in blocks:
        size = _TEXTS * len(data) + number * blocks.cost.fixed
        for record in read.records(number, data):
            records.append(record)
            size += blocks.cost.of_lists(record)
            refuse_beyond(room.used + size, _WHAT)
        if not room.take(size):
            refuse_beyond(room.used + size, _WHAT)
    return AvroFile(schema=blocks.schema, records=tuple(records))


def encode(schema: Any, records: Sequence[dict[str, Any]]) -> bytes:
    """Return a container file with these records, compressed with deflate.

    Every reader of Avro has this codec (Avro 1.12, "Required Codecs").
    """
    with imported_for(PURPOSE, "paimon"):
        import fastavro
    out, parsed = io.BytesIO(), fastavro.parse_schema(schema)
    branches = parsed if isinstance(parsed, list) else ()
    names = [it["name"] for it in branches if isinstance(it, dict) and it["type"] == "record"]
    # With the name of its branch, a record is not validated against each branch of the union.
    named = [(names[0], it) for it in records] if len(names) == 1 else records
    fastavro.writer(out, schema, named, codec="deflate")
    return out.getvalue()


def _without_logical_types(schema: Any) -> Any:
    if isinstance(schema, list):
        return [_without_logical_types(branch) for branch in schema]
    if not isinstance(schema, dict):
        return schema
    return {
        key: _without_logical_types(value) if isinstance(value, dict | list) else value
        for key, value in schema.items()
        if key not in ("logicalType", "default")
    }


def _without_fields(schema: Any) -> Any:
    """Return a schema in which records have no fields. fastavro uses it to skip records.

    ``schema`` is a record, or a union with records.
    """
    if isinstance(schema, list):
        return list(map(_without_fields, schema))
    return {**schema, "fields": []} if isinstance(schema, dict) else schema


@kept_by_text
def _for_fastavro(text: bytes) -> tuple[Any, Any]:
    """Return two schemas as fastavro parses them: one reads the records, the other skips them."""
    import fastavro

    schema = _without_logical_types(schema_of(text)[0])
    try:
        # A record that is read as one without fields is passed over.
        return fastavro.parse_schema(schema), fastavro.parse_schema(_without_fields(schema))
    except Exception as exc:
        raise FormatError("the schema of an Avro file is invalid") from exc


class RecordReader:
    """Reads the records of blocks by fastavro, one at a time.

    No record is decoded that could take more memory than the budget.
    """

    def __init__(self, blocks: AvroBlocks, fastavro: Any) -> None:
        self._cost, self._read = blocks.cost, fastavro.schemaless_reader
        self._schema, self._nothing = _for_fastavro(blocks.schema_text)

    def records(self, number: int, data: bytes) -> Iterator[dict[str, Any]]:
        """Yield the records of a block. Raises FormatError if they are damaged."""
        stream, is_large = io.BytesIO(data), self._cost.most(1, len(data)) > memory_budget()
        for _ in range(number):
            if is_large:
                start = stream.tell()
                self._next(stream, self._nothing)
                refuse_beyond(self._cost.most(1, stream.tell() - start), "a record of an Avro file")
                stream.seek(start)
            yield self._next(stream, None)
        if stream.tell() != len(data):
            raise FormatError(f"{len(data) - stream.tell()} bytes follow the records of a block")

    def _next(self, stream: io.BytesIO, wanted: Any) -> dict[str, Any]:
        try:
            found = self._read(stream, self._schema, wanted)
        except Exception as exc:
            # Without the text, which may quote bounds of columns.
            raise FormatError("a record of an Avro file is damaged") from exc
        if not isinstance(found, dict):
            raise FormatError("an Avro file has a record without fields")
        return found
