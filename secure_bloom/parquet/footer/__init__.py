"""The only way to a footer: find it, scan it, open it, edit it, seal it.

``locate`` finds the bytes of the footer at the end of a file.  ``scan`` reads the numbers in them
and the offset of each column chunk.  ``opened`` decrypts the footer or checks its signature, and
opens column chunks on demand.  ``edit`` sets fields and leaves all other bytes unchanged. ``seal``
signs or encrypts the new bytes, up to the end of the file::

    footer = unlock(read_tail(file), keys)  # locate, scan, opened
    chunk = open_chunk(footer, 0, 3, keys)
    plain = with_filters(footer, [FilterPlace(chunk, offset, length)])
    end_of_file = close_footer(footer, plain)

Every verb uses ``Footer``. A read uses a subclass that knows its file too
(``reading.table.footer``).
"""
