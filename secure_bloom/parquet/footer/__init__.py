"""The only way to a footer: find it, scan it, open it, edit it, seal it.

``locate`` finds the bytes of the footer at the end of a file.  ``scan`` reads the numbers in them
and the offset of each column chunk.  ``opened`` decrypts the footer or checks its signature;
``chunks`` opens its column chunks on demand, and ``columns`` finds them by name.  ``edit`` sets
fields and leaves all other bytes unchanged. ``seal`` signs or encrypts the new bytes, up to the end
of the file::

    footer = unlock(read_tail(file), keys)  # locate, scan, opened
    chunk = footer.chunk(0, 3)
    plain = with_filters(footer, [FilterPlace(chunk, offset, length)])
    end_of_file = close_footer(footer, plain)

Every verb uses ``Footer``. It knows its file and its keys.
"""
