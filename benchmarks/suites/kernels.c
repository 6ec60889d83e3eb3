/* The same two loops in C, to measure the kernels of the extension against: XXH64 with seed 0 and the
   insertion into a split-block Bloom filter, on one thread.  kernels.py compiles and calls this. */

#include <stddef.h>
#include <stdint.h>
#include <string.h>

#define PRIME64_1 0x9E3779B185EBCA87u
#define PRIME64_2 0xC2B2AE3D27D4EB4Fu
#define PRIME64_3 0x165667B19E3779F9u
#define PRIME64_4 0x85EBCA77C2B2AE63u
#define PRIME64_5 0x27D4EB2F165667C5u

/* Eight lanes at once: gcc 12 leaves the loop over a block's words scalar, five times slower. */
typedef uint32_t lanes __attribute__((vector_size(32), aligned(4)));

static const lanes SALT = {0x47b6137b, 0x44974d91, 0x8824ad5b, 0xa2b7289d,
                           0x705495c7, 0x2df1424b, 0x9efc4947, 0x5c6bfb31};

static inline uint64_t rotate(uint64_t x, int bits) { return x << bits | x >> (64 - bits); }

static inline uint64_t round64(uint64_t accumulator, uint64_t lane) {
  return rotate(accumulator + lane * PRIME64_2, 31) * PRIME64_1;
}

static inline uint64_t merge(uint64_t h, uint64_t accumulator) {
  return (h ^ round64(0, accumulator)) * PRIME64_1 + PRIME64_4;
}

static inline uint64_t consume8(uint64_t h, uint64_t lane) {
  return rotate(h ^ round64(0, lane), 27) * PRIME64_1 + PRIME64_4;
}

static inline uint64_t avalanche(uint64_t h) {
  h = (h ^ (h >> 33)) * PRIME64_2;
  h = (h ^ (h >> 29)) * PRIME64_3;
  return h ^ (h >> 32);
}

static inline uint64_t read8(const uint8_t *at) {
  uint64_t word;
  memcpy(&word, at, 8);
  return word;
}

static inline uint64_t read4(const uint8_t *at) {
  uint32_t word;
  memcpy(&word, at, 4);
  return word;
}

static inline uint64_t hash_stripes(const uint8_t *at, const uint8_t *end) {
  uint64_t a = PRIME64_1 + PRIME64_2, b = PRIME64_2, c = 0, d = -PRIME64_1;
  for (; at + 32 <= end; at += 32) {
    a = round64(a, read8(at));
    b = round64(b, read8(at + 8));
    c = round64(c, read8(at + 16));
    d = round64(d, read8(at + 24));
  }
  uint64_t h = rotate(a, 1) + rotate(b, 7) + rotate(c, 12) + rotate(d, 18);
  return merge(merge(merge(merge(h, a), b), c), d);
}

static inline uint64_t hash_span(const uint8_t *at, size_t length) {
  const uint8_t *end = at + length;
  uint64_t h = (length < 32 ? PRIME64_5 : hash_stripes(at, end)) + length;
  at += length & ~(size_t)31;
  for (; at + 8 <= end; at += 8) h = consume8(h, read8(at));
  if (at + 4 <= end) {
    h = rotate(h ^ read4(at) * PRIME64_1, 23) * PRIME64_2 + PRIME64_3;
    at += 4;
  }
  for (; at < end; at++) h = rotate(h ^ *at * PRIME64_5, 11) * PRIME64_1;
  return avalanche(h);
}

static inline uint64_t hash_int64(uint64_t word) {
  return avalanche(consume8(PRIME64_5 + 8, word));
}

static inline void insert(lanes *blocks, uint64_t z, uint64_t h) {
  blocks[((h >> 32) * z) >> 32] |= 1u << (((uint32_t)h * SALT) >> 27);
}

void hash_binary(const int32_t *offsets, const uint8_t *data, uint64_t *hashes, size_t n) {
  for (size_t i = 0; i < n; i++)
    hashes[i] = hash_span(data + offsets[i], offsets[i + 1] - offsets[i]);
}

void hash_fixed(const uint64_t *values, uint64_t *hashes, size_t n) {
  for (size_t i = 0; i < n; i++) hashes[i] = hash_int64(values[i]);
}

void insert_hashes(lanes *blocks, uint64_t z, const uint64_t *hashes, size_t n) {
  for (size_t i = 0; i < n; i++) insert(blocks, z, hashes[i]);
}

void insert_fixed(lanes *blocks, uint64_t z, const uint64_t *values, size_t n) {
  for (size_t i = 0; i < n; i++) insert(blocks, z, hash_int64(values[i]));
}
