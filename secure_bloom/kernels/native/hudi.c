/* Insert record keys into Hudi's Bloom filters and check them there.  The hashes are those of
 * Hadoop's org.apache.hadoop.util.hash; each position of a key is the hash whose seed is the hash
 * of the position before. */
#include "native.h"

#define M 0x5bd1e995U

static uint32_t rotate32(uint32_t x, int bits) { return x << bits | x >> (32 - bits); }

/* A byte as Java widens it: its sign fills all bits above. */
static uint32_t widened(uint8_t byte) { return ((uint32_t)byte ^ 0x80) - 0x80; }

/* MurmurHash2; Hadoop takes the last bytes signed. */
static uint32_t murmur(const uint8_t *data, size_t size, uint32_t seed) {
    uint32_t h = seed ^ (uint32_t)size;
    for (; size >= 4; data += 4, size -= 4) {
        uint32_t k = read4(data) * M;
        h = h * M ^ (k ^ k >> 24) * M;
    }
    if (size == 3) h ^= widened(data[0]) << 16;
    if (size >= 2) h ^= widened(data[size - 2]) << 8;
    if (size >= 1) h = (h ^ widened(data[size - 1])) * M;
    h = (h ^ h >> 13) * M;
    return h ^ h >> 15;
}

/* Bob Jenkins' lookup3, hashlittle. */
static uint32_t jenkins(const uint8_t *data, size_t size, uint32_t seed) {
    uint32_t a = 0xdeadbeefU + (uint32_t)size + seed, b = a, c = a;
    uint8_t last[12] = {0};
    if (size == 0) return c;
    for (; size > 12; data += 12, size -= 12) {
        a += read4(data);
        b += read4(data + 4);
        c += read4(data + 8);
        a = (a - c) ^ rotate32(c, 4), c += b;
        b = (b - a) ^ rotate32(a, 6), a += c;
        c = (c - b) ^ rotate32(b, 8), b += a;
        a = (a - c) ^ rotate32(c, 16), c += b;
        b = (b - a) ^ rotate32(a, 19), a += c;
        c = (c - b) ^ rotate32(b, 4), b += a;
    }
    memcpy(last, data, size);
    a += read4(last);
    b += read4(last + 4);
    c += read4(last + 8);
    c = (c ^ b) - rotate32(b, 14);
    a = (a ^ c) - rotate32(c, 11);
    b = (b ^ a) - rotate32(a, 25);
    c = (c ^ b) - rotate32(b, 16);
    a = (a ^ c) - rotate32(c, 4);
    b = (b ^ a) - rotate32(a, 14);
    return (c ^ b) - rotate32(b, 24);
}

/* The rows of a filter, and its keys: key i is data[offsets[i]:offsets[i + 1]]. */
typedef struct {
    uint8_t *rows;
    uint64_t row_count, row_bytes, vector_size, num_hashes;
    bool is_murmur;
    const uint8_t *data;
    const int64_t *offsets;
    size_t count;
} Filter;

/* Arguments: rows, row bytes, vector size, hashes, whether Murmur, offsets, data. */
static bool take_filter(Arguments *in, Filter *it) {
    const int64_t *n = in->numbers;
    if (n[0] < 1 || n[1] < 1 || n[1] > INT32_MAX || n[2] < 0 || n[2] > INT32_MAX) return false;
    if (count_of(in, 1) == 0 || (n[1] + 7) / 8 > n[0]) return false;
    *it = (Filter){bytes_of(in, 0),  size_of(in, 0) / (uint64_t)n[0], (uint64_t)n[0],
                   (uint64_t)n[1],   (uint64_t)n[2],                  n[3] != 0,
                   bytes_of(in, 2),  numbers_of(in, 1),               count_of(in, 1) - 1};
    if (it->row_count == 0 || it->offsets[0] < 0) return false;
    for (size_t i = 0; i < it->count; i++)
        if (it->offsets[i + 1] < it->offsets[i]) return false;
    return it->offsets[it->count] <= (int64_t)size_of(in, 2);
}

/* The bit of the next hash of a key: the absolute value of a signed remainder. */
static uint64_t next_bit(const Filter *it, size_t key, uint32_t *h) {
    const uint8_t *data = it->data + it->offsets[key];
    size_t size = (size_t)(it->offsets[key + 1] - it->offsets[key]);
    *h = it->is_murmur ? murmur(data, size, *h) : jenkins(data, size, *h);
    return (*h < 0x80000000U ? *h : 0 - *h) % it->vector_size;
}

/* hudi_insert(rows, row bytes, vector size, hashes, is Murmur, offsets, data, row, stride): key i
 * goes to row + i * stride, going round. */
int64_t hudi_insert(Arguments *in) {
    Filter it;
    if (!take_filter(in, &it) || in->numbers[4] < 0 || in->numbers[5] < 0) return REFUSED;
    uint64_t row = (uint64_t)in->numbers[4] % it.row_count, stride = (uint64_t)in->numbers[5];
    for (size_t i = 0; i < it.count; i++, row = (row + stride % it.row_count) % it.row_count) {
        uint32_t h = 0;
        for (uint64_t n = 0; n < it.num_hashes; n++) {
            uint64_t bit = next_bit(&it, i, &h);
            it.rows[row * it.row_bytes + bit / 8] |= (uint8_t)(1U << bit % 8);
        }
    }
    return 0;
}

/* Whether a row has all bits of a key; positions beyond those `known` are computed as needed. */
static bool has_key(const Filter *it, const uint8_t *row, size_t key, uint64_t *positions,
                    uint64_t *known, uint32_t *h) {
    for (uint64_t n = 0; n < it->num_hashes; n++) {
        if (n == *known) positions[(*known)++] = next_bit(it, key, h);
        if (!(row[positions[n] / 8] >> positions[n] % 8 & 1)) return false;
    }
    return true;
}

/* hudi_check(..., data, positions, found): whether any row has all bits of each key.  `positions`
 * is room for as many numbers as there are hashes. */
int64_t hudi_check(Arguments *in) {
    Filter it;
    if (!take_filter(in, &it) || count_of(in, 3) < it.num_hashes || size_of(in, 4) != it.count)
        return REFUSED;
    for (size_t i = 0; i < it.count; i++) {
        uint64_t known = 0;
        uint32_t h = 0;
        bool is_found = false;
        for (uint64_t row = 0; row < it.row_count && !is_found; row++)
            is_found = has_key(&it, it.rows + row * it.row_bytes, i, numbers_of(in, 3), &known, &h);
        bytes_of(in, 4)[i] = is_found;
    }
    return 0;
}
