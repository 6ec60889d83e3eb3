"""Typed views on lossless Thrift trees: declare, read and write fields.

A view reads and writes single fields of a tree.  Fields that the view does not name stay unchanged,
so a file keeps the fields of later versions of the format.
"""

from __future__ import annotations

import enum
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any, ClassVar, Generic, Self, TypeVar, cast, overload

from thrift.protocol.TProtocol import TType

from secure_bloom.errors import FormatError, UnsupportedFeatureError
from secure_bloom.parquet.structures import trees

T = TypeVar("T")
E = TypeVar("E", bound=enum.IntEnum)
V = TypeVar("V", bound="View")


@dataclass(frozen=True, slots=True)
class FieldType(Generic[T]):
    """How a field's value is stored in the tree: its name in the IDL, Thrift type, load and dump.

    ``inner`` is the view of a structure, or the kind of a list's elements.
    """

    name: str
    ttype: int
    load: Callable[[Any], T]
    dump: Callable[[T], Any]
    inner: Any = None


class _Field(Generic[T]):
    """One declared field: a descriptor that reads and writes the tree under a view."""

    def __init__(self, field_id: int, kind: FieldType[T]) -> None:
        self.id = field_id
        self.kind = kind
        self.label = f"field {field_id}"

    def __set_name__(self, owner: type[View], name: str) -> None:
        self.label = f"{owner.__name__}.{name}"

    def load(self, view: View) -> T | None:
        found = view.tree.fields.get(self.id)
        if found is None:
            return None
        ttype, value = found
        if ttype != self.kind.ttype:
            raise FormatError(f"{self.label} has Thrift type {ttype}, wanted {self.kind.name}")
        try:
            return self.kind.load(value)
        except ValueError as exc:
            # A number is shown, because it tells what to look for.  A text could be a cell's value.
            shown = value if isinstance(value, int) else "a value"
            raise UnsupportedFeatureError(
                f"{self.label} is {shown}, which is no {self.kind.name} known here"
            ) from exc

    def __set__(self, view: View, value: T) -> None:
        fields = view.tree.fields
        is_new = self.id not in fields
        fields[self.id] = (self.kind.ttype, self.kind.dump(value))
        if is_new:
            # Ids ascend, as with every writer: the compact protocol then stores each id in the byte
            # of its type.
            view.tree.fields = dict(sorted(fields.items()))


class Required(_Field[T]):
    """A field that must be present. Reading it raises FormatError if it is absent."""

    @overload
    def __get__(self, view: None, owner: type) -> Self: ...
    @overload
    def __get__(self, view: View, owner: type) -> T: ...
    def __get__(self, view: View | None, owner: type) -> Self | T:
        if view is None:
            return self
        value = self.load(view)
        if value is None:
            raise FormatError(f"{self.label} is missing")
        return value


class Optional(_Field[T]):
    """A field that is ``None`` if it is absent."""

    @overload
    def __get__(self, view: None, owner: type) -> Self: ...
    @overload
    def __get__(self, view: View, owner: type) -> T | None: ...
    def __get__(self, view: View | None, owner: type) -> Self | T | None:
        return self if view is None else self.load(view)

    def __delete__(self, view: View) -> None:
        view.tree.fields.pop(self.id, None)


class View:
    """A typed view on one Thrift structure."""

    __slots__ = ("tree",)
    FIELDS: ClassVar[dict[str, _Field[Any]]] = {}

    def __init__(self, tree: trees.Struct | None = None) -> None:
        self.tree = trees.Struct() if tree is None else tree

    def __init_subclass__(cls) -> None:
        cls.FIELDS = {name: f for name, f in vars(cls).items() if isinstance(f, _Field)}

    @classmethod
    def of(cls, **fields: object) -> Self:
        """Return a new structure with the named fields set."""
        view = cls()
        for name, value in fields.items():
            setattr(view, name, value)
        return view

    def encode(self) -> bytes:
        """Return the structure in the Thrift compact protocol."""
        return trees.encode(self.tree)


class Union(View):
    """A Thrift union: exactly one member is set."""

    __slots__ = ()

    def member(self) -> str:
        """Return the name of the member that is set.

        Raises UnsupportedFeatureError for an unknown member.
        """
        names = [n for n, f in self.FIELDS.items() if f.id in self.tree.fields]
        if len(names) != 1 or len(self.tree.fields) != 1:
            ids = sorted(self.tree.fields)
            raise UnsupportedFeatureError(
                f"{type(self).__name__} has member ids {ids}, wanted one of {list(self.FIELDS)}"
            )
        return names[0]


def _same(value: Any) -> Any:
    return value


def _integer(bits: int) -> Callable[[Any], int]:
    # The library's Python code reads numbers of any length, whatever their type.
    limit = 1 << (bits - 1)

    def load(value: int) -> int:
        if not -limit <= value < limit:
            raise FormatError(f"an i{bits} holds {value}")
        return value

    return load


def _load_text(value: bytes) -> str:
    try:
        return value.decode()
    except UnicodeDecodeError:
        # The foreign error is not chained: it holds the bytes, which may be a cell's value.
        raise FormatError("a string of the metadata is not UTF-8") from None


BOOL: FieldType[bool] = FieldType("bool", TType.BOOL, _same, _same)
I16: FieldType[int] = FieldType("i16", TType.I16, _integer(16), _same)
I32: FieldType[int] = FieldType("i32", TType.I32, _integer(32), _same)
I64: FieldType[int] = FieldType("i64", TType.I64, _integer(64), _same)
I8: FieldType[int] = FieldType("i8", TType.BYTE, _same, _same)
BINARY: FieldType[bytes] = FieldType("binary", TType.STRING, _same, _same)
STRING: FieldType[str] = FieldType("string", TType.STRING, _load_text, str.encode)


def enum_of(cls: type[E]) -> FieldType[E]:
    """Return the type of an enumeration.

    Reading an unknown number raises an error that names it.
    """
    return FieldType(cls.__name__, TType.I32, cls, int)


def struct_of(cls: type[V]) -> FieldType[V]:
    """Return the type of a structure or union. Its view shares the tree."""
    return FieldType(cls.__name__, TType.STRUCT, cls, lambda view: view.tree, cls)


def list_of(kind: FieldType[T]) -> FieldType[list[T]]:
    """Return the type of a list. Its views share the tree, but the list itself is a copy."""

    def load(sequence: trees.Sequence) -> list[T]:
        # The type of the elements of an empty list is not looked at: there is nothing to misread.
        if sequence.items and sequence.element_type != kind.ttype:
            raise FormatError(
                f"a list has elements of Thrift type {sequence.element_type}, wanted {kind.name}"
            )
        return [kind.load(item) for item in sequence.items]

    def dump(values: Iterable[T]) -> trees.Sequence:
        return trees.Sequence(kind.ttype, [kind.dump(value) for value in values])

    return FieldType(f"list<{kind.name}>", TType.LIST, load, cast(Any, dump), kind)


class Empty(View):
    """A structure without fields. Its presence is its only information."""

    __slots__ = ()


def empty(name: str) -> FieldType[Empty]:
    """Return the type of a structure without fields, by its name in the IDL."""
    return FieldType(name, TType.STRUCT, Empty, lambda view: view.tree, Empty)
