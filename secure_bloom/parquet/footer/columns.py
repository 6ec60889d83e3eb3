"""The columns of a footer: the leaves of its schema by their names, and its Arrow schema on demand.

Files of one schema share their columns.  pyarrow is loaded when the Arrow schema is first used, so
filters are probed without pyarrow.
"""

from __future__ import annotations

import functools
import itertools
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

from secure_bloom.parquet.footer.scan import FooterScan, FooterSchema
from secure_bloom.parquet.schema import Leaf, read_element
from secure_bloom.parquet.structures.metadata import KeyValue, SchemaElement
from secure_bloom.parquet.structures.splices import i32, with_fields
from secure_bloom.storage.column_mapping import ColumnMapping

if TYPE_CHECKING:
    import pyarrow as pa

    from secure_bloom.parquet.members import Member


@dataclass(frozen=True, kw_only=True, eq=False)
class FileColumns:
    """The columns of the files of one schema.

    ``schema`` has the elements, and ``renamed`` has them with the table's names, if those differ.
    ``marks`` are the texts in a footer that hold the writer's Arrow schema.

    Leaves in ``left_out`` are not read: :attr:`arrow`, :attr:`nodes` and :meth:`below` lack them.
    """

    leaves: tuple[Leaf, ...]
    schema: Sequence[SchemaElement] = field(repr=False)
    renamed: tuple[SchemaElement, ...] = field(default=(), repr=False)
    marks: Sequence[KeyValue] = field(repr=False)
    left_out: frozenset[int] = frozenset()
    #: What readers of rows work out once of a leaf, by its ordinal.
    prepared: dict[int, Any] = field(default_factory=dict, init=False, repr=False)
    #: The columns without the leaves that were left out last.
    _narrowed: dict[frozenset[int], FileColumns] = field(
        default_factory=dict, init=False, repr=False
    )

    @functools.cached_property
    def arrow(self) -> pa.Schema:
        """The Arrow schema, as pyarrow reads the columns.

        Raises FormatError if pyarrow cannot make it.
        """
        from secure_bloom.parquet.memory_files import arrow_schema

        # Columns with leaves left out have it from the others: to parse it takes a while.
        return arrow_schema(self.renamed or self.schema, self.marks)

    @functools.cached_property
    def names(self) -> frozenset[str]:
        """The names of the top-level columns. Raises the errors of :attr:`arrow`."""
        return frozenset(self.arrow.names)

    def _arrow_without(self, left_out: frozenset[int]) -> pa.Schema:
        """Return the Arrow schema without these leaves."""
        import pyarrow as pa

        from secure_bloom.parquet.members import restricted

        out = {
            member
            for name in self.names
            for member, ordinal in self.members(name)
            if ordinal in left_out
        }
        found = [restricted(column, lambda member: member not in out) for column in self.arrow]
        return pa.schema([column for column in found if column is not None])

    def members(self, name: str) -> list[tuple[Member, int]]:
        """Return the member and the ordinal of each leaf of a column.

        If Arrow has other leaves than the file, all of them count as one member, the column.
        """
        from secure_bloom.parquet.members import members_of

        ordinals = self.below(name)
        places: Sequence[int] = self.arrow.get_all_field_indices(name)
        found = members_of(self.arrow.field(places[0])) if len(places) == 1 else []
        if len(found) != len(ordinals):
            found = [(name,)] * len(ordinals)
        return list(zip(found, ordinals, strict=True))

    def without(self, left_out: frozenset[int]) -> FileColumns:
        """Return the columns without these leaves. A read asks for the same ones file by file."""
        if not left_out:
            return self
        found = self._narrowed.get(left_out)
        if found is None:
            found = replace(self, left_out=self.left_out | left_out)
            found.__dict__["arrow"] = self._arrow_without(left_out)
            self._narrowed.clear()
            self._narrowed[left_out] = found
        return found

    @functools.cached_property
    def ordinals(self) -> dict[tuple[str, ...], int | None]:
        """The ordinal of each leaf by its path, or None for a path that two leaves share."""
        found: dict[tuple[str, ...], int | None] = {}
        for ordinal, leaf in enumerate(self.leaves):
            found[leaf.path] = None if leaf.path in found else ordinal
        return found

    @functools.cached_property
    def elements(self) -> dict[tuple[str, ...], int | None]:
        """The ordinal of the one leaf of a list, by the list's own path."""
        found: dict[tuple[str, ...], int | None] = {}
        for ordinal, leaf in enumerate(self.leaves):
            for length in range(1, len(leaf.path) + 1) if leaf.is_repeated else ():
                above = leaf.path[:length]
                found[above] = None if above in found else ordinal
        return found

    @functools.cached_property
    def nodes(self) -> dict[str, list[SchemaElement]]:
        """The schema elements of each top-level column, depth first."""
        every, leaves = _top_level(self.renamed or self.schema), itertools.count()
        if self.left_out:
            every = (list(_kept(iter(nodes), leaves, self.left_out)) for nodes in every)
        return {nodes[0].name: nodes for nodes in every if nodes}

    @functools.cached_property
    def _below(self) -> dict[str, list[int]]:
        found: dict[str, list[int]] = {}
        for ordinal, leaf in enumerate(self.leaves):
            if ordinal not in self.left_out:
                found.setdefault(leaf.path[0], []).append(ordinal)
        return found

    def below(self, name: str) -> Sequence[int]:
        """Return the ordinals of the leaves of a top-level column, or [] for an unknown column."""
        return self._below.get(name, ())


class SchemaCache:
    """Maps the bytes of each schema already read to its columns. Safe for threads.

    ``names`` maps the table's column names to the names or ids in its files, or is None if
    files have the table's names.
    """

    def __init__(self, names: ColumnMapping | None = None) -> None:
        self._names = names
        self._known: dict[tuple[bytes, bytes, int], tuple[FileColumns, ColumnMapping | None]] = {}

    def columns(self, footer: FooterScan, names: ColumnMapping | None = None) -> FileColumns:
        """Return the columns of a FileMetaData.

        Raises FormatError for a schema that is not a whole tree. ``names`` are the names of the
        file's own table, if several tables are read.
        """
        schema, texts = footer.schema, footer.metadata.key_value_metadata or []
        marks = [text for text in texts if text.key == "ARROW:schema"]
        arrow = (marks[0].value or "").encode() if marks else b""
        names = names or self._names
        key = (schema.encoded, arrow, id(names))
        found = self._known.get(key)
        if found is None:
            # The mapping is held, so that its id is not given to another.
            found = self._known[key] = (_columns(schema, marks, names), names)
        return found[0]


def _columns(
    schema: FooterSchema, marks: Sequence[KeyValue], names: ColumnMapping | None
) -> FileColumns:
    if names is None:
        return FileColumns(leaves=schema.leaves, schema=schema.elements, marks=marks)
    # Imported here: few tables rename columns.
    from secure_bloom.parquet.schema import renamed_elements, renamed_leaves

    return FileColumns(
        leaves=renamed_leaves(schema.elements, names),
        schema=schema.elements,
        renamed=tuple(renamed_elements(schema.elements, names)),
        marks=marks,
    )


def _kept(
    nodes: Iterator[SchemaElement], leaves: Iterator[int], left_out: frozenset[int]
) -> Iterator[SchemaElement]:
    """Yield the next node and what is below it, without the leaves that are left out."""
    node = next(nodes)
    if node.type is not None:
        if next(leaves) not in left_out:
            yield node
        return
    below = [list(_kept(nodes, leaves, left_out)) for _ in range(node.num_children or 0)]
    left = [branch for branch in below if branch]
    if left:
        children = {SchemaElement.num_children.id: i32(len(left))}
        yield read_element(with_fields(node.encoded, children))
        yield from itertools.chain.from_iterable(left)


def _top_level(schema: Sequence[SchemaElement]) -> Iterable[list[SchemaElement]]:
    """Yield the nodes of each column right below the root. The schema is known to be one tree."""
    position = 1
    while position < len(schema):
        end, open_nodes = position, 1
        while open_nodes:
            open_nodes += (schema[end].num_children or 0) - 1
            end += 1
        yield list(schema[position:end])
        position = end
