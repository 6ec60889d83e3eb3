"""Typed views on lossless Thrift trees: read and write the declared fields of a structure.

A view reads and writes single fields of a tree.  Fields that are not declared stay unchanged.
"""

from __future__ import annotations

import enum
from typing import Any, ClassVar, Self, TypeVar

from thrift.protocol.TProtocol import TType

from secure_bloom.errors import FormatError, UnsupportedFeatureError
from secure_bloom.parquet.structures import declarations
from secure_bloom.parquet.structures.declarations import (
    STRING,
    DeclaredField,
    FieldType,
    Required,
    Structure,
)
from testing.thrift import trees

V = TypeVar("V", bound="View")
_VIEWS: dict[str, type[View]] = {}


class _ViewField:
    """One declared field: a descriptor that reads and writes the tree under a view."""

    def __init__(self, declared: DeclaredField[Any], label: str) -> None:
        self.id = declared.id
        self.kind = declared.kind
        self.is_required = isinstance(declared, Required)
        self.label = label

    def __get__(self, view: View | None, owner: type) -> Any:
        if view is None:
            return self
        found = view.tree.fields.get(self.id)
        if found is None:
            if self.is_required:
                raise FormatError(f"{self.label} is missing")
            return None
        ttype, value = found
        if ttype != self.kind.ttype:
            raise FormatError(f"{self.label} has Thrift type {ttype}, wanted {self.kind.name}")
        try:
            return _load(self.kind, value)
        except ValueError as exc:
            shown = value if isinstance(value, int) else "a value"
            raise UnsupportedFeatureError(
                f"{self.label} is {shown}, which is no {self.kind.name} known here"
            ) from exc

    def __set__(self, view: View, value: Any) -> None:
        fields = view.tree.fields
        is_new = self.id not in fields
        fields[self.id] = (self.kind.ttype, _dump(self.kind, value))
        if is_new:
            # Ids ascend, as with every writer: the compact protocol then stores each id in the byte
            # of its type.
            view.tree.fields = dict(sorted(fields.items()))

    def __delete__(self, view: View) -> None:
        view.tree.fields.pop(self.id, None)


class View(Structure):
    """A typed view on one Thrift structure: a subclass of the structure's declaration."""

    FIELDS: ClassVar[dict[str, DeclaredField[Any]]] = {}

    def __init__(self, tree: trees.Struct | None = None) -> None:
        self.tree = trees.Struct() if tree is None else tree

    def __init_subclass__(cls) -> None:
        declared = cls.__mro__[2]
        assert issubclass(declared, Structure)
        cls.FIELDS = declared.FIELDS
        for name, field in cls.FIELDS.items():
            setattr(cls, name, _ViewField(field, f"{cls.__name__}.{name}"))
        _VIEWS[cls.__name__] = cls

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

    def member(self) -> str:
        """Return the name of a union's member that is set.

        Raises UnsupportedFeatureError for an unknown member.
        """
        names = [n for n, f in self.FIELDS.items() if f.id in self.tree.fields]
        if len(names) != 1 or len(self.tree.fields) != 1:
            ids = sorted(self.tree.fields)
            raise UnsupportedFeatureError(
                f"{type(self).__name__} has member ids {ids}, wanted one of {list(self.FIELDS)}"
            )
        return names[0]


def encoded(structure: Structure) -> bytes:
    """Return the bytes of a structure that is known to be a view."""
    assert isinstance(structure, View)
    return structure.encode()


def tree_of(structure: Structure) -> trees.Struct:
    """Return the tree of a structure that is known to be a view."""
    assert isinstance(structure, View)
    return structure.tree


def _load(kind: FieldType[Any], value: Any) -> Any:
    if kind.ttype == TType.LIST:
        inner: FieldType[Any] = kind.inner
        # The type of the elements of an empty list is not looked at: there is nothing to misread.
        if value.items and value.element_type != inner.ttype:
            raise FormatError(
                f"a list has elements of Thrift type {value.element_type}, wanted {inner.name}"
            )
        return [_load(inner, item) for item in value.items]
    if kind.ttype == TType.STRUCT:
        return _VIEWS[kind.inner.__name__](value)
    if kind.inner is not None:
        return kind.inner(value)
    if kind is STRING:
        try:
            return value.decode()
        except UnicodeDecodeError:
            raise FormatError("a string of the metadata is not UTF-8") from None
    bits = _BITS.get(kind.ttype)
    if bits is not None and not -(1 << (bits - 1)) <= value < 1 << (bits - 1):
        raise FormatError(f"an i{bits} holds {value}")
    return value


_BITS = {TType.I16: 16, TType.I32: 32, TType.I64: 64}


def _dump(kind: FieldType[Any], value: Any) -> Any:
    if kind.ttype == TType.LIST:
        return trees.Sequence(kind.inner.ttype, [_dump(kind.inner, item) for item in value])
    if kind.ttype == TType.STRUCT:
        return value.tree
    if isinstance(value, enum.IntEnum):
        return int(value)
    return value.encode() if kind is STRING else value


class Empty(View, declarations.Empty):
    """A structure without fields."""
