"""Decode structures that are only read: their declared fields, at once, as plain Python values.

A record has the fields that are declared, under the same names, and no others.  An enumeration is a
number, and a union is a record with one member set.  Reading a field that is required and that the
bytes lack raises FormatError.

The Thrift library's C code decodes.  If the library is installed without it, :mod:`.wire_fields`
finds the fields: slower, with the same records.
"""

from __future__ import annotations

import enum
import functools
import io
import threading
from collections.abc import Callable, Collection, Hashable, Sequence
from typing import Any, Final, Generic, TypeVar, cast, overload

from thrift.protocol.TBase import TBase
from thrift.protocol.TCompactProtocol import TCompactProtocolAccelerated
from thrift.protocol.TProtocol import TProtocolException, TType
from thrift.transport.TTransport import TMemoryBuffer, TTransportException

from secure_bloom.errors import FormatError, UnsupportedFeatureError
from secure_bloom.parquet.structures.declarations import (
    STRING,
    FieldType,
    Required,
    Structure,
)
from secure_bloom.parquet.structures.wire_fields import (
    MAX_ELEMENTS,
    Buffer,
    Field,
    WireType,
    content,
    elements,
    find_fields,
    number,
)

V = TypeVar("V", bound=Structure)
E = TypeVar("E", bound=enum.IntEnum)


class _Record:
    """The base of all records. Their classes have ``None`` for every field that may be absent."""

    optional: frozenset[str] = frozenset()

    def __getattr__(self, name: str) -> Any:
        # Python calls this for attributes that are not set: of a record, required fields that are
        # missing.
        raise FormatError(f"{type(self).__name__}.{name} is missing")

    def member(self) -> str:
        """Return the name of a union's member, which says what it is."""
        names = [name for name in self.optional if getattr(self, name) is not None]
        # A member of a later format is not among them, so its union looks empty.
        if len(names) != 1:
            raise UnsupportedFeatureError(f"{type(self).__name__} has no member known here")
        return names[0]


def decode_record(view: type[V], buffer: Buffer) -> V:
    """Return the structure at the start of ``buffer`` as a record of ``view``.

    Bytes after its end are ignored.  Raises FormatError for damaged bytes.
    """
    return measured_record(view, buffer)[0]


def measured_record(view: type[V], buffer: Buffer) -> tuple[V, int]:
    """Return the record of :func:`decode_record`, and the number of bytes of its structure."""
    cls = record_class(cast(Hashable, view))
    record = cls()
    if not HAS_C_CODE:
        return cast(V, record), _read_slowly(record, view, buffer, 0)
    return cast(V, record), _readers.read_whole(record, buffer)


def copied_record(record: V) -> V:
    """Return a copy of the record, whose fields may be set."""
    copy: V = object.__new__(type(record))
    vars(copy).update(vars(record))
    return copy


def known_member(kinds: type[E], number: int, field: str) -> E:
    """Return the member of an enumeration with this number.

    Raises UnsupportedFeatureError for an unknown number.
    """
    try:
        return kinds(number)
    except ValueError:
        raise UnsupportedFeatureError(
            f"{field} is {number}, which is no {kinds.__name__} known here"
        ) from None


class StructReader:
    """The library's C decoder, if :data:`HAS_C_CODE`, on one buffer. For one thread alone."""

    def __init__(self, buffer: Buffer = b"") -> None:
        transport = TMemoryBuffer()
        self._data: io.BytesIO = transport.cstringio_buf
        self._protocol = TCompactProtocolAccelerated(transport)
        self.load(buffer)

    def load(self, buffer: Buffer) -> None:
        """Take ``buffer`` in place of the previous buffer. The bytes are shared, not copied."""
        # The very object is kept, since the classes of :meth:`outline_class` ask it.  To make the
        # library's two objects anew takes longer than to read a small structure.
        io.BytesIO.__init__(self._data, buffer)
        protocol = self._protocol
        protocol.string_length_limit = size = len(buffer)
        protocol.container_length_limit = size if size < MAX_ELEMENTS else MAX_ELEMENTS

    def unload(self) -> None:
        """Drop the reference to the buffer."""
        io.BytesIO.__init__(self._data)

    def read(self, start: int, record: Any) -> int:
        """Read the structure at ``start`` into attributes of ``record``. Return where it ends.

        The class of ``record`` has a ``thrift_spec`` as Thrift's own compiler writes it. Fields
        that it does not name are skipped.

        Besides the library's own errors, its C code raises Python's: TypeError for an unknown
        Thrift type, OverflowError for a size too large.  All of them mean damaged bytes.
        """
        # The C code reads where this buffer's position is, and leaves it after the structure.
        self._data.seek(start)
        try:
            # The library's method for generated classes needs no more than ``thrift_spec``.
            TBase.read(record, self._protocol)
        except (TProtocolException, TTransportException, EOFError, *_C_ERRORS) as exc:
            raise FormatError(f"Thrift structure is damaged after byte {start}") from exc
        return self._data.tell()

    def outline_class(self, view: type[Structure], later: Collection[type[Structure]]) -> Any:
        """Return a class of records of ``view`` that has offsets in place of ``later`` structures.

        The C code makes each structure by calling the class in its ``spec``.  For a ``later``
        structure the ``spec`` has a substitute class. Calling the substitute returns the byte
        offset that this reader has reached.  The substitute's own ``spec`` has no field, so the C
        code then skips the structure.  The structure is checked like any other, at a fifth of the
        cost.
        """
        called: Any = type("Offsets", (type,), {"__call__": self._data.tell})
        spec = _thrift_spec(view, dict.fromkeys(later, called("Offset", (), {})))
        whole = record_class(cast(Hashable, view))
        return type(whole.__name__, (whole,), {"thrift_spec": spec})


_C_ERRORS = (TypeError, ValueError, OverflowError, SystemError)


def _has_c_code() -> bool:
    try:
        TCompactProtocolAccelerated(TMemoryBuffer(), fallback=False)
    except ImportError:
        return False
    return True


#: Whether the library came with its C code: where it was installed without a compiler it has none.
HAS_C_CODE = _has_c_code()


class RecordSource(Generic[V]):
    """A buffer in which structures of one view are decoded at known offsets.

    Safe for threads.
    """

    def __init__(self, view: type[V], buffer: bytes) -> None:
        self._view = view
        self._buffer = buffer
        self._turn = threading.Lock()

    def at(self, start: int) -> V:
        """Return the structure that starts at ``start``. Raises FormatError for damaged bytes."""
        record = self._class()
        if not HAS_C_CODE:
            _read_slowly(record, self._view, self._buffer, start)
            return cast(V, record)
        with self._turn:
            self._reader.read(start, record)
        return cast(V, record)

    @functools.cached_property
    def _class(self) -> Any:
        return record_class(cast(Hashable, self._view))

    @functools.cached_property
    def _reader(self) -> StructReader:
        return StructReader(self._buffer)


class LaterRecords(Sequence[V]):
    """The structures of a list, by their offsets. Each is decoded when it is first accessed.

    All of them were found to be whole before.  A list inside them with elements of a wrong type is
    noticed only when its structure is decoded.
    """

    __slots__ = ("_decoded", "_source", "offsets")

    def __init__(self, source: RecordSource[V], offsets: Sequence[int]) -> None:
        self._source = source
        self.offsets = offsets
        self._decoded: dict[int, V] = {}

    def __len__(self) -> int:
        return len(self.offsets)

    @overload
    def __getitem__(self, index: int) -> V: ...
    @overload
    def __getitem__(self, index: slice) -> list[V]: ...
    def __getitem__(self, index: int | slice) -> V | list[V]:
        if isinstance(index, slice):
            return [self[i] for i in range(*index.indices(len(self)))]
        found = self._decoded.get(index)
        if found is None:
            # Two threads may decode the same one.  Both results are equal, and records are only
            # read.
            found = self._decoded[index] = self._source.at(self.offsets[index])
        return found

    def take(self, records: Sequence[V]) -> None:
        """Take the records of all structures, which were decoded from the same bytes."""
        self._decoded.update(enumerate(records))


def measured_outline(view: type[V], buffer: bytes, *later: type[Structure]) -> tuple[V, int]:
    """Return what :func:`measured_record` returns, but with offsets in place of some structures.

    A list of ``later`` structures becomes a list of the offset of each, for
    :class:`LaterRecords`.
    """
    if not HAS_C_CODE:
        record = record_class(cast(Hashable, view))()
        return cast(V, record), _read_slowly(record, view, buffer, 0, later)
    record = _readers.outline_class(view, later)()
    return cast(V, record), _readers.read_whole(record, buffer)


class _Readers(threading.local):
    """The reader of a thread, and its classes of outlines."""

    def __init__(self) -> None:
        self._reader = StructReader()
        self._outlines: dict[tuple[object, object], Any] = {}

    def outline_class(self, view: type[Structure], later: tuple[type[Structure], ...]) -> Any:
        known = self._outlines.get((view, later))
        if known is None:
            known = self._outlines[view, later] = self._reader.outline_class(view, later)
        return known

    def read_whole(self, record: object, buffer: Buffer) -> int:
        """Read the structure at the start of ``buffer`` into ``record``. Return where it ends."""
        self._reader.load(buffer)
        try:
            return self._reader.read(0, record)
        finally:
            self._reader.unload()


_readers = _Readers()


def rewritten(record: Any, buffer: Buffer) -> bytes | None:
    """Read a structure into ``record``, and return it as Thrift's library writes it.

    The class of ``record`` has a ``thrift_spec``, and other fields are left out.  Return None for
    damaged bytes, and if the library has no C code.
    """
    if not HAS_C_CODE:
        return None
    target = TMemoryBuffer()
    try:
        _readers.read_whole(record, buffer)
        TBase.write(record, TCompactProtocolAccelerated(target))
    except (FormatError, *_C_ERRORS):
        return None
    written: bytes = target.getvalue()
    return written


def _read_slowly(
    record: Any,
    view: type[Structure],
    buffer: Buffer,
    start: int,
    later: Collection[type[Structure]] = (),
) -> int:
    """Read the structure at ``start`` without the library's C code. Return where it ends.

    Lists of the ``later`` structures become lists of offsets.
    """
    found = find_fields(buffer, start)
    for name, field in view.FIELDS.items():
        at = found.by_id.get(field.id)
        # As in the C code, a field of another type is passed over.
        if at is not None and at.type in _WIRE_TYPES[field.kind.ttype]:
            setattr(record, name, _value(field.kind, buffer, at, later))
    return found.stop + 1


def _value(
    kind: FieldType[Any], buffer: Buffer, field: Field, later: Collection[type[Structure]]
) -> Any:
    if kind.ttype == TType.LIST:
        inner: FieldType[Any] = kind.inner
        found = elements(buffer, field)
        if any(it.type not in _WIRE_TYPES[inner.ttype] for it in found):
            raise FormatError(f"a list of the metadata has elements that are no {inner.name}")
        if inner.inner in later:
            return [it.value for it in found]
        return [_value(inner, buffer, it, later) for it in found]
    if kind.ttype == TType.STRUCT:
        record = record_class(kind.inner)()
        _read_slowly(record, kind.inner, buffer, field.value, later)
        return record
    return _SCALARS["text" if kind is STRING else kind.ttype](buffer, field)


def _text(buffer: Buffer, field: Field) -> str:
    try:
        return content(buffer, field).decode()
    except UnicodeDecodeError:
        # The foreign error is not chained: it holds the bytes, which may be a cell's value.
        raise FormatError("a string of the metadata is not UTF-8") from None


def _integer(bits: int) -> Callable[[Buffer, Field], int]:
    limit = 1 << (bits - 1)

    def read(buffer: Buffer, field: Field) -> int:
        found = number(buffer, field)
        if not -limit <= found < limit:
            raise FormatError(f"an i{bits} holds {found}")
        return found

    return read


#: The types in a field's header of each Thrift type that is declared.
_WIRE_TYPES: Final = {
    TType.BOOL: (WireType.TRUE, WireType.FALSE),
    TType.BYTE: (WireType.BYTE,),
    TType.I16: (WireType.I16,),
    TType.I32: (WireType.I32,),
    TType.I64: (WireType.I64,),
    TType.STRING: (WireType.BINARY,),
    TType.LIST: (WireType.LIST,),
    TType.STRUCT: (WireType.STRUCT,),
}
_SCALARS: Final[dict[object, Callable[[Buffer, Field], Any]]] = {
    # In a list the bool itself is a byte, otherwise it is in the type.
    TType.BOOL: lambda buffer, it: (it.type if it.value == it.end else buffer[it.value]) == 1,
    TType.BYTE: lambda buffer, it: int.from_bytes(buffer[it.value : it.end], signed=True),
    TType.I16: _integer(16),
    TType.I32: _integer(32),
    TType.I64: _integer(64),
    TType.STRING: content,
    "text": _text,
}


@functools.cache
def record_class(view: Any) -> Any:
    """Return a class with a ``thrift_spec``, and with the defaults of absent fields."""
    optional = frozenset(n for n, field in view.FIELDS.items() if not isinstance(field, Required))
    members = {"optional": optional, **dict.fromkeys(optional)}
    cls: Any = type(view.__name__, (_Record,), members)
    cls.thrift_spec = _thrift_spec(view, {})
    return cls


def _thrift_spec(view: Any, stand_ins: dict[Any, type]) -> tuple[Any, ...]:
    """Return the fields of ``view`` by their ids.

    ``stand_ins`` maps views to the classes that are used in their place.
    """
    # The library looks a field up by its id as an index, so ids that nobody uses need a None.
    fields = {field.id: (name, field.kind) for name, field in view.FIELDS.items()}
    return tuple(
        (i, fields[i][1].ttype, fields[i][0], _details(fields[i][1], stand_ins), None)
        if i in fields
        else None
        for i in range(max(fields, default=-1) + 1)
    )


def _details(kind: FieldType[Any], stand_ins: dict[Any, type]) -> Any:
    """Return the details that the library needs about a type, besides its number."""
    if kind.ttype == TType.STRING:
        return "UTF8" if kind is STRING else "BINARY"
    if kind.ttype == TType.LIST:
        # False: the elements go into a list, not into a tuple.
        return (kind.inner.ttype, _details(kind.inner, stand_ins), False)
    if kind.ttype == TType.STRUCT:
        if kind.inner in stand_ins:
            return [stand_ins[kind.inner], ()]
        cls = record_class(kind.inner)
        # A list, because the C code takes no tuple here.
        return [cls, _thrift_spec(kind.inner, stand_ins) if stand_ins else cls.thrift_spec]
    return None
