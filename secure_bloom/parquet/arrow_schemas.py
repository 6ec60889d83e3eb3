"""Count the bytes that a serialized Arrow schema takes when decoded, before Arrow decodes it.

Several fields may refer to the same children, text or metadata, and Arrow decodes these again for
each field: a schema of one megabyte can claim millions of fields.  "Arrow Columnar Format",
"Serialization and Interprocess Communication", Schema.fbs and Message.fbs.
"""

from __future__ import annotations

import base64
import re
import struct
from collections.abc import Iterable
from contextlib import suppress
from typing import Final

from secure_bloom.errors import FormatError
from secure_bloom.parquet.flat_tables import root, scalar, table_at, tables, vector
from secure_bloom.running.memory_budget import refuse_beyond

_BASE64: Final = re.compile(r"[A-Za-z0-9+/]*")
_CONTINUES: Final = b"\xff" * 4
#: Fields of tables, by their positions.
_HEADER_TYPE, _HEADER, _SCHEMA = 1, 2, 1
_FIELDS, _SCHEMA_METADATA = 1, 2
_NAME, _TYPE, _CHILDREN, _METADATA = 0, 3, 5, 6
_KEY, _VALUE = 0, 1
#: Of a type: the zone of a timestamp, the ids of a union.
_TYPE_LIST: Final = 1
#: What Arrow's objects take: a field with its type, and a pair of metadata.
_FIELD_BYTES, _PAIR_BYTES = 1_000, 128
#: Arrow takes 64 levels.
_DEEPEST: Final = 100


def check_arrow_texts(texts: Iterable[str | None]) -> None:
    """Raise MemoryBudgetError if a text of a footer is an Arrow schema that takes too much memory.

    Raises FormatError if its tables are damaged.  Each text is a whole message in Base64.
    """
    for text in filter(None, texts):
        # As much as Arrow decodes: up to the first other character.
        digits = _BASE64.match(text)[0]  # type: ignore[index]
        # A digit alone is no byte; two or three at the end are one or two.
        digits = digits[:-1] if len(digits) % 4 == 1 else digits
        message = base64.b64decode(digits + "=" * (-len(digits) % 4))
        # Old writers have no mark before the length.
        tables_at = 8 if message.startswith(_CONTINUES) else 4
        refuse_beyond(message_size(message[tables_at:]), "the writer's Arrow schema")


def message_size(message: bytes) -> int:
    """Return about how many bytes a schema message takes when decoded. Other messages return 0.

    ``message`` is without its length. Raises FormatError if its tables are damaged.
    """
    try:
        at = root(message)
        is_schema = scalar(message, at, _HEADER_TYPE, "<B") == _SCHEMA
        schema = table_at(message, at, _HEADER) if is_schema else None
    except struct.error:
        raise FormatError("the tables of an Arrow schema are damaged") from None
    return 0 if schema is None else schema_size(message, schema)


def schema_size(data: bytes, schema: int) -> int:
    """Return about how many bytes the schema at an offset takes when decoded.

    Raises FormatError if its tables are damaged.
    """
    try:
        counted = _Counted(data)
        fields = sum(counted.field(it) for it in tables(data, schema, _FIELDS))
        return fields + counted.metadata(schema, _SCHEMA_METADATA)
    except (struct.error, ValueError):
        raise FormatError("the tables of an Arrow schema are damaged") from None


class _Counted:
    """The decoded sizes of fields and metadata. Each offset is counted once."""

    def __init__(self, data: bytes) -> None:
        self._data = data
        self._fields: dict[int, int] = {}
        self._pairs: dict[int, int] = {}

    def field(self, at: int, depth: int = 0) -> int:
        """Return how many bytes the field at an offset takes, with all fields inside it."""
        if at in self._fields:
            return self._fields[at]
        if depth > _DEEPEST:
            raise FormatError(f"an Arrow schema nests deeper than {_DEEPEST} levels")
        data = self._data
        size = _FIELD_BYTES + _length(data, at, _NAME) + self.metadata(at, _METADATA)
        kind = table_at(data, at, _TYPE)
        if kind is not None:
            # Of other types this may be a number, which leads anywhere.
            with suppress(struct.error, ValueError):
                size += _length(data, kind, _TYPE_LIST)
        size += sum(self.field(it, depth + 1) for it in tables(data, at, _CHILDREN))
        self._fields[at] = size
        return size

    def metadata(self, table: int, field: int) -> int:
        """Return how many bytes the pairs of keys and values in a field take."""
        start, count = vector(self._data, table, field)
        if not count:
            return 0
        if start not in self._pairs:
            self._pairs[start] = sum(
                _PAIR_BYTES + sum(_length(self._data, it, part) for part in (_KEY, _VALUE))
                for it in tables(self._data, table, field)
            )
        return self._pairs[start]


def _length(data: bytes, table: int, field: int) -> int:
    """Return the length of a text or a list, or 0 if there is none."""
    start, count = vector(data, table, field)
    if start + count > len(data):
        raise ValueError("a text is longer than its bytes")
    return count
