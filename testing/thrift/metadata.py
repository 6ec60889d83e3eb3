"""The structures of Parquet as views on trees, by the names of their declarations."""

from __future__ import annotations

from secure_bloom.parquet.structures import metadata
from testing.thrift.views import View


class DecimalType(View, metadata.DecimalType): ...


class TimeUnit(View, metadata.TimeUnit): ...


class TimestampType(View, metadata.TimestampType): ...


class TimeType(View, metadata.TimeType): ...


class IntType(View, metadata.IntType): ...


class LogicalType(View, metadata.LogicalType): ...


class SchemaElement(View, metadata.SchemaElement):
    @property
    def encoded(self) -> bytes:  # type: ignore[override]
        return self.encode()


class Statistics(View, metadata.Statistics): ...


class SizeStatistics(View, metadata.SizeStatistics): ...


class DataPageHeader(View, metadata.DataPageHeader): ...


class DictionaryPageHeader(View, metadata.DictionaryPageHeader): ...


class DataPageHeaderV2(View, metadata.DataPageHeaderV2): ...


class PageHeader(View, metadata.PageHeader): ...


class BloomFilterAlgorithm(View, metadata.BloomFilterAlgorithm): ...


class BloomFilterHash(View, metadata.BloomFilterHash): ...


class BloomFilterCompression(View, metadata.BloomFilterCompression): ...


class BloomFilterHeader(View, metadata.BloomFilterHeader): ...


class PageEncodingStats(View, metadata.PageEncodingStats): ...


class KeyValue(View, metadata.KeyValue): ...


class ColumnMetaData(View, metadata.ColumnMetaData): ...


class EncryptionWithColumnKey(View, metadata.EncryptionWithColumnKey): ...


class ColumnCryptoMetaData(View, metadata.ColumnCryptoMetaData): ...


class PageLocation(View, metadata.PageLocation): ...


class OffsetIndex(View, metadata.OffsetIndex): ...


class ColumnIndex(View, metadata.ColumnIndex): ...


class ColumnChunk(View, metadata.ColumnChunk): ...


class RowGroup(View, metadata.RowGroup): ...


class AesGcmV1(View, metadata.AesGcmV1): ...


class AesGcmCtrV1(View, metadata.AesGcmCtrV1): ...


class EncryptionAlgorithm(View, metadata.EncryptionAlgorithm): ...


class ColumnOrder(View, metadata.ColumnOrder): ...


class FileMetaData(View, metadata.FileMetaData): ...


class FileCryptoMetaData(View, metadata.FileCryptoMetaData): ...
