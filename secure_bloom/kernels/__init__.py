"""Loops over arrays and bytes: a C extension, and numpy as the fallback without it.

    extension     ``native``, the C extension, or None
    loops         loops that both have: native if it is there, else numpy
    numpy_loops   the loops in numpy, with the same results

Callers read ``extension.native`` at each call, so a test can set it to None and compare::

    if extension.native is not None:
        end = extension.native.scan(footer, numbers)
    hash_rows(rows, hashes)  # of `loops`: the fallback is inside

``native/native.h`` lists every kernel with the letters of its arguments.
"""
