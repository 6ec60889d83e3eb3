"""Declare the fields of Thrift structures: their ids, types, and whether they are required.

    class KeyValue(Structure):
        key = Required(1, STRING)
        value = Optional(2, STRING)

``records`` reads structures by their declarations, and ``splices`` writes them.  To a type checker
a field is a value of its type, because a record has an attribute of that name.
"""

from __future__ import annotations

import enum
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar, Generic, Self, TypeVar, overload

from thrift.protocol.TProtocol import TType

T = TypeVar("T")
E = TypeVar("E", bound=enum.IntEnum)
V = TypeVar("V", bound="Structure")


@dataclass(frozen=True, slots=True)
class FieldType(Generic[T]):
    """The type of a field: its name in the IDL, and its Thrift type.

    ``inner`` is the declaration of a structure, the enumeration of a number, or the type of a
    list's elements.
    """

    name: str
    ttype: int
    inner: Any = None


class DeclaredField(Generic[T]):
    """One declared field."""

    def __init__(self, field_id: int, kind: FieldType[T]) -> None:
        self.id = field_id
        self.kind = kind

    if TYPE_CHECKING:

        def __set__(self, record: Structure, value: T) -> None: ...


class Required(DeclaredField[T]):
    """A field that must be present."""

    if TYPE_CHECKING:

        @overload
        def __get__(self, record: None, owner: type) -> Self: ...
        @overload
        def __get__(self, record: Structure, owner: type) -> T: ...
        def __get__(self, record: Structure | None, owner: type) -> Self | T: ...


class Optional(DeclaredField[T]):
    """A field that is ``None`` if it is absent."""

    if TYPE_CHECKING:

        @overload
        def __get__(self, record: None, owner: type) -> Self: ...
        @overload
        def __get__(self, record: Structure, owner: type) -> T | None: ...
        def __get__(self, record: Structure | None, owner: type) -> Self | T | None: ...
        def __delete__(self, record: Structure) -> None: ...


class Structure:
    """The declaration of one Thrift structure. Its records have the attributes that it declares."""

    FIELDS: ClassVar[dict[str, DeclaredField[Any]]] = {}

    def __init_subclass__(cls) -> None:
        cls.FIELDS = {name: f for name, f in vars(cls).items() if isinstance(f, DeclaredField)}


class Union(Structure):
    """The declaration of a Thrift union: exactly one member is set."""

    if TYPE_CHECKING:

        def member(self) -> str:
            """Return the name of the member that is set."""


class Empty(Structure):
    """A structure without fields. Its presence is its only information."""


BOOL: FieldType[bool] = FieldType("bool", TType.BOOL)
I8: FieldType[int] = FieldType("i8", TType.BYTE)
I16: FieldType[int] = FieldType("i16", TType.I16)
I32: FieldType[int] = FieldType("i32", TType.I32)
I64: FieldType[int] = FieldType("i64", TType.I64)
BINARY: FieldType[bytes] = FieldType("binary", TType.STRING)
STRING: FieldType[str] = FieldType("string", TType.STRING)


def enum_of(cls: type[E]) -> FieldType[E]:
    """Return the type of an enumeration. In a record it is a number: see ``known_member``."""
    return FieldType(cls.__name__, TType.I32, cls)


def struct_of(cls: type[V]) -> FieldType[V]:
    """Return the type of a structure or union."""
    return FieldType(cls.__name__, TType.STRUCT, cls)


def list_of(kind: FieldType[T]) -> FieldType[list[T]]:
    """Return the type of a list."""
    return FieldType(f"list<{kind.name}>", TType.LIST, kind)


def empty(name: str) -> FieldType[Empty]:
    """Return the type of a structure without fields, by its name in the IDL."""
    return FieldType(name, TType.STRUCT, Empty)
