"""What Hudi stores about record keys in a footer: two Bloom filters and a range.

Only bytes and texts: nothing here opens a file, and single keys need neither numpy nor numba.
"""
