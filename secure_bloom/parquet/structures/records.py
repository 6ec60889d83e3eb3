"""Decode structures that are only read: the fields of a view, at once, as plain Python values.

A tree keeps every field, which takes time.  A record has only the fields that its view declares,
under the same names.  An enumeration is a number, and a union is a record with one member set.
Reading a field that the view requires and the bytes lack raises FormatError.

If the Thrift library is installed without its C code, views are used as records: slower, with the
same fields.
"""

from __future__ import annotations

import enum
import functools
import threading
from collections.abc import Hashable, Sequence
from typing import Any, Generic, TypeVar, cast, overload

from thrift.protocol.TProtocol import TType

from secure_bloom.errors import FormatError, UnsupportedFeatureError
from secure_bloom.parquet.structures import trees
from secure_bloom.parquet.structures.views import STRING, FieldType, Required, View
from secure_bloom.parquet.structures.wire_fields import WireType, find_fields, list_elements

V = TypeVar("V", bound=View)
E = TypeVar("E", bound=enum.IntEnum)


class _Record:
    """The base of all records. Their classes have ``None`` for every field that may be absent."""

    optional: frozenset[str] = frozenset()

    def __getattr__(self, name: str) -> Any:
        # Python calls this for attributes that are not set: of a record, required fields that are
        # missing.
        raise FormatError(f"{type(self).__name__}.{name} is missing")

    def member(self) -> str:
        """Return the name of a union's member, as :meth:`.views.Union.member` does."""
        names = [name for name in self.optional if getattr(self, name) is not None]
        # A member of a later format is not among them, so its union looks empty.
        if len(names) != 1:
            raise UnsupportedFeatureError(f"{type(self).__name__} has no member known here")
        return names[0]


def decode_record(view: type[V], buffer: trees.Buffer) -> V:
    """Return the structure at the start of ``buffer`` as a read-only ``view``.

    Bytes after its end are ignored.  Raises FormatError for damaged bytes.
    """
    return measured_record(view, buffer)[0]


def measured_record(view: type[V], buffer: trees.Buffer) -> tuple[V, int]:
    """Return the record of :func:`decode_record`, and the number of bytes of its structure."""
    if not trees.HAS_C_CODE:
        tree, length = trees.decode(buffer)
        return view(tree), length
    cls = _record_class(cast(Hashable, view))
    record = cls()
    length = trees.StructReader(buffer).read(0, record, cls.thrift_spec)
    return cast(V, record), length


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
        if not trees.HAS_C_CODE:
            return decode_record(self._view, memoryview(self._buffer)[start:])
        record = self._class()
        with self._turn:
            self._reader.read(start, record, self._class.thrift_spec)
        return cast(V, record)

    @functools.cached_property
    def _class(self) -> Any:
        return _record_class(cast(Hashable, self._view))

    @functools.cached_property
    def _reader(self) -> trees.StructReader:
        return trees.StructReader(self._buffer)


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


def measured_outline(view: type[V], buffer: bytes, *later: type[View]) -> tuple[V, int]:
    """Like :func:`measured_record`, but lists of the ``later`` structures become lists of offsets.

    The offsets are for :class:`LaterRecords`.
    """
    cls = _record_class(cast(Hashable, view))
    record = cls()
    if not trees.HAS_C_CODE:
        return cast(V, record), _outline_slowly(record, view, buffer, 0, later)
    spec = _outlines.spec(view, later)
    return cast(V, record), _outlines.reader.read_into(record, spec, buffer)


class _Outlines(threading.local):
    """The reader of a thread, and the specifications that make it record offsets."""

    def __init__(self) -> None:
        self.reader = trees.OffsetReader()
        self._specs: dict[tuple[object, object], object] = {}

    def spec(self, view: type[View], later: tuple[type[View], ...]) -> object:
        known = self._specs.get((view, later))
        if known is None:
            stand_ins = dict.fromkeys(later, self.reader.offset_type)
            known = self._specs[view, later] = _thrift_spec(view, stand_ins)
        return known


_outlines = _Outlines()


def _outline_slowly(
    record: Any, view: type[View], buffer: bytes, start: int, later: tuple[type[View], ...]
) -> int:
    """Outline the structure at ``start`` without the library's C code. Return where it ends."""
    found = find_fields(buffer, start)
    alone = view(trees.decode(memoryview(buffer)[start:])[0])
    for name, field in view.FIELDS.items():
        at = found.by_id.get(field.id)
        of = field.kind.inner.inner if field.kind.ttype == TType.LIST else None
        if at is None or at.type != WireType.LIST or of is None:
            value = field.load(alone)
        else:
            value = [begin for begin, _ in list_elements(buffer, at)]
            if of not in later:
                value = [_outlined_slowly(of, buffer, begin, later) for begin in value]
        if value is not None:
            setattr(record, name, value)
    return found.stop + 1


def _outlined_slowly(
    view: type[View], buffer: bytes, start: int, later: tuple[type[View], ...]
) -> Any:
    record = _record_class(cast(Hashable, view))()
    _outline_slowly(record, view, buffer, start, later)
    return record


@functools.cache
def _record_class(view: Any) -> Any:
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
        cls = _record_class(kind.inner)
        # A list, because the C code takes no tuple here.
        return [cls, _thrift_spec(kind.inner, stand_ins) if stand_ins else cls.thrift_spec]
    return None
