"""Encryption-aware Bloom filters for Parquet lakes."""
