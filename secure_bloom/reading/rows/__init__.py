"""Rows: decode them, filter them exactly, and write them out."""
