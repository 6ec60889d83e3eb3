"""Loops over arrays and bytes: a C extension, and numpy as the fallback without it."""
