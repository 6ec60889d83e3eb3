"""The Parquet file format: structures, footer, schema, pages, values; no filters, no tables.

``footer`` is the only way to a footer, and gives column chunks.  ``pages`` gives the pages of a
chunk, decrypted module by module; ``column_values`` their values, of the pages that are needed.
``structures`` are the Thrift structures: records to read, splices to write.  ``texts`` and
``literals`` turn values into texts and back::

    footer = unlock(read_tail(file), keys)
    chunk = open_chunk(footer, 0, 3, keys)
    for entries in read_encoded(file, chunk).entries:
        ...
"""
