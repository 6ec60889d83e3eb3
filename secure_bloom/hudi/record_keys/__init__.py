"""What Hudi stores about record keys in a footer: two Bloom filters and a range.

Bytes and texts only: nothing here opens a file, and single keys need neither numpy nor numba.
"""
