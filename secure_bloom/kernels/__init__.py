"""Loops over arrays and bytes, in a C extension, and by numpy where it was not built."""
