"""Split-block Bloom filters: hash, size, build, store, probe.

    xxh64, entries   a value as its column stores it -> its hash
    sizing           the number of blocks that a filter needs
    split_block      the filter: insert, check, fold, its exact false-positive probability
    build            the smallest filter of a chunk's values
    stored           header and bitset, encrypted like the column

The order of calls, from values to bytes and back::

    built = build_filter(leaf, values, options)
    stored = encode_bloom_filter(built.filter, chunk.cipher)
    read_bloom_filter(file, chunk).filter.check(value)  # False is certain
"""
