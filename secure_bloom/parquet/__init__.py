"""The Parquet file format: structures, footer, schema, pages, values. No filters, no tables.

``footer`` is the only way to a footer, and opens column chunks.  ``pages`` finds the pages of a
chunk and decrypts them module by module. ``column_values`` reads their values, from only the pages
that are needed. ``structures`` has the Thrift structures: records to read, splices to write.
``texts`` and ``literals`` turn values into texts and back::

    footer = unlock(read_tail(file), keys)
    chunk = footer.chunk(0, 3)
    for entries in read_encoded(file, chunk).entries:
        ...
"""
