"""The declarations of the Parquet structures.

A test checks field ids and types against ``thrift/parquet.thrift``.  Only structures and fields
that this package uses are declared.
"""

from __future__ import annotations

import enum

from secure_bloom.parquet.structures.declarations import (
    BINARY,
    BOOL,
    I8,
    I16,
    I32,
    I64,
    STRING,
    Optional,
    Required,
    Structure,
    Union,
    empty,
    enum_of,
    list_of,
    struct_of,
)


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
    """Logical types in the older form."""

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
    """How often a field occurs in its parent: always once, at most once, or repeated."""

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


class BoundaryOrder(enum.IntEnum):
    """Whether the bounds of a chunk's pages ascend, descend, or have no order."""

    UNORDERED = 0
    ASCENDING = 1
    DESCENDING = 2


class DecimalType(Structure):
    """Unscaled integer and scale."""

    scale = Required(1, I32)
    precision = Required(2, I32)


class TimeUnit(Union):
    """Unit of a time or timestamp."""

    MILLIS = Optional(1, empty("MilliSeconds"))
    MICROS = Optional(2, empty("MicroSeconds"))
    NANOS = Optional(3, empty("NanoSeconds"))


class TimestampType(Structure):
    """Instant, or local date and time."""

    isAdjustedToUTC = Required(1, BOOL)  # noqa: N815 - the specification's name
    unit = Required(2, struct_of(TimeUnit))


class TimeType(Structure):
    """Time of the day."""

    isAdjustedToUTC = Required(1, BOOL)  # noqa: N815 - the specification's name
    unit = Required(2, struct_of(TimeUnit))


class IntType(Structure):
    """Integer of 8 to 64 bits."""

    bitWidth = Required(1, I8)  # noqa: N815 - the specification's name
    isSigned = Required(2, BOOL)  # noqa: N815 - the specification's name


class LogicalType(Union):
    """Logical types."""

    STRING = Optional(1, empty("StringType"))
    MAP = Optional(2, empty("MapType"))
    LIST = Optional(3, empty("ListType"))
    ENUM = Optional(4, empty("EnumType"))
    DECIMAL = Optional(5, struct_of(DecimalType))
    DATE = Optional(6, empty("DateType"))
    TIME = Optional(7, struct_of(TimeType))
    TIMESTAMP = Optional(8, struct_of(TimestampType))
    # 9 is reserved for an INTERVAL that the format does not have yet.
    INTEGER = Optional(10, struct_of(IntType))
    UNKNOWN = Optional(11, empty("NullType"))
    JSON = Optional(12, empty("JsonType"))
    BSON = Optional(13, empty("BsonType"))
    UUID = Optional(14, empty("UUIDType"))
    FLOAT16 = Optional(15, empty("Float16Type"))


class SchemaElement(Structure):
    """One node of the schema, written depth first.

    ``encoded`` has the bytes of a node that was read, so that it can be written with all its
    fields.
    """

    encoded: bytes

    type = Optional(1, enum_of(Type))
    type_length = Optional(2, I32)
    repetition_type = Optional(3, enum_of(FieldRepetitionType))
    name = Required(4, STRING)
    num_children = Optional(5, I32)
    converted_type = Optional(6, enum_of(ConvertedType))
    scale = Optional(7, I32)
    precision = Optional(8, I32)
    field_id = Optional(9, I32)
    logicalType = Optional(10, struct_of(LogicalType))  # noqa: N815 - the specification's name


class Statistics(Structure):
    """Statistics of a column chunk. ``max`` and ``min`` are the older fields, in signed order."""

    # The larger bound has the smaller id, in both pairs.
    max = Optional(1, BINARY)
    min = Optional(2, BINARY)
    null_count = Optional(3, I64)
    distinct_count = Optional(4, I64)
    max_value = Optional(5, BINARY)
    min_value = Optional(6, BINARY)
    nan_count = Optional(9, I64)


class SizeStatistics(Structure):
    """How many values of a column chunk are at each level."""

    definition_level_histogram = Optional(3, list_of(I64))


class DataPageHeader(Structure):
    """Data page, version 1."""

    num_values = Required(1, I32)
    encoding = Required(2, enum_of(Encoding))
    definition_level_encoding = Required(3, enum_of(Encoding))
    repetition_level_encoding = Required(4, enum_of(Encoding))


class DictionaryPageHeader(Structure):
    """Dictionary page."""

    num_values = Required(1, I32)
    encoding = Required(2, enum_of(Encoding))


class DataPageHeaderV2(Structure):
    """Data page, version 2."""

    num_values = Required(1, I32)
    num_nulls = Required(2, I32)
    num_rows = Required(3, I32)
    encoding = Required(4, enum_of(Encoding))
    definition_levels_byte_length = Required(5, I32)
    repetition_levels_byte_length = Required(6, I32)
    is_compressed = Optional(7, BOOL)


class PageHeader(Structure):
    """The header before each page."""

    type = Required(1, enum_of(PageType))
    uncompressed_page_size = Required(2, I32)
    compressed_page_size = Required(3, I32)
    crc = Optional(4, I32)
    data_page_header = Optional(5, struct_of(DataPageHeader))
    # 6 is the header of an index page, which nobody writes.
    dictionary_page_header = Optional(7, struct_of(DictionaryPageHeader))
    data_page_header_v2 = Optional(8, struct_of(DataPageHeaderV2))


class BloomFilterAlgorithm(Union):
    """The layout of the filter's bits."""

    BLOCK = Optional(1, empty("SplitBlockAlgorithm"))


class BloomFilterHash(Union):
    """The hash of the filter."""

    XXHASH = Optional(1, empty("XxHash"))


class BloomFilterCompression(Union):
    """The compression of the bitset."""

    UNCOMPRESSED = Optional(1, empty("Uncompressed"))


class BloomFilterHeader(Structure):
    """The header before the bitset."""

    numBytes = Required(1, I32)  # noqa: N815 - the specification's name
    algorithm = Required(2, struct_of(BloomFilterAlgorithm))
    hash = Required(3, struct_of(BloomFilterHash))
    compression = Required(4, struct_of(BloomFilterCompression))


class PageEncodingStats(Structure):
    """How many pages of a kind have an encoding."""

    page_type = Required(1, enum_of(PageType))
    encoding = Required(2, enum_of(Encoding))
    count = Required(3, I32)


class KeyValue(Structure):
    """A named text that a writer left for readers."""

    key = Required(1, STRING)
    value = Optional(2, STRING)


class ColumnMetaData(Structure):
    """Everything about a column chunk except where its own metadata is."""

    type = Required(1, enum_of(Type))
    encodings = Required(2, list_of(enum_of(Encoding)))
    path_in_schema = Required(3, list_of(STRING))
    codec = Required(4, enum_of(CompressionCodec))
    num_values = Required(5, I64)
    total_uncompressed_size = Required(6, I64)
    total_compressed_size = Required(7, I64)
    key_value_metadata = Optional(8, list_of(struct_of(KeyValue)))
    data_page_offset = Required(9, I64)
    index_page_offset = Optional(10, I64)
    dictionary_page_offset = Optional(11, I64)
    statistics = Optional(12, struct_of(Statistics))
    encoding_stats = Optional(13, list_of(struct_of(PageEncodingStats)))
    bloom_filter_offset = Optional(14, I64)
    bloom_filter_length = Optional(15, I32)
    size_statistics = Optional(16, struct_of(SizeStatistics))
    geospatial_statistics = Optional(17, empty("GeospatialStatistics"))


class EncryptionWithColumnKey(Structure):
    """The column's own key."""

    path_in_schema = Required(1, list_of(STRING))
    key_metadata = Optional(2, BINARY)


class ColumnCryptoMetaData(Union):
    """Whether a column chunk is encrypted with the footer's key or a key of its own."""

    ENCRYPTION_WITH_FOOTER_KEY = Optional(1, empty("EncryptionWithFooterKey"))
    ENCRYPTION_WITH_COLUMN_KEY = Optional(2, struct_of(EncryptionWithColumnKey))


class PageLocation(Structure):
    """The place of a data page, header included, and the ordinal of its first row."""

    offset = Required(1, I64)
    compressed_page_size = Required(2, I32)
    first_row_index = Required(3, I64)


class OffsetIndex(Structure):
    """The places of all data pages of a column chunk."""

    page_locations = Required(1, list_of(struct_of(PageLocation)))


class ColumnIndex(Structure):
    """Bounds and null counts of all data pages of a column chunk, in their order."""

    null_pages = Required(1, list_of(BOOL))
    min_values = Required(2, list_of(BINARY))
    max_values = Required(3, list_of(BINARY))
    boundary_order = Required(4, enum_of(BoundaryOrder))
    null_counts = Optional(5, list_of(I64))
    definition_level_histograms = Optional(7, list_of(I64))
    nan_counts = Optional(8, list_of(I64))


class ColumnChunk(Structure):
    """A column chunk as the footer lists it."""

    file_path = Optional(1, STRING)
    file_offset = Required(2, I64)
    meta_data = Optional(3, struct_of(ColumnMetaData))
    offset_index_offset = Optional(4, I64)
    offset_index_length = Optional(5, I32)
    column_index_offset = Optional(6, I64)
    column_index_length = Optional(7, I32)
    crypto_metadata = Optional(8, struct_of(ColumnCryptoMetaData))
    encrypted_column_metadata = Optional(9, BINARY)


class RowGroup(Structure):
    """A row group: its column chunks in schema order."""

    columns = Required(1, list_of(struct_of(ColumnChunk)))
    total_byte_size = Required(2, I64)
    num_rows = Required(3, I64)
    file_offset = Optional(5, I64)
    total_compressed_size = Optional(6, I64)
    ordinal = Optional(7, I16)


class AesGcmV1(Structure):
    """AES-GCM for every module."""

    aad_prefix = Optional(1, BINARY)
    aad_file_unique = Optional(2, BINARY)
    supply_aad_prefix = Optional(3, BOOL)


class AesGcmCtrV1(Structure):
    """AES-CTR for page bodies, AES-GCM for all else."""

    aad_prefix = Optional(1, BINARY)
    aad_file_unique = Optional(2, BINARY)
    supply_aad_prefix = Optional(3, BOOL)


class EncryptionAlgorithm(Union):
    """The two algorithms of modular encryption."""

    AES_GCM_V1 = Optional(1, struct_of(AesGcmV1))
    AES_GCM_CTR_V1 = Optional(2, struct_of(AesGcmCtrV1))


class ColumnOrder(Union):
    """The order by which ``min_value`` and ``max_value`` of a column compare."""

    TYPE_ORDER = Optional(1, empty("TypeDefinedOrder"))
    IEEE_754_TOTAL_ORDER = Optional(2, empty("IEEE754TotalOrder"))
    INT96_TIMESTAMP_ORDER = Optional(3, empty("Int96TimestampOrder"))


class FileMetaData(Structure):
    """The footer."""

    version = Required(1, I32)
    schema = Required(2, list_of(struct_of(SchemaElement)))
    num_rows = Required(3, I64)
    row_groups = Required(4, list_of(struct_of(RowGroup)))
    key_value_metadata = Optional(5, list_of(struct_of(KeyValue)))
    created_by = Optional(6, STRING)
    column_orders = Optional(7, list_of(struct_of(ColumnOrder)))
    encryption_algorithm = Optional(8, struct_of(EncryptionAlgorithm))
    footer_signing_key_metadata = Optional(9, BINARY)


class FileCryptoMetaData(Structure):
    """The structure in clear before an encrypted footer."""

    encryption_algorithm = Required(1, struct_of(EncryptionAlgorithm))
    key_metadata = Optional(2, BINARY)
