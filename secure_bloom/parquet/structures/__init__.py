"""Thrift structures of Parquet files, in the compact protocol.

``metadata`` declares the structures.  ``records`` decodes one at an offset: the fields that are
used, as plain values.  ``wire_fields`` finds fields in bytes, and ``splices`` replaces some of
them and keeps every other byte.  ``trees`` decode all fields, known or not; ``views`` are typed
views on them, and make new structures::

    record = decode_record(ColumnMetaData, plain)
    plain = with_fields(plain, {ColumnMetaData.bloom_filter_offset.id: i64(offset)})
"""
