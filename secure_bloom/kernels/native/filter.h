/* A split-block Bloom filter of `z` blocks of 32 bytes, 1 <= z < 2^31. */
#pragma once

#include "native.h"

/* The offset of the block of a hash: its upper half, scaled. */
static inline uint64_t block_offset(uint64_t h, uint64_t z) {
    return ((h >> 32) * z >> 32) * BLOCK_SIZE;
}

/* Whether a bitset of `size` bytes is whole blocks. */
static inline bool is_filter(size_t size) {
    return size != 0 && size % BLOCK_SIZE == 0 && size / BLOCK_SIZE < UINT64_C(1) << 31;
}

void insert_into(uint8_t *blocks, uint64_t z, const uint64_t *hashes, size_t count);
/* Whether a filter may have one hash. */
bool may_have(const uint8_t *blocks, uint64_t z, uint64_t hash);
/* Which of the functions for different processors run here; NULL if none can. */
const char *processor_name(void);
