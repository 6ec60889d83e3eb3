"""The Parquet file format: structures, footer, schema, pages, values.

Nothing here knows of filters or tables.
"""
