"""Split-block Bloom filters: hash, build, store, probe."""
