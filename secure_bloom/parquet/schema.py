"""The leaves of a Parquet schema: the columns that have values, and hence filters.

A schema is a depth-first list of nodes.  A leaf's *maximum definition level* counts the nodes on
its path that may be absent. Its *maximum repetition level* counts the nodes that repeat (Parquet,
"Nested Encoding").

A table may give its columns other names than a file has: :func:`renamed_elements` finds them by
their name in the file, or by ``SchemaElement.field_id``.  The nodes that the format puts into lists
and maps keep their names.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from urllib.parse import unquote

from secure_bloom.calling.close_names import CloseNames
from secure_bloom.errors import FormatError, PolicyError, UnsupportedFeatureError
from secure_bloom.parquet.logical_types import Logical, converted_type_of, logical_type
from secure_bloom.parquet.structures.metadata import (
    ConvertedType,
    FieldRepetitionType,
    LogicalType,
    SchemaElement,
    Type,
)
from secure_bloom.parquet.structures.records import decode_record, known_member
from secure_bloom.parquet.structures.splices import binary, texts, with_fields
from secure_bloom.storage.column_mapping import ColumnMapping, dropped_name, is_dropped

#: More digits than fit 16 bytes.  DuckDB (seen in 2.0.0) reads such decimals as DOUBLE, and would
#: look the DOUBLE up in a filter of decimals.  Spark and Hive have no such decimals.
_MAX_DECIMAL_DIGITS = 38
#: The end of a sentence on a column that no reader looks up by a filter.
INT96_NOTE = (
    "INT96: readers round these timestamps, so none can look a value up in a filter; write them "
    "as INT64 (spark.sql.parquet.outputTimestampType = TIMESTAMP_MICROS)"
)
#: No real schema is so deep.  A hostile one would exhaust Python's stack.
MAX_DEPTH = 200
_WIDTHS = {Type.INT32: 4, Type.INT64: 8, Type.INT96: 12, Type.FLOAT: 4, Type.DOUBLE: 8}


# Without slots: what many questions need of a column is computed once.
@dataclass(frozen=True, kw_only=True)
class Leaf:
    """One column: its path, its own schema element, and the repetition of each node above it.

    ``stored_path`` is the file's own path, if the table has other names.
    """

    path: tuple[str, ...]
    element: SchemaElement
    type: Type
    repetitions: tuple[FieldRepetitionType, ...]
    stored_path: tuple[str, ...] = ()
    name: str = field(init=False, repr=False, compare=False)
    """The dotted path."""

    def __post_init__(self) -> None:
        # Made once: the name is asked for with every chunk and every error.
        object.__setattr__(self, "name", ".".join(self.path))
        if not self.stored_path:
            object.__setattr__(self, "stored_path", self.path)

    @cached_property
    def logical(self) -> Logical:
        """The logical type, which says what stored values mean."""
        return logical_type(self.element)

    @cached_property
    def encoded_path(self) -> bytes:
        """The ``path_in_schema``, encoded as in the column's metadata."""
        return texts(self.stored_path).encoded

    @cached_property
    def width(self) -> int | None:
        """Bytes of each value in PLAIN encoding, or None if values differ in length."""
        if self.type is not Type.FIXED_LEN_BYTE_ARRAY:
            return _WIDTHS.get(self.type)
        length = self.element.type_length
        if length is None or length <= 0:
            raise FormatError(f"SchemaElement.type_length of column {self.name} is {length}")
        return length

    @property
    def converted_type(self) -> ConvertedType | None:
        """The older form of the logical type, if the column has it."""
        return converted_type_of(self.element)

    @cached_property
    def is_unordered(self) -> bool:
        """Whether the column declares a type without an order, or one that is not known here."""
        if self.converted_type is ConvertedType.INTERVAL:
            return True
        declared = self.element.logicalType
        # Geometries and variants are bytes whose bounds mean something else.
        return declared is not None and not any(
            getattr(declared, member) is not None for member in LogicalType.FIELDS
        )

    @property
    def decimal_digits(self) -> int | None:
        """The precision of a DECIMAL, or None for any other column."""
        declared = self.element.logicalType
        if declared is not None and declared.DECIMAL is not None:
            return declared.DECIMAL.precision
        is_decimal = self.converted_type is ConvertedType.DECIMAL
        return self.element.precision if is_decimal else None

    @cached_property
    def is_required(self) -> bool:
        """Whether every row holds a value of this column."""
        return all(it is FieldRepetitionType.REQUIRED for it in self.repetitions)

    @cached_property
    def required(self) -> Leaf:
        """The column as if every row had one value: its values without levels."""
        return replace(self, repetitions=())

    @cached_property
    def is_repeated(self) -> bool:
        """Whether a row may hold more than one value of this column."""
        return FieldRepetitionType.REPEATED in self.repetitions

    @cached_property
    def max_definition_level(self) -> int:
        """The definition level of a value: one for each node of the path that may be absent."""
        return sum(it is not FieldRepetitionType.REQUIRED for it in self.repetitions)


class Leaves(tuple[Leaf, ...]):
    """The leaves of one schema, found by name."""

    @cached_property
    def _by_name(self) -> dict[str, list[int]]:
        found: dict[str, list[int]] = {}
        below: dict[str, list[int]] = {}
        for ordinal, leaf in enumerate(self):
            found.setdefault(leaf.name, []).append(ordinal)
            for depth in range(1, len(leaf.path)):
                below.setdefault(".".join(leaf.path[:depth]), []).append(ordinal)
        # A leaf's own name goes before what is below a column of that name.
        return below | found

    def select(self, name: str) -> list[int]:
        """Return the ordinals of the leaves that ``name`` means. See :func:`select`."""
        return self._by_name.get(name, [])


def leaves(schema: list[SchemaElement]) -> Leaves:
    """Return all leaves of ``schema`` in the order of ``RowGroup.columns``.

    Raises FormatError if the list is not one whole tree.
    """
    if not schema:
        raise FormatError("the schema has no root")
    nodes = iter(schema[1:])
    found = list(_children(nodes, schema[0].num_children or 0, (), ()))
    # A list that is longer than its tree was not written as one tree.
    if next(nodes, None) is not None:
        raise FormatError(f"the schema lists {len(schema)} nodes, its tree has fewer")
    return Leaves(found)


def _children(
    nodes: Iterator[SchemaElement],
    count: int,
    path: tuple[str, ...],
    repetitions: tuple[FieldRepetitionType, ...],
) -> Iterator[Leaf]:
    if len(path) > MAX_DEPTH:
        raise FormatError(f"the schema nests deeper than {MAX_DEPTH} levels")
    for _ in range(count):
        node = next(nodes, None)
        if node is None:
            raise FormatError("the schema's tree has more nodes than its list")
        below = (*path, node.name)
        # Optional in the format, because the root needs none.
        number = node.repetition_type or FieldRepetitionType.REQUIRED
        repetition = known_member(FieldRepetitionType, number, "SchemaElement.repetition_type")
        repeated = (*repetitions, repetition)
        # Only leaves have a physical type; an empty group has children: none.
        if node.type is None:
            yield from _children(nodes, node.num_children or 0, below, repeated)
        else:
            type_ = known_member(Type, node.type, "SchemaElement.type")
            yield Leaf(path=below, element=node, type=type_, repetitions=repeated)


def select(columns: tuple[Leaf, ...], name: str) -> list[int]:
    """Return the ordinals of the leaf called ``name``, or of all leaves below that node.

    Return [] when the schema has no such column.
    """
    known = columns if isinstance(columns, Leaves) else Leaves(columns)
    return list(known.select(name))


def require_filterable(leaf: Leaf) -> None:
    """Raise UnsupportedFeatureError for a column that cannot have a Bloom filter without risk."""
    if leaf.type is Type.BOOLEAN:
        raise UnsupportedFeatureError(
            f"column {leaf.name} is BOOLEAN, which the format gives no Bloom filter",
            hint="leave the column out: a column of two values needs no filter",
        )
    if leaf.converted_type is ConvertedType.INTERVAL:
        raise UnsupportedFeatureError(
            f"column {leaf.name} is an INTERVAL: with a filter, DuckDB could lose rows",
            hint="DuckDB finds `1 month` by `30 days`, which are other bytes: leave the column out",
        )
    if (leaf.decimal_digits or 0) > _MAX_DECIMAL_DIGITS:
        raise UnsupportedFeatureError(
            f"column {leaf.name} is a DECIMAL of {leaf.decimal_digits} digits, of which a filter "
            f"could lose rows, wanted at most {_MAX_DECIMAL_DIGITS}",
            hint="DuckDB reads it as DOUBLE, which has other bytes: leave the column out",
        )


def unknown_column(
    name: str, known: Iterable[str] | CloseNames, paths: Iterable[str] = ()
) -> PolicyError:
    """Return the error for a column that no file at ``paths`` has, with similar names."""
    if any(part.startswith(f"{name}=") for path in paths for part in path.split("/")):
        return PolicyError(
            f"{name} is a partition column: its values are in names of folders, not in the files",
            hint="leave it out: readers skip whole folders by it and need no filter",
        )
    names = CloseNames.of(known)
    if dropped_name(name) in names.names:
        return PolicyError(
            f"column {name} was dropped from the table", hint="leave it out: no query asks for it"
        )
    if (several := [part.strip() for part in name.split(",")])[1:] and {*several} <= {*names.names}:
        each = " ".join(f"--column {part}" for part in several)
        return PolicyError(f"there is no column {name}", hint=f"name each by itself: {each}")
    if any(is_dropped((it,)) for it in names.names):
        names = CloseNames(it for it in names.names if not is_dropped((it,)))
    close = names.close(name, 3)
    hint = f"did you mean {', '.join(close)}" if close else f"there are {names.listed()}"
    return PolicyError(f"there is no column {name}", hint=hint)


def partition_error(name: str, paths: Iterable[str]) -> PolicyError | None:
    """Return the error for a sensitive column that partitions the files at ``paths``, or None."""
    start = f"{name}=".lower()
    if not any(part.lower().startswith(start) for path in paths for part in path.split("/")[:-1]):
        return None
    return PolicyError(
        f"column {name} partitions the table, so it cannot be encrypted: its values are in names "
        "of folders",
        hint="write the table without this partition column, then encrypt it",
        column=name,
    )


def partition_names(folder: str) -> set[str]:
    """Return the columns whose values are in the name of a folder or of a folder above it."""
    parts = (part.partition("=") for part in folder.split("/"))
    return {unquote(name) for name, equals, _ in parts if equals}


def short_name(name: str) -> str:
    """Return a dotted name with the elements of lists as ``phones.element``.

    In files they are ``phones.list.element``, or ``phones.list.item`` by some writers.
    """
    return name.replace(".list.element", ".element").replace(".list.item", ".element")


def in_any_case(name: str, known: Iterable[str]) -> str | None:
    """Return the only known name that is equal to ``name``, or None.

    Case is no difference, nor is the spelling of a list's elements (:func:`short_name`).
    """
    short = {other: short_name(other) for other in known}
    # Case folding alone has GRÖSSE for Größe, and could be ambiguous where lower case is not.
    for fold in (str.lower, str.casefold):
        found = [other for other, it in short.items() if fold(it) == fold(short_name(name))]
        if found:
            break
    return found[0] if len(found) == 1 else None


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
    if names is None or not (names.members or any(names.inner)):
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
    new = {SchemaElement.name.id: binary(name.encode())}
    return read_element(with_fields(node.encoded, new))


def read_element(encoded: bytes) -> SchemaElement:
    """Return the schema node that is encoded in these bytes. The node keeps the bytes."""
    element = decode_record(SchemaElement, encoded)
    element.encoded = encoded
    return element
