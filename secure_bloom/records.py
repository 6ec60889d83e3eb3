"""Structures that are read and never written back: a view's fields, decoded at once.

A tree keeps everything and costs accordingly.  A record has the fields that its view declares, by
the same names, as plain Python values: an enumeration is its number, a union a record with one
member set.  Reading a field that the view requires and the bytes lack raises FormatError.
"""

from __future__ import annotations

import functools
from collections.abc import Hashable
from typing import Any, TypeVar, cast

from thrift.protocol.TProtocol import TType

from secure_bloom import compact
from secure_bloom.errors import FormatError, UnsupportedFeatureError
from secure_bloom.views import STRING, Kind, Required, View

V = TypeVar("V", bound=View)


class _Record:
    """The base of all records; it answers for fields that were not there."""

    __slots__ = ()
    optional: frozenset[str] = frozenset()

    def __getattr__(self, name: str) -> Any:
        if name in self.optional:
            return None
        raise FormatError(f"{type(self).__name__}.{name} is missing")

    def member(self) -> str:
        """The name of a union's member, as of :meth:`secure_bloom.views.Union.member`."""
        names = [name for name in self.optional if getattr(self, name) is not None]
        if len(names) != 1:
            raise UnsupportedFeatureError(f"{type(self).__name__} has no member known here")
        return names[0]


def decode_record(view: type[V], buffer: compact.Buffer) -> V:
    """The structure at the start of ``buffer``, to be used as a ``view`` that cannot be edited.

    Bytes after its end are not looked at.  Raises FormatError for damaged bytes.
    """
    return measured_record(view, buffer)[0]


def measured_record(view: type[V], buffer: compact.Buffer) -> tuple[V, int]:
    """As :func:`decode_record`, and the number of bytes that the structure takes."""
    cls = _record_class(cast(Hashable, view))
    record = cls()
    length = compact.decode_into(record, cls.thrift_spec, buffer)
    return cast(V, record), length


@functools.cache
def _record_class(view: Any) -> Any:
    """A class with a ``thrift_spec`` and a slot for each field."""
    optional = frozenset(n for n, field in view.FIELDS.items() if not isinstance(field, Required))
    members = {"__slots__": tuple(view.FIELDS), "optional": optional}
    cls: Any = type(view.__name__, (_Record,), members)
    fields = {field.id: (name, field.kind) for name, field in view.FIELDS.items()}
    cls.thrift_spec = tuple(
        _spec(i, *fields[i]) if i in fields else None for i in range(max(fields, default=-1) + 1)
    )
    return cls


def _spec(field_id: int, name: str, kind: Kind[Any]) -> tuple[Any, ...]:
    return (field_id, kind.ttype, name, _details(kind), None)


def _details(kind: Kind[Any]) -> Any:
    """What the library wants to know of a type beside its number."""
    if kind.ttype == TType.STRING:
        return "UTF8" if kind is STRING else "BINARY"
    if kind.ttype == TType.LIST:
        return (kind.inner.ttype, _details(kind.inner), False)
    if kind.ttype == TType.STRUCT:
        cls = _record_class(kind.inner)
        return [cls, cls.thrift_spec]
    return None
