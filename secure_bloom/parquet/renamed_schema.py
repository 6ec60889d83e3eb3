"""A file's schema, with the table's names of columns in place of the file's.

Fields are found by their name in the file, or by ``SchemaElement.field_id``.  The nodes that the
format puts into lists and maps keep their names.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from secure_bloom.errors import FormatError, UnsupportedFeatureError
from secure_bloom.parquet.schema import MAX_DEPTH, Leaf, Leaves, leaves
from secure_bloom.parquet.structures import trees
from secure_bloom.parquet.structures.metadata import SchemaElement
from secure_bloom.storage.column_mapping import ColumnMapping


def renamed_elements(schema: Sequence[SchemaElement], names: ColumnMapping) -> list[SchemaElement]:
    """Return the nodes of a whole schema, renamed.

    A node that the table does not have gets a free name.
    """
    nodes = iter(schema)
    root = next(nodes, None)
    if root is None:
        return []
    return [root, *_fields(nodes, root.num_children or 0, names, MAX_DEPTH)]


def renamed_leaves(schema: Sequence[SchemaElement], names: ColumnMapping) -> Leaves:
    """Return the leaves of a schema by the table's names. Each leaf knows its path in the file."""
    # The file's own names are kept too, because path_in_schema is compared with them.
    stored = leaves(list(schema))
    named = leaves(renamed_elements(schema, names))
    return Leaves(map(_renamed, stored, named))


def _renamed(stored: Leaf, named: Leaf) -> Leaf:
    return Leaf(
        path=named.path,
        element=named.element,
        type=stored.type,
        repetitions=stored.repetitions,
        stored_path=stored.path,
    )


def _fields(
    nodes: Iterator[SchemaElement], count: int, names: ColumnMapping, depth: int
) -> Iterator[SchemaElement]:
    """Yield the fields of a structure, and all nodes below them."""
    _refuse_too_deep(depth)
    for _ in range(count):
        node = _next(nodes)
        if names.are_ids and node.field_id is None:
            raise UnsupportedFeatureError(
                "the file has no ids of fields, by which its table finds the columns",
                hint="read the table with its own engine",
            )
        found = names.find(node.name, node.field_id)
        if found is None:
            # A column that the table has dropped: its name here may be another column's there.
            yield _with_name(node, names.unused(node.name))
            yield from _below(nodes, node, ColumnMapping(), depth)
        else:
            yield _with_name(node, found.name)
            yield from _below(nodes, node, found.inside, depth)


def _below(
    nodes: Iterator[SchemaElement], node: SchemaElement, names: ColumnMapping | None, depth: int
) -> Iterator[SchemaElement]:
    count = node.num_children or 0
    if names is None or not (names.members or names.inner):
        yield from _as_stored(nodes, count, depth - 1)
    elif names.members:
        yield from _fields(nodes, count, names, depth - 1)
    else:
        yield from _container(nodes, count, names.inner, depth - 1)


def _container(
    nodes: Iterator[SchemaElement], count: int, inner: Sequence[ColumnMapping | None], depth: int
) -> Iterator[SchemaElement]:
    """Yield the nodes of a list or a map: a repeated node, and the nodes below it."""
    _refuse_too_deep(depth)
    if count != 1:
        raise FormatError("a list or map of the schema has not one repeated node")
    repeated = _next(nodes)
    yield repeated
    if repeated.num_children != len(inner):
        # An older form of a list, whose repeated node is the element.
        yield from _below(nodes, repeated, inner[0], depth)
        return
    for held in inner:
        node = _next(nodes)
        yield node
        yield from _below(nodes, node, held, depth)


def _as_stored(nodes: Iterator[SchemaElement], count: int, depth: int) -> Iterator[SchemaElement]:
    _refuse_too_deep(depth)
    for _ in range(count):
        node = _next(nodes)
        yield node
        yield from _as_stored(nodes, node.num_children or 0, depth - 1)


def _next(nodes: Iterator[SchemaElement]) -> SchemaElement:
    found = next(nodes, None)
    if found is None:
        raise FormatError("the schema's tree has more nodes than its list")
    return found


def _refuse_too_deep(depth: int) -> None:
    if depth < 0:
        raise FormatError(f"the schema nests deeper than {MAX_DEPTH} levels")


def _with_name(node: SchemaElement, name: str) -> SchemaElement:
    # A copy: the node is shared by all files of its schema.
    renamed = SchemaElement(trees.decode(node.encode())[0])
    renamed.name = name
    return renamed
