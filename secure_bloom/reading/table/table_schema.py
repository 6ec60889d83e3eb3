"""The schema of a table: the union of the Arrow schemas of its files, as pyarrow reads them.

A column that a file lacks is null there.  If files differ in a column's type, the table has a type
that holds all their values.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

import pyarrow as pa
import pyarrow.parquet as pq

from secure_bloom.errors import FormatError, PolicyError
from secure_bloom.parquet.footer.scan import FooterScan, FooterSchema
from secure_bloom.parquet.memory_files import without_data
from secure_bloom.parquet.schema import Leaf, renamed_elements, renamed_leaves
from secure_bloom.parquet.structures.metadata import (
    FileMetaData,
    KeyValue,
    SchemaElement,
)
from secure_bloom.reading.table.type_promotion import ClashError, common_fields
from secure_bloom.storage.column_mapping import ColumnMapping


@dataclass(frozen=True, slots=True, kw_only=True)
class FileColumns:
    """The columns of one file: the leaves of its schema, and its Arrow schema.

    ``ordinals`` maps a path to its leaf, or to ``None`` if two leaves share it.  ``elements`` maps
    a list's path to its one leaf.  ``nodes`` has the schema elements of each top-level column,
    depth first.  ``renamed`` is the whole schema with the table's names, if the file has others.
    """

    leaves: tuple[Leaf, ...]
    arrow: pa.Schema
    ordinals: dict[tuple[str, ...], int | None] = field(default_factory=dict)
    elements: dict[tuple[str, ...], int | None] = field(default_factory=dict)
    nodes: dict[str, list[SchemaElement]] = field(default_factory=dict)
    renamed: tuple[SchemaElement, ...] = ()

    def below(self, name: str) -> list[int]:
        """Return the ordinals of the leaves of a top-level column, or [] if there is none."""
        return [i for i, leaf in enumerate(self.leaves) if leaf.path[0] == name]


class SchemaCache:
    """The columns of files already read, by the bytes of their schemas. Safe for threads.

    ``names`` are the table's names of columns, if its files have others.
    """

    def __init__(self, names: ColumnMapping | None = None) -> None:
        self._names = names
        self._known: dict[tuple[bytes, bytes], FileColumns] = {}

    def columns(self, footer: FooterScan) -> FileColumns:
        """Return the columns of a FileMetaData.

        Raises FormatError for a schema that is not a whole tree.
        """
        schema, texts = footer.schema, footer.metadata.key_value_metadata or []
        marks = [text for text in texts if text.key == "ARROW:schema"]
        arrow = (marks[0].value or "").encode() if marks else b""
        found = self._known.get((schema.encoded, arrow))
        if found is None:
            found = self._known[schema.encoded, arrow] = _columns(schema, marks, self._names)
        return found


def _columns(
    schema: FooterSchema, marks: Sequence[KeyValue], names: ColumnMapping | None
) -> FileColumns:
    leaves: tuple[Leaf, ...] = schema.leaves
    elements_of_file = schema.elements
    if names is not None:
        leaves = renamed_leaves(schema.elements, names)
        elements_of_file = renamed_elements(schema.elements, names)
    ordinals: dict[tuple[str, ...], int | None] = {}
    elements: dict[tuple[str, ...], int | None] = {}
    for ordinal, leaf in enumerate(leaves):
        ordinals[leaf.path] = None if leaf.path in ordinals else ordinal
        if leaf.is_repeated:
            for length in range(1, len(leaf.path) + 1):
                above = leaf.path[:length]
                elements[above] = None if above in elements else ordinal
    return FileColumns(
        leaves=leaves,
        arrow=_arrow_schema(elements_of_file, marks),
        ordinals=ordinals,
        elements=elements,
        nodes={nodes[0].name: nodes for nodes in _top_level(elements_of_file)},
        renamed=() if names is None else tuple(elements_of_file),
    )


def _top_level(schema: list[SchemaElement]) -> Iterable[list[SchemaElement]]:
    """Yield the nodes of each column right below the root. The schema is known to be one tree."""
    position = 1
    while position < len(schema):
        end, open_nodes = position, 1
        while open_nodes:
            open_nodes += (schema[end].num_children or 0) - 1
            end += 1
        yield schema[position:end]
        position = end


def _arrow_schema(schema: list[SchemaElement], marks: Sequence[KeyValue]) -> pa.Schema:
    """Return the Arrow schema that pyarrow reads from a file with this schema."""
    kept = [KeyValue.of(key=mark.key, value=mark.value or "") for mark in marks]
    footer = FileMetaData.of(
        version=2, schema=schema, num_rows=0, row_groups=[], key_value_metadata=kept
    ).encode()
    file = pa.BufferReader(without_data(footer))
    try:
        arrow = pq.ParquetFile(file, coerce_int96_timestamp_unit="us").schema_arrow
    except (pa.ArrowException, OSError):
        raise FormatError("pyarrow cannot make an Arrow schema of the file's schema") from None
    return arrow.remove_metadata()


def unite(schemas: Iterable[tuple[str, pa.Schema]]) -> pa.Schema:
    """Return the union of the schemas of files, given with their paths.

    Raises PolicyError, whichever columns the read asks for, if a file has two columns of one name,
    or if no type holds all values of a column.
    """
    known: dict[pa.Schema, str] = {}
    last = None
    for path, schema in schemas:
        # Most files share the schema object; to compare schemas takes long.
        if schema is not last:
            known.setdefault(schema, path)
        last = schema
    if not known:
        raise PolicyError("there are no files, hence no columns")
    for schema, path in known.items():
        if len(set(schema.names)) < len(schema.names):
            twice = next(name for name in schema.names if schema.names.count(name) > 1)
            raise PolicyError("the file has two columns of that name", path=path, column=twice)
    if len(known) == 1:
        return next(iter(known))
    try:
        return pa.schema(common_fields([list(schema) for schema in known]))
    except ClashError as clash:
        raise _clash(clash.path[0], known) from None


def _clash(name: str, known: Mapping[pa.Schema, str]) -> PolicyError:
    """Return an error that names the first two files whose column types have no common type."""
    having = [(schema.field(name), path) for schema, path in known.items() if name in schema.names]
    for one, other in itertools.combinations(having, 2):
        try:
            common_fields([[one[0]], [other[0]]])
        except ClashError as clash:
            types, column = clash.types, ".".join(clash.path)
            break
    else:
        (one, other), column = having[:2], name
        types = [one[0].type, other[0].type]
    return PolicyError(
        f"it is {types[0]} in {one[1]} and {types[1]} here, and no type has all values of both",
        hint="read the files one by one, or write one of them again with the other's type",
        path=other[1],
        column=column,
    )
