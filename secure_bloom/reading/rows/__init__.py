"""Rows: decoded, held against what is asked, and written out."""
