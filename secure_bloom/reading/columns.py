"""The columns of a table: every file's Arrow schema, as pyarrow reads it, and what they make up.

The schema of a table is the union of its files' schemas: a column that a file lacks is null there,
and where files differ the wider type counts, as pyarrow unifies them.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

import pyarrow as pa
import pyarrow.parquet as pq

from secure_bloom import compact
from secure_bloom.errors import FormatError, PolicyError
from secure_bloom.metadata import ColumnOrder, FileMetaData, KeyValue, SchemaElement
from secure_bloom.schema import Leaf, leaves

_MAGIC = b"PAR1"


@dataclass(frozen=True, slots=True, kw_only=True)
class FileColumns:
    """The columns of one file: the leaves of its schema, and its Arrow schema.

    ``ordinals`` finds a leaf by its dotted path; a path that two leaves share is in it once, as
    ``None``.  ``nodes`` has the schema elements of each top-level column, depth first.
    """

    leaves: tuple[Leaf, ...]
    arrow: pa.Schema
    ordinals: dict[str, int | None] = field(default_factory=dict)
    nodes: dict[str, list[SchemaElement]] = field(default_factory=dict)

    def below(self, name: str) -> list[int]:
        """The ordinals of the leaves of a top-level column; empty where there is no such column."""
        return [i for i, leaf in enumerate(self.leaves) if leaf.path[0] == name]


class SchemaCache:
    """The columns of files already seen: those of one table mostly say the same bytes."""

    def __init__(self) -> None:
        self._known: dict[tuple[bytes, bytes], FileColumns] = {}
        self._prefixes: list[bytes] = []

    def columns(self, footer: bytes, texts: Sequence[KeyValue]) -> FileColumns:
        """The columns that the bytes of a FileMetaData describe, with its key_value_metadata."""
        marks = [text for text in texts if text.key == "ARROW:schema"]
        arrow = (marks[0].value or "").encode() if marks else b""
        prefix = next((p for p in self._prefixes if footer.startswith(p)), None)
        if prefix is None:
            prefix = _schema_prefix(footer)
            self._prefixes.append(prefix)
        found = self._known.get((prefix, arrow))
        if found is None:
            found = self._known[prefix, arrow] = _columns(footer, marks)
        return found


def _schema_prefix(footer: bytes) -> bytes:
    """All of a footer up to the end of its schema, which stands second in it."""
    tree, _ = compact.decode(footer)
    _, elements = tree.fields.get(2, (None, None))
    if not isinstance(elements, compact.Sequence):
        raise FormatError("FileMetaData.schema is not a list")
    encoded = b"".join(
        compact.encode(element) for element in elements.items if isinstance(element, compact.Struct)
    )
    start = footer.find(encoded)
    # Written in another form than ours: then no other file is known by it.
    return footer if start < 0 else footer[: start + len(encoded)]


def _columns(footer: bytes, marks: Sequence[KeyValue]) -> FileColumns:
    tree, _ = compact.decode(footer)
    schema = FileMetaData(tree).schema
    found = leaves(schema)
    ordinals: dict[str, int | None] = {}
    for ordinal, leaf in enumerate(found):
        ordinals[leaf.name] = None if leaf.name in ordinals else ordinal
    return FileColumns(
        leaves=found,
        arrow=_arrow_schema(schema, marks),
        ordinals=ordinals,
        nodes={nodes[0].name: nodes for nodes in _top_level(schema)},
    )


def _top_level(schema: list[SchemaElement]) -> Iterable[list[SchemaElement]]:
    """The nodes of each column right below the root; the schema is known to be one tree."""
    position = 1
    while position < len(schema):
        end, open_nodes = position, 1
        while open_nodes:
            open_nodes += (schema[end].num_children or 0) - 1
            end += 1
        yield schema[position:end]
        position = end


def _arrow_schema(schema: list[SchemaElement], marks: Sequence[KeyValue]) -> pa.Schema:
    """What pyarrow makes of a schema, asked by a file without rows."""
    kept = [KeyValue.of(key=mark.key, value=mark.value or "") for mark in marks]
    footer = FileMetaData.of(
        version=2, schema=schema, num_rows=0, row_groups=[], key_value_metadata=kept
    ).encode()
    file = b"".join([_MAGIC, footer, len(footer).to_bytes(4, "little"), _MAGIC])
    try:
        arrow = pq.ParquetFile(pa.BufferReader(file), coerce_int96_timestamp_unit="us").schema_arrow
    except (pa.ArrowException, OSError):
        raise FormatError("pyarrow makes no Arrow schema of the file's") from None
    return arrow.remove_metadata()


def unite(schemas: Iterable[tuple[str, pa.Schema]]) -> pa.Schema:
    """The union of the schemas of files, given with their paths; PolicyError where they clash."""
    known: dict[pa.Schema, str] = {}
    for path, schema in schemas:
        known.setdefault(schema, path)
    united: pa.Schema | None = None
    for schema, path in known.items():
        try:
            parts = [schema] if united is None else [united, schema]
            united = pa.unify_schemas(parts, promote_options="permissive")
        except pa.ArrowException as exc:
            raise PolicyError(
                f"its columns do not fit those of the files before: {exc}",
                hint="read files of different tables one by one",
                path=path,
            ) from None
    if united is None:
        raise PolicyError("there are no files, hence no columns")
    return united


def has_type_order(orders: Sequence[ColumnOrder] | None, ordinal: int) -> bool:
    """Whether the column's min_value and max_value are in the order of its type."""
    if orders is None or ordinal >= len(orders):
        return False
    return orders[ordinal].TYPE_ORDER is not None
