"""The two hot loops, compiled by numba.  Importing this package alone imports neither."""
