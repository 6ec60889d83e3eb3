"""The types of columns in a probe: from the data file's footer, or given by the caller.

This module knows how Paimon stores each of its types in Parquet. Paimon can index the top-level
columns of a Parquet file, and the keys of maps.
"""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import nullcontext
from dataclasses import dataclass, field
from typing import TypeAlias

from secure_bloom.encryption.file_keys import KeyResolver
from secure_bloom.errors import PolicyError, SecureBloomError, UnsupportedFeatureError
from secure_bloom.paimon.data_types import MAX_MILLIS_PRECISION, DataType, TypeRoot
from secure_bloom.paimon.index_files import SUFFIX, data_path
from secure_bloom.paimon.physical_values import differs, require_hashable
from secure_bloom.parquet.footer.locate import read_tail
from secure_bloom.parquet.footer.opened import unlock_to_read
from secure_bloom.parquet.key_material_files import file_keys
from secure_bloom.parquet.logical_types import Kind, describe
from secure_bloom.parquet.schema import Leaf, read_element, unknown_column
from secure_bloom.parquet.structures.metadata import (
    ConvertedType,
    FieldRepetitionType,
    SchemaElement,
    Type,
)
from secure_bloom.parquet.structures.splices import encoded
from secure_bloom.storage import InputFile, open_input


@dataclass(frozen=True, slots=True, kw_only=True)
class IndexedColumn:
    """A column that can have an index. ``value`` is the ordinal of its leaf.

    For the key of a map, ``m[k]``, ``key`` is the ordinal of the leaf of keys, and ``map_key`` is
    the text ``k``.
    """

    name: str
    value: int
    key: int | None = None
    map_key: str | None = None

    @property
    def ordinals(self) -> tuple[int, ...]:
        """The ordinals of the leaves that are read for this column."""
        return (self.value,) if self.key is None else (self.key, self.value)


class TopColumns:
    """The leaves of a file by the names of their top-level columns."""

    def __init__(self, leaves: tuple[Leaf, ...]) -> None:
        self._leaves = leaves
        self._below: dict[str, list[int]] = {}
        for ordinal, leaf in enumerate(leaves):
            self._below.setdefault(leaf.path[0], []).append(ordinal)

    def indexed(self, name: str) -> IndexedColumn:
        """Return the column that Paimon calls ``name``: a top-level column, or the key of a map.

        Raises PolicyError for an unknown column, UnsupportedFeatureError for a column that cannot
        have a filter.
        """
        found = self._find(name)
        if found is not None:
            require_hashable(self._leaves[found.value])
            return found
        if name in self._below:
            raise UnsupportedFeatureError(
                f"column {name} is nested, which Paimon gives no Bloom filter",
                hint="in a map with text keys, one key can have a filter: name the key as m[k]",
            )
        raise unknown_column(name, self._below)

    def leaf(self, name: str) -> Leaf | None:
        """Return the leaf of a column's values, or None for an unknown column.

        The type of the values may have no hash.
        """
        found = self._find(name)
        return None if found is None else self._leaves[found.value]

    def _find(self, name: str) -> IndexedColumn | None:
        for ordinal in self._below.get(name, ()):
            leaf = self._leaves[ordinal]
            if leaf.path == (name,) and not leaf.is_repeated:
                return IndexedColumn(name=name, value=ordinal)
        return self._find_map_key(name)

    def _find_map_key(self, name: str) -> IndexedColumn | None:
        # The first bracket and the last: the key itself may hold brackets.
        map_name, bracket, rest = name.partition("[")
        if not (bracket and rest.endswith("]")):
            return None
        below = self._below.get(map_name, [])
        # A map of structures has more leaves, and none of them is the value.
        if len(below) != 2 or not all(_is_map_leaf(self._leaves[i]) for i in below):
            return None
        key, value = below
        if self._leaves[key].logical.kind is not Kind.TEXT:
            return None
        return IndexedColumn(name=name, value=value, key=key, map_key=rest[:-1])


def _is_map_leaf(leaf: Leaf) -> bool:
    """Return whether the leaf is a map's keys or values.

    In the path ``m.key_value.key`` only the middle node is repeated.
    """
    repeated = [it is FieldRepetitionType.REPEATED for it in leaf.repetitions]
    return repeated == [False, True, False]


_Stored: TypeAlias = tuple[Type, ConvertedType | None]

#: Paimon's types, and how Paimon stores them in Parquet.  BINARY is taken as bytes of any length.
_STORED: dict[TypeRoot, _Stored] = {
    TypeRoot.TINYINT: (Type.INT32, ConvertedType.INT_8),
    TypeRoot.SMALLINT: (Type.INT32, ConvertedType.INT_16),
    TypeRoot.INT: (Type.INT32, None),
    TypeRoot.BIGINT: (Type.INT64, None),
    TypeRoot.FLOAT: (Type.FLOAT, None),
    TypeRoot.DOUBLE: (Type.DOUBLE, None),
    TypeRoot.DATE: (Type.INT32, ConvertedType.DATE),
    TypeRoot.TIME: (Type.INT32, ConvertedType.TIME_MILLIS),
    TypeRoot.CHAR: (Type.BYTE_ARRAY, ConvertedType.UTF8),
    TypeRoot.VARCHAR: (Type.BYTE_ARRAY, ConvertedType.UTF8),
    TypeRoot.STRING: (Type.BYTE_ARRAY, ConvertedType.UTF8),
    TypeRoot.BINARY: (Type.BYTE_ARRAY, None),
    TypeRoot.VARBINARY: (Type.BYTE_ARRAY, None),
    TypeRoot.BYTES: (Type.BYTE_ARRAY, None),
}

#: The units in which Paimon stores timestamps: milliseconds, microseconds, and finer.
_STORED_TIMESTAMPS: tuple[_Stored, ...] = (
    (Type.INT64, ConvertedType.TIMESTAMP_MILLIS),
    (Type.INT64, ConvertedType.TIMESTAMP_MICROS),
    (Type.INT96, None),
)


def leaf_of(name: str, data_type: DataType) -> Leaf:
    """Return a leaf of this Paimon type, for a probe without a data file."""
    root, parameter = data_type.root, data_type.parameter or 0
    if root in (TypeRoot.TIMESTAMP, TypeRoot.TIMESTAMP_LTZ):
        # 0, 1 or 2: how many of the two limits the precision is beyond.
        stored = _STORED_TIMESTAMPS[(parameter > MAX_MILLIS_PRECISION) + (parameter > 6)]
    else:
        stored = _STORED[root]
    physical, converted = stored
    optional = FieldRepetitionType.OPTIONAL
    element = read_element(
        encoded(
            SchemaElement,
            name=name,
            type=physical,
            repetition_type=optional,
            converted_type=converted,
        )
    )
    return Leaf(path=(name,), element=element, type=physical, repetitions=(optional,))


def describe_type(leaf: Leaf) -> str:
    """Return a column's type for a person, with the bits or the unit that hashing depends on."""
    logical = leaf.logical
    if logical.kind is Kind.INTEGER:
        return f"{describe(leaf.element)} of {logical.bits} bits"
    if logical.kind in (Kind.TIME, Kind.TIMESTAMP):
        return f"{describe(leaf.element)} in units of {logical.unit:,} ns"
    return describe(leaf.element)


@dataclass(frozen=True, slots=True, kw_only=True)
class ColumnTypes:
    """The types that the caller gave, and the keys that open footers.

    ``unverified`` are the data files whose signature was not checked.
    """

    given: Mapping[str, DataType]
    resolver: KeyResolver
    unverified: set[str] = field(default_factory=set)

    def leaves(self, file: InputFile, names: list[str], *, itself: bool) -> dict[str, Leaf]:
        """Return the leaf of each column.

        Its type is the caller's, or else the data file's. ``itself`` says that the file is an
        index, not a data file. Raises PolicyError if both types are known and differ, because
        values would be looked up in a wrong form.
        """
        missing = [name for name in names if name not in self.given]
        try:
            stored = self.data_leaves(file, itself=itself) if names else ()
        except SecureBloomError as error:
            if missing:
                # An ORC or Avro file has no footer.
                own = (
                    None
                    if file.name.removesuffix(SUFFIX).endswith((".orc", ".avro"))
                    else error.hint
                )
                error.hint = _with_types(own, missing[0])
                raise
            # All types are given, so the index can be probed without its data file.
            stored = ()
        columns = TopColumns(stored)
        given = {name: self._given_leaf(columns, name) for name in names if name in self.given}
        return given | {name: stored[columns.indexed(name).value] for name in missing}

    def data_leaves(self, file: InputFile, *, itself: bool) -> tuple[Leaf, ...]:
        """Return the leaves of the data file.

        With ``itself``, ``file`` is an index, and the data file is the one beside it.
        """
        with open_input(data_path(file)) if itself else nullcontext(file) as data:
            footer = unlock_to_read(read_tail(data), file_keys(self.resolver, data))
            if not footer.is_verified:
                self.unverified.add(data.path)
            return footer.leaves

    def _given_leaf(self, stored: TopColumns, name: str) -> Leaf:
        data_type = self.given[name]
        leaf = leaf_of(name, data_type)
        found = stored.leaf(name)
        if found is not None and differs(found, leaf):
            raise PolicyError(
                f"the type given is {data_type}, the data file has {describe_type(found)}",
                hint="leave the type out: it is read from the data file",
                column=name,
            )
        return leaf


def _with_types(hint: str | None, column: str) -> str:
    types = (
        f"give the types of the columns as the table has them, such as --type {column}=BIGINT or "
        f"--type {column}=STRING"
    )
    return types if hint is None else f"{hint}; or {types}"
