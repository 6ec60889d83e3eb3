"""Thrift structures of Parquet files: lossless trees, typed views, compact records."""
