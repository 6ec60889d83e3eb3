"""Compute how much memory values of an Avro schema take when they are decoded to Python objects.

    cost = AvroCost.of(schema)            refuses a schema whose values have no bound
    cost.most(records, size)              an upper bound for records of ``size`` encoded bytes
    cost.of_lists(record)                 the lists of a decoded record, in addition to cost.fixed

One encoded byte can become a Python dictionary. The schema alone determines the memory of a record
without its lists. The items of lists are counted in each decoded record.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from secure_bloom.errors import FormatError, UnsupportedFeatureError

#: Schemas are not nested so deeply; a hostile one would exhaust the stack.
_DEEPEST: Final = 32
#: What a dictionary or list takes, a member of it, a number or the frame of a text, a byte of it.
_CONTAINER, _MEMBER, _LEAF, _BYTE = 240, 40, 64, 4
#: The fewest bytes of simple types.
_LEAST: Final = {
    "null": 0,
    "boolean": 1,
    "int": 1,
    "long": 1,
    "float": 4,
    "double": 8,
    "bytes": 1,
    "string": 1,
    "enum": 1,
}


@dataclass(frozen=True, slots=True, kw_only=True)
class _Lists:
    """Lists at one path of records, and the memory that each item takes."""

    path: tuple[str, ...]
    item: AvroCost


@dataclass(frozen=True, slots=True, kw_only=True)
class AvroCost:
    """The memory that a decoded value of one type takes: ``fixed`` bytes, and its lists' items.

    ``least`` is the smallest number of bytes that an encoded value takes. ``each`` is the largest
    number of bytes that one encoded byte takes when it is decoded. ``members`` is the number of
    fields of a record.
    """

    fixed: int
    least: int
    members: int = 0
    each: int = _BYTE
    lists: tuple[_Lists, ...] = ()

    @classmethod
    def of(cls, schema: Any) -> AvroCost:
        """Return the cost of a schema.

        Raises UnsupportedFeatureError for a recursive or unknown type, and FormatError for lists
        whose items take no byte, because such lists can have any length.
        """
        return _cost(schema, {}, _DEEPEST)

    def most(self, records: int, size: int) -> int:
        """Return an upper bound of the memory for ``records`` records with ``size`` encoded bytes.

        ``size`` is the size of all of them together.
        """
        return records * self.fixed + self.each * size

    def of_lists(self, value: Any) -> int:
        """Return how many bytes the items of all lists in a decoded value take."""
        size = 0
        for it in self.lists:
            found = value
            for name in it.path:
                found = found.get(name) if isinstance(found, dict) else None
            if isinstance(found, list | dict):
                size += len(found) * (_MEMBER + it.item.fixed)
                if it.item.lists:
                    items = found.values() if isinstance(found, dict) else found
                    size += sum(map(it.item.of_lists, items))
        return size


def _cost(schema: Any, named: dict[str, AvroCost], depth: int) -> AvroCost:
    if depth == 0:
        raise UnsupportedFeatureError(f"an Avro schema is nested deeper than {_DEEPEST} levels")
    if isinstance(schema, list):
        return _united([_cost(it, named, depth - 1) for it in schema])
    kind = schema.get("type") if isinstance(schema, Mapping) else schema
    if isinstance(kind, list | Mapping):
        return _cost(kind, named, depth - 1)
    found = _made(schema, kind, named, depth - 1)
    name = schema.get("name") if isinstance(schema, Mapping) else None
    # Not before: a type that holds itself is not known inside of it.
    if isinstance(name, str) and named.setdefault(_plain(name), found) != found:
        raise UnsupportedFeatureError("an Avro schema has two types of one name")
    return found


def _plain(name: str) -> str:
    """Return a name without its namespace, which a reference may leave out."""
    return name.rpartition(".")[2]


def _made(schema: Any, kind: Any, named: dict[str, AvroCost], depth: int) -> AvroCost:
    if isinstance(kind, str) and kind in _LEAST:
        return AvroCost(fixed=_LEAF, least=_LEAST[kind])
    if isinstance(kind, str) and _plain(kind) in named:
        return named[_plain(kind)]
    parts = schema if isinstance(schema, Mapping) else {}
    size = parts.get("size")
    if kind == "fixed" and isinstance(size, int) and size >= 0:
        return AvroCost(fixed=_LEAF, least=size)
    if kind in ("record", "error") and isinstance(parts.get("fields"), list):
        return _record(parts["fields"], named, depth)
    if kind in ("array", "map"):
        item = _cost(parts.get("items" if kind == "array" else "values"), named, depth)
        return _list(item, least=item.least + (kind == "map"))
    raise UnsupportedFeatureError("an Avro schema has a type that is not read here")


def _record(fields: Sequence[Any], named: dict[str, AvroCost], depth: int) -> AvroCost:
    parts: list[tuple[str, AvroCost]] = []
    for each in fields:
        if not isinstance(each, Mapping) or not isinstance(each.get("name"), str):
            raise FormatError("an Avro schema has a field without a name")
        parts.append((each["name"], _cost(each.get("type"), named, depth)))
    return AvroCost(
        fixed=_CONTAINER + sum(_MEMBER + it.fixed for _, it in parts),
        least=sum(it.least for _, it in parts),
        members=len(parts),
        each=max([_BYTE, *(it.each for _, it in parts)]),
        lists=tuple(
            _Lists(path=(name, *inner.path), item=inner.item)
            for name, it in parts
            for inner in it.lists
        ),
    )


def _list(item: AvroCost, *, least: int) -> AvroCost:
    if not least:
        raise FormatError("an Avro file has lists of items that take no byte")
    # Each encoded byte is of a smallest item, or of what is inside of an item.
    each = max(item.each, _BYTE) + -(-(_MEMBER + item.fixed) // least)
    return AvroCost(fixed=_CONTAINER, least=1, each=each, lists=(_Lists(path=(), item=item),))


def _united(branches: Sequence[AvroCost]) -> AvroCost:
    """Return the cost of a union of ``branches``.

    An encoded union starts with its branch's index.
    """
    return AvroCost(
        fixed=max([_LEAF, *(it.fixed for it in branches)]),
        least=1 + min([it.least for it in branches], default=0),
        each=max([_BYTE, *(it.each for it in branches)]),
        lists=tuple(inner for it in branches for inner in it.lists),
    )
