"""The Parquet structures as typed views over lossless Thrift trees.

A view reads and writes single fields of the tree it stands on; what it does not name stays as it
is.  Field ids and types are those of ``thrift/parquet.thrift``, which a test holds them to.  Only
structures and fields that this package uses are declared.
"""

from __future__ import annotations

import enum
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any, ClassVar, Generic, Self, TypeVar, cast, overload

from thrift.protocol.TProtocol import TType

from secure_bloom import compact
from secure_bloom.errors import FormatError, UnsupportedFeatureError

T = TypeVar("T")
E = TypeVar("E", bound=enum.IntEnum)
V = TypeVar("V", bound="View")


@dataclass(frozen=True, slots=True)
class Kind(Generic[T]):
    """How a field's value stands in the tree: its name in the IDL, Thrift type, load and dump."""

    name: str
    ttype: int
    load: Callable[[Any], T]
    dump: Callable[[T], Any]


class _Field(Generic[T]):
    """One declared field: a descriptor that reads and writes the tree under a view."""

    def __init__(self, field_id: int, kind: Kind[T]) -> None:
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
            # A number tells the reader what to look for; a text could be anything.
            shown = value if isinstance(value, int) else "a value"
            raise UnsupportedFeatureError(
                f"{self.label} is {shown}, which is no {self.kind.name} known here"
            ) from exc

    def __set__(self, view: View, value: T) -> None:
        fields = view.tree.fields
        is_new = self.id not in fields
        fields[self.id] = (self.kind.ttype, self.kind.dump(value))
        if is_new:
            # Ascending ids are what every writer produces; unknown fields keep their place.
            view.tree.fields = dict(sorted(fields.items()))


class Required(_Field[T]):
    """A field that must be there; reading it raises FormatError where it is not."""

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
    """A field that may be absent: ``None``."""

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

    def __init__(self, tree: compact.Struct | None = None) -> None:
        self.tree = compact.Struct() if tree is None else tree

    def __init_subclass__(cls) -> None:
        cls.FIELDS = {name: f for name, f in vars(cls).items() if isinstance(f, _Field)}

    @classmethod
    def of(cls, **fields: object) -> Self:
        """A new structure with the named fields set."""
        view = cls()
        for name, value in fields.items():
            setattr(view, name, value)
        return view

    def copy(self) -> Self:
        """A view on a copy; structures below are shared."""
        return type(self)(compact.Struct(dict(self.tree.fields)))

    def encode(self) -> bytes:
        """The structure's Thrift compact bytes."""
        return compact.encode(self.tree)


class Union(View):
    """A Thrift union: exactly one member is set."""

    __slots__ = ()

    def member(self) -> str:
        """The name of the member that is set; UnsupportedFeatureError for one not known here."""
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
        raise FormatError("a string of the metadata is not UTF-8") from None


BOOL: Kind[bool] = Kind("bool", TType.BOOL, _same, _same)
I16: Kind[int] = Kind("i16", TType.I16, _integer(16), _same)
I32: Kind[int] = Kind("i32", TType.I32, _integer(32), _same)
I64: Kind[int] = Kind("i64", TType.I64, _integer(64), _same)
I8: Kind[int] = Kind("i8", TType.BYTE, _same, _same)
BINARY: Kind[bytes] = Kind("binary", TType.STRING, _same, _same)
STRING: Kind[str] = Kind("string", TType.STRING, _load_text, str.encode)


def enum_of(cls: type[E]) -> Kind[E]:
    """An enumeration; a number it does not have is refused by name when it is read."""
    return Kind(cls.__name__, TType.I32, cls, int)


def struct_of(cls: type[V]) -> Kind[V]:
    """A structure or union seen through its own view, which stands on the same tree."""
    return Kind(cls.__name__, TType.STRUCT, cls, lambda view: view.tree)


def list_of(kind: Kind[T]) -> Kind[list[T]]:
    """A list; the views in it stand on the tree, the list itself is a copy."""

    def load(sequence: compact.Sequence) -> list[T]:
        if sequence.items and sequence.element_type != kind.ttype:
            raise FormatError(
                f"a list has elements of Thrift type {sequence.element_type}, wanted {kind.name}"
            )
        return [kind.load(item) for item in sequence.items]

    def dump(values: Iterable[T]) -> compact.Sequence:
        return compact.Sequence(kind.ttype, [kind.dump(value) for value in values])

    return Kind(f"list<{kind.name}>", TType.LIST, load, cast(Any, dump))


class Type(enum.IntEnum):
    """Physical types."""

    BOOLEAN = 0
    INT32 = 1
    INT64 = 2
    INT96 = 3
    FLOAT = 4
    DOUBLE = 5
    BYTE_ARRAY = 6
    FIXED_LEN_BYTE_ARRAY = 7


class ConvertedType(enum.IntEnum):
    """Logical types, the older way."""

    UTF8 = 0
    MAP = 1
    MAP_KEY_VALUE = 2
    LIST = 3
    ENUM = 4
    DECIMAL = 5
    DATE = 6
    TIME_MILLIS = 7
    TIME_MICROS = 8
    TIMESTAMP_MILLIS = 9
    TIMESTAMP_MICROS = 10
    UINT_8 = 11
    UINT_16 = 12
    UINT_32 = 13
    UINT_64 = 14
    INT_8 = 15
    INT_16 = 16
    INT_32 = 17
    INT_64 = 18
    JSON = 19
    BSON = 20
    INTERVAL = 21


class FieldRepetitionType(enum.IntEnum):
    """How often a field may stand in its parent."""

    REQUIRED = 0
    OPTIONAL = 1
    REPEATED = 2


class Encoding(enum.IntEnum):
    """Encodings of pages."""

    PLAIN = 0
    PLAIN_DICTIONARY = 2
    RLE = 3
    BIT_PACKED = 4
    DELTA_BINARY_PACKED = 5
    DELTA_LENGTH_BYTE_ARRAY = 6
    DELTA_BYTE_ARRAY = 7
    RLE_DICTIONARY = 8
    BYTE_STREAM_SPLIT = 9
    ALP = 10


class CompressionCodec(enum.IntEnum):
    """Codecs of page bodies."""

    UNCOMPRESSED = 0
    SNAPPY = 1
    GZIP = 2
    LZO = 3
    BROTLI = 4
    LZ4 = 5
    ZSTD = 6
    LZ4_RAW = 7


class PageType(enum.IntEnum):
    """Kinds of pages."""

    DATA_PAGE = 0
    INDEX_PAGE = 1
    DICTIONARY_PAGE = 2
    DATA_PAGE_V2 = 3


class Empty(View):
    """A structure without fields: it says something by being there."""

    __slots__ = ()


def _empty(name: str) -> Kind[Empty]:
    return Kind(name, TType.STRUCT, Empty, lambda view: view.tree)


class DecimalType(View):
    """Unscaled integer and scale."""

    scale = Required(1, I32)
    precision = Required(2, I32)


class TimeUnit(Union):
    """Unit of a time or timestamp."""

    MILLIS = Optional(1, _empty("MilliSeconds"))
    MICROS = Optional(2, _empty("MicroSeconds"))
    NANOS = Optional(3, _empty("NanoSeconds"))


class TimestampType(View):
    """Instant, or local date and time."""

    isAdjustedToUTC = Required(1, BOOL)  # noqa: N815 - the specification's name
    unit = Required(2, struct_of(TimeUnit))


class TimeType(View):
    """Time of the day."""

    isAdjustedToUTC = Required(1, BOOL)  # noqa: N815 - the specification's name
    unit = Required(2, struct_of(TimeUnit))


class IntType(View):
    """Integer of 8 to 64 bits."""

    bitWidth = Required(1, I8)  # noqa: N815 - the specification's name
    isSigned = Required(2, BOOL)  # noqa: N815 - the specification's name


class LogicalType(Union):
    """Logical types."""

    STRING = Optional(1, _empty("StringType"))
    MAP = Optional(2, _empty("MapType"))
    LIST = Optional(3, _empty("ListType"))
    ENUM = Optional(4, _empty("EnumType"))
    DECIMAL = Optional(5, struct_of(DecimalType))
    DATE = Optional(6, _empty("DateType"))
    TIME = Optional(7, struct_of(TimeType))
    TIMESTAMP = Optional(8, struct_of(TimestampType))
    INTEGER = Optional(10, struct_of(IntType))
    UNKNOWN = Optional(11, _empty("NullType"))
    JSON = Optional(12, _empty("JsonType"))
    BSON = Optional(13, _empty("BsonType"))
    UUID = Optional(14, _empty("UUIDType"))
    FLOAT16 = Optional(15, _empty("Float16Type"))


class SchemaElement(View):
    """One node of the schema, written depth first."""

    type = Optional(1, enum_of(Type))
    type_length = Optional(2, I32)
    repetition_type = Optional(3, enum_of(FieldRepetitionType))
    name = Required(4, STRING)
    num_children = Optional(5, I32)
    converted_type = Optional(6, enum_of(ConvertedType))
    scale = Optional(7, I32)
    precision = Optional(8, I32)
    logicalType = Optional(10, struct_of(LogicalType))  # noqa: N815 - the specification's name


class Statistics(View):
    """Statistics of a column chunk; only what sizing needs."""

    null_count = Optional(3, I64)


class DataPageHeader(View):
    """Data page, version 1."""

    num_values = Required(1, I32)
    encoding = Required(2, enum_of(Encoding))
    definition_level_encoding = Required(3, enum_of(Encoding))
    repetition_level_encoding = Required(4, enum_of(Encoding))


class DictionaryPageHeader(View):
    """Dictionary page."""

    num_values = Required(1, I32)
    encoding = Required(2, enum_of(Encoding))


class DataPageHeaderV2(View):
    """Data page, version 2."""

    num_values = Required(1, I32)
    num_nulls = Required(2, I32)
    num_rows = Required(3, I32)
    encoding = Required(4, enum_of(Encoding))
    definition_levels_byte_length = Required(5, I32)
    repetition_levels_byte_length = Required(6, I32)


class PageHeader(View):
    """What stands before each page."""

    type = Required(1, enum_of(PageType))
    uncompressed_page_size = Required(2, I32)
    compressed_page_size = Required(3, I32)
    crc = Optional(4, I32)
    data_page_header = Optional(5, struct_of(DataPageHeader))
    dictionary_page_header = Optional(7, struct_of(DictionaryPageHeader))
    data_page_header_v2 = Optional(8, struct_of(DataPageHeaderV2))


class BloomFilterAlgorithm(Union):
    """How the filter's bits are laid out."""

    BLOCK = Optional(1, _empty("SplitBlockAlgorithm"))


class BloomFilterHash(Union):
    """The hash of the filter."""

    XXHASH = Optional(1, _empty("XxHash"))


class BloomFilterCompression(Union):
    """The compression of the bitset."""

    UNCOMPRESSED = Optional(1, _empty("Uncompressed"))


class BloomFilterHeader(View):
    """What stands before the bitset."""

    numBytes = Required(1, I32)  # noqa: N815 - the specification's name
    algorithm = Required(2, struct_of(BloomFilterAlgorithm))
    hash = Required(3, struct_of(BloomFilterHash))
    compression = Required(4, struct_of(BloomFilterCompression))


class PageEncodingStats(View):
    """How many pages of a kind have an encoding."""

    page_type = Required(1, enum_of(PageType))
    encoding = Required(2, enum_of(Encoding))
    count = Required(3, I32)


class ColumnMetaData(View):
    """Everything about a column chunk but where its own metadata stands."""

    type = Required(1, enum_of(Type))
    encodings = Required(2, list_of(enum_of(Encoding)))
    path_in_schema = Required(3, list_of(STRING))
    codec = Required(4, enum_of(CompressionCodec))
    num_values = Required(5, I64)
    total_uncompressed_size = Required(6, I64)
    total_compressed_size = Required(7, I64)
    data_page_offset = Required(9, I64)
    dictionary_page_offset = Optional(11, I64)
    statistics = Optional(12, struct_of(Statistics))
    encoding_stats = Optional(13, list_of(struct_of(PageEncodingStats)))
    bloom_filter_offset = Optional(14, I64)
    bloom_filter_length = Optional(15, I32)


class EncryptionWithColumnKey(View):
    """The column's own key."""

    path_in_schema = Required(1, list_of(STRING))
    key_metadata = Optional(2, BINARY)


class ColumnCryptoMetaData(Union):
    """Which key a column chunk is encrypted with."""

    ENCRYPTION_WITH_FOOTER_KEY = Optional(1, _empty("EncryptionWithFooterKey"))
    ENCRYPTION_WITH_COLUMN_KEY = Optional(2, struct_of(EncryptionWithColumnKey))


class ColumnChunk(View):
    """A column chunk as the footer lists it."""

    file_path = Optional(1, STRING)
    file_offset = Required(2, I64)
    meta_data = Optional(3, struct_of(ColumnMetaData))
    crypto_metadata = Optional(8, struct_of(ColumnCryptoMetaData))
    encrypted_column_metadata = Optional(9, BINARY)


class RowGroup(View):
    """A row group: its column chunks in schema order."""

    columns = Required(1, list_of(struct_of(ColumnChunk)))
    total_byte_size = Required(2, I64)
    num_rows = Required(3, I64)
    ordinal = Optional(7, I16)


class AesGcmV1(View):
    """AES-GCM for every module."""

    aad_prefix = Optional(1, BINARY)
    aad_file_unique = Optional(2, BINARY)
    supply_aad_prefix = Optional(3, BOOL)


class AesGcmCtrV1(View):
    """AES-CTR for page bodies, AES-GCM for all else."""

    aad_prefix = Optional(1, BINARY)
    aad_file_unique = Optional(2, BINARY)
    supply_aad_prefix = Optional(3, BOOL)


class EncryptionAlgorithm(Union):
    """The two algorithms of modular encryption."""

    AES_GCM_V1 = Optional(1, struct_of(AesGcmV1))
    AES_GCM_CTR_V1 = Optional(2, struct_of(AesGcmCtrV1))


class FileMetaData(View):
    """The footer."""

    version = Required(1, I32)
    schema = Required(2, list_of(struct_of(SchemaElement)))
    num_rows = Required(3, I64)
    row_groups = Required(4, list_of(struct_of(RowGroup)))
    created_by = Optional(6, STRING)
    encryption_algorithm = Optional(8, struct_of(EncryptionAlgorithm))
    footer_signing_key_metadata = Optional(9, BINARY)


class FileCryptoMetaData(View):
    """What stands in clear before an encrypted footer."""

    encryption_algorithm = Required(1, struct_of(EncryptionAlgorithm))
    key_metadata = Optional(2, BINARY)
