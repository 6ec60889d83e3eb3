"""The columns of a Parquet file that Paimon can index: top-level ones, and the keys of maps."""

from __future__ import annotations

from dataclasses import dataclass

from secure_bloom.errors import UnsupportedFeatureError
from secure_bloom.paimon.physical_values import require_hashable
from secure_bloom.parquet.logical_types import Kind, logical_type
from secure_bloom.parquet.schema import Leaf, unknown_column
from secure_bloom.parquet.structures.metadata import FieldRepetitionType


@dataclass(frozen=True, slots=True, kw_only=True)
class IndexedColumn:
    """A column that an index can have; ``value`` is the ordinal of its leaf.

    For the key of a map, ``m[k]``, ``key`` is the ordinal of the leaf of keys, and ``map_key`` the
    text ``k``.
    """

    name: str
    value: int
    key: int | None = None
    map_key: str | None = None

    @property
    def ordinals(self) -> tuple[int, ...]:
        """The leaves that are read for it."""
        return (self.value,) if self.key is None else (self.key, self.value)


def find_column(leaves: tuple[Leaf, ...], name: str) -> IndexedColumn:
    """Return the column that Paimon calls ``name``: a top-level one, or the key of a map.

    PolicyError for an unknown column, UnsupportedFeatureError for a column that has no filter.
    """
    found = _find(leaves, name)
    if found is not None:
        require_hashable(leaves[found.value])
        return found
    if any(leaf.path[0] == name for leaf in leaves):
        raise UnsupportedFeatureError(
            f"column {name} is nested, which Paimon gives no Bloom filter",
            hint="of a map with text keys one key can have one: name it as m[k]",
        )
    raise unknown_column(name, (leaf.path[0] for leaf in leaves))


def stored_leaf(leaves: tuple[Leaf, ...], name: str) -> Leaf | None:
    """Return the leaf of a column's values, hashable or not; None for an unknown column."""
    found = _find(leaves, name)
    return None if found is None else leaves[found.value]


def _find(leaves: tuple[Leaf, ...], name: str) -> IndexedColumn | None:
    for ordinal, leaf in enumerate(leaves):
        if leaf.path == (name,) and not leaf.is_repeated:
            return IndexedColumn(name=name, value=ordinal)
    return _find_map_key(leaves, name)


def _find_map_key(leaves: tuple[Leaf, ...], name: str) -> IndexedColumn | None:
    # The first bracket and the last: the key itself may hold brackets.
    map_name, bracket, rest = name.partition("[")
    if not (bracket and rest.endswith("]")):
        return None
    below = [i for i, leaf in enumerate(leaves) if leaf.path[0] == map_name]
    # A map of structures has more leaves, and none of them is the value.
    if len(below) != 2 or not all(_is_map_leaf(leaves[i]) for i in below):
        return None
    key, value = below
    if logical_type(leaves[key].element).kind is not Kind.TEXT:
        return None
    return IndexedColumn(name=name, value=value, key=key, map_key=rest[:-1])


def _is_map_leaf(leaf: Leaf) -> bool:
    """Return whether the leaf is a map's keys or values.

    ``m.key_value.key``, only the middle repeated.
    """
    repeated = [it is FieldRepetitionType.REPEATED for it in leaf.repetitions]
    return repeated == [False, True, False]
