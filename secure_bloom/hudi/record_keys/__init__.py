"""Hudi's entries about record keys in a footer: two kinds of Bloom filter, and a range.

Works on bytes and texts alone: nothing here opens a file, and single keys do not need numpy.
"""
