"""Loops compiled by numba: arrays in, arrays out.  Importing this package does not load numba."""
