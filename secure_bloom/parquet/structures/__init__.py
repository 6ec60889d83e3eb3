"""Thrift structures of Parquet files, in the compact protocol.

``metadata`` declares the structures, in the terms of ``declarations``.  ``records`` decodes the
declared fields of a structure at an offset, as plain values.  ``wire_fields`` finds fields in
bytes.  ``splices`` replaces some of them and keeps every other byte, and makes new structures::

    record = decode_record(ColumnMetaData, plain)
    plain = with_fields(plain, {ColumnMetaData.bloom_filter_offset.id: i64(offset)})
"""
