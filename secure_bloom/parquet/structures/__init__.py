"""Thrift structures of Parquet files, in the compact protocol.

``metadata`` declares the structures.  ``records`` decodes the used fields of a structure at an
offset, as plain values.  ``wire_fields`` finds fields in bytes, and ``splices`` replaces some of
them and keeps every other byte.  ``trees`` decodes all fields, known or not. ``views`` are typed
views on trees, and make new structures::

    record = decode_record(ColumnMetaData, plain)
    plain = with_fields(plain, {ColumnMetaData.bloom_filter_offset.id: i64(offset)})
"""
