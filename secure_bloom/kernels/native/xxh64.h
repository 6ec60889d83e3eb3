/* XXH64 with seed 0.  xxHash specification, "XXH64 Algorithm Description". */
#pragma once

#include "native.h"

#define PRIME64_1 UINT64_C(0x9E3779B185EBCA87)
#define PRIME64_2 UINT64_C(0xC2B2AE3D27D4EB4F)
#define PRIME64_3 UINT64_C(0x165667B19E3779F9)
#define PRIME64_4 UINT64_C(0x85EBCA77C2B2AE63)
#define PRIME64_5 UINT64_C(0x27D4EB2F165667C5)

static inline uint64_t rotate64(uint64_t x, int bits) { return x << bits | x >> (64 - bits); }

/* Take one 8-byte lane into an accumulator (step 2). */
static inline uint64_t round64(uint64_t accumulator, uint64_t lane) {
    return rotate64(accumulator + lane * PRIME64_2, 31) * PRIME64_1;
}

/* Take one accumulator into the hash (step 3). */
static inline uint64_t merge64(uint64_t h, uint64_t accumulator) {
    return (h ^ round64(0, accumulator)) * PRIME64_1 + PRIME64_4;
}

/* Take 8, 4 or 1 remaining bytes into the hash (step 5). */
static inline uint64_t consume8(uint64_t h, uint64_t lane) {
    return rotate64(h ^ round64(0, lane), 27) * PRIME64_1 + PRIME64_4;
}

static inline uint64_t consume4(uint64_t h, uint64_t lane) {
    return rotate64(h ^ lane * PRIME64_1, 23) * PRIME64_2 + PRIME64_3;
}

static inline uint64_t consume1(uint64_t h, uint64_t lane) {
    return rotate64(h ^ lane * PRIME64_5, 11) * PRIME64_1;
}

/* Mix the bits a last time (step 6). */
static inline uint64_t avalanche64(uint64_t h) {
    h = (h ^ h >> 33) * PRIME64_2;
    h = (h ^ h >> 29) * PRIME64_3;
    return h ^ h >> 32;
}

/* Steps 1 to 3 over the whole stripes of 32 bytes, of which there is at least one. */
static inline uint64_t hash_stripes(const uint8_t *data, size_t size) {
    uint64_t a = PRIME64_1 + PRIME64_2, b = PRIME64_2, c = 0, d = 0 - PRIME64_1;
    for (; size >= 32; data += 32, size -= 32) {
        a = round64(a, read8(data));
        b = round64(b, read8(data + 8));
        c = round64(c, read8(data + 16));
        d = round64(d, read8(data + 24));
    }
    uint64_t h = rotate64(a, 1) + rotate64(b, 7) + rotate64(c, 12) + rotate64(d, 18);
    return merge64(merge64(merge64(merge64(h, a), b), c), d);
}

/* The hash of `size` bytes. */
static inline uint64_t hash_bytes(const uint8_t *data, size_t size) {
    uint64_t h = (size < 32 ? PRIME64_5 : hash_stripes(data, size)) + size;
    const uint8_t *end = data + size;
    data += size & ~(size_t)31;
    for (; end - data >= 8; data += 8) h = consume8(h, read8(data));
    if (end - data >= 4) {
        h = consume4(h, read4(data));
        data += 4;
    }
    for (; data < end; data++) h = consume1(h, *data);
    return avalanche64(h);
}

/* Hash `count` values of `width` bytes each. */
void hash_fixed(const uint8_t *values, size_t width, size_t count, uint64_t *hashes);
