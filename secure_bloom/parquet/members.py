"""The members of a column: its leaves, by their names in the Arrow type.

    address: struct<city, geo: struct<lat>>      (address, city)  (address, geo, lat)
    phones: list<struct<number>>                 (phones, element, number)
    tags: map<string, string>                    (tags)  (tags)

A map is one member, because neither keys nor values can be shown alone.  So is an extension type.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Collection, Iterable, Iterator

import pyarrow as pa

from secure_bloom.parquet.schema import short_name

#: The names that lead to a member, beginning with the column's.
Member = tuple[str, ...]

#: The name of a list's elements in a member.
ELEMENT = "element"


def members_of(field: pa.Field) -> list[Member]:
    """Return the member of each leaf of a column, in the order of the leaves."""
    return list(_members(field.type, (field.name,)))


def _members(of: pa.DataType, path: Member) -> Iterator[Member]:
    if not of.num_fields and not isinstance(of, pa.BaseExtensionType):
        # Asked first, as most are; a structure without a member has none.
        if not pa.types.is_struct(of):
            yield path
    elif pa.types.is_struct(of):
        for field in of:
            yield from _members(field.type, (*path, field.name))
    elif pa.types.is_map(of):
        yield from (path for _ in _members(of.key_type, path))
        yield from (path for _ in _members(of.item_type, path))
    elif _is_list(of):
        yield from _members(of.value_type, (*path, ELEMENT))
    elif isinstance(of, pa.BaseExtensionType):
        yield from (path for _ in _members(of.storage_type, path))
    else:
        yield path


def restricted(field: pa.Field, keep: Callable[[Member], bool]) -> pa.Field | None:
    """Return the column with the members that are kept, or None if none is."""
    return _restricted(field, (field.name,), keep)


def _restricted(field: pa.Field, path: Member, keep: Callable[[Member], bool]) -> pa.Field | None:
    of = field.type
    if pa.types.is_struct(of):
        whole = list(of)
        found = [_restricted(member, (*path, member.name), keep) for member in whole]
        # A type that loses nothing is not made anew.
        if all(map(operator.is_, found, whole)):
            return field
        left = [member for member in found if member is not None]
        return field.with_type(pa.struct(left)) if left else None
    if _is_list(of):
        value = of.value_field
        kept = _restricted(value, (*path, ELEMENT), keep)
        if kept is value:
            return field
        return None if kept is None else field.with_type(_list_of(of, kept))
    return field if all(map(keep, _members(of, path))) else None


def nullable(field: pa.Field, hidden: Callable[[Member], bool]) -> pa.Field:
    """Return the column with every hidden member declared nullable."""
    return _nullable(field, (field.name,), hidden)


def _nullable(field: pa.Field, path: Member, hidden: Callable[[Member], bool]) -> pa.Field:
    of = field.type
    every = list(_members(of, path))
    if all(map(hidden, every)):
        return field.with_nullable(True)
    if pa.types.is_struct(of) and any(map(hidden, every)):
        return field.with_type(
            pa.struct([_nullable(member, (*path, member.name), hidden) for member in of])
        )
    if _is_list(of) and any(map(hidden, every)):
        value = _nullable(of.value_field, (*path, ELEMENT), hidden)
        return field.with_type(_list_of(of, value))
    return field


def apart_from(field: pa.Field, hidden: Collection[Member]) -> list[Member]:
    """Return the largest members of a column that contain no hidden member."""
    found: dict[Member, None] = {}
    for member in members_of(field):
        whole = (member[:length] for length in range(1, len(member) + 1))
        clear = (path for path in whole if not any(below(it, [path]) for it in hidden))
        if (path := next(clear, None)) is not None:
            found[path] = None
    return list(found)


def named(field: pa.Field, name: str) -> set[Member]:
    """Return the members inside a column that a dotted name may mean.

    An element of a list may be spelled as in the file: ``phones.list.element.number``.
    """
    name = short_name(name)
    return {
        member[:length]
        for member in members_of(field)
        for length in range(2, len(member) + 1)
        if ".".join(member[:length]) == name
    }


def below(member: Member, above: Iterable[Member]) -> bool:
    """Return whether a member is one of ``above``, or inside one."""
    return any(member[: len(path)] == path for path in above)


def _is_list(of: pa.DataType) -> bool:
    return bool(of.num_fields) and bool(
        pa.types.is_list(of) or pa.types.is_large_list(of) or pa.types.is_fixed_size_list(of)
    )


def _list_of(of: pa.DataType, value: pa.Field) -> pa.DataType:
    if pa.types.is_large_list(of):
        return pa.large_list(value)
    return pa.list_(value, of.list_size) if pa.types.is_fixed_size_list(of) else pa.list_(value)


def names_beside(name: str, schema: pa.Schema) -> list[str]:
    """Return the known names that may be meant by a name that no column has.

    These are the names of columns. If the unknown name is dotted and begins with a structure,
    they are the names of the structure's members.
    """
    top = name.partition(".")[0]
    if top == name or top not in schema.names:
        return list(schema.names)
    return [".".join(member) for member in members_of(schema.field(top))]
