/* Build a filter: hash the PLAIN values of a page and insert them, then fold the
 * filter by the exact false-positive probability of its bits.  Encodings.md, "PLAIN". */
#include "filter.h"
#include "xxh64.h"

/* So many values are hashed, and then inserted in a loop of its own. */
#define BATCH 512

/* Hash BYTE_ARRAYs, each after its length, from `at` on; their end, or DAMAGED. */
static int64_t hash_byte_arrays(const uint8_t *data, size_t size, size_t at, size_t count,
                                uint64_t *hashes) {
    for (size_t i = 0; i < count; i++) {
        if (size - at < 4 || size - at - 4 < read4(data + at)) return DAMAGED;
        size_t length = read4(data + at);
        hashes[i] = hash_bytes(data + at + 4, length);
        at += 4 + length;
    }
    return (int64_t)at;
}

/* insert_plain(blocks, values, count, width): insert values of `width` bytes each, or with 0
 * BYTE_ARRAYs. */
int64_t insert_plain(Arguments *in) {
    const uint8_t *values = bytes_of(in, 1);
    int64_t left = in->numbers[0], width = in->numbers[1], at = 0, size = (int64_t)size_of(in, 1);
    uint64_t hashes[BATCH];
    if (!is_filter(size_of(in, 0)) || left < 0 || width < 0) return REFUSED;
    if (width > 0 && left > size / width) return DAMAGED;
    for (int64_t count; left > 0; left -= count) {
        count = left < BATCH ? left : BATCH;
        if (width == 0) {
            at = hash_byte_arrays(values, (size_t)size, (size_t)at, (size_t)count, hashes);
            if (at < 0) return DAMAGED;
        } else {
            hash_fixed(values + at, (size_t)width, (size_t)count, hashes);
            at += width * count;
        }
        insert_into(bytes_of(in, 0), size_of(in, 0) / BLOCK_SIZE, hashes, (size_t)count);
    }
    return 0;
}

/* Sums of the products of 8 counts of at most 32 fit 64 bits for as many blocks. */
#define MOST_BLOCKS (UINT64_C(1) << 22)

#ifdef _MSC_VER
#include <intrin.h>
#define __builtin_popcount __popcnt
#endif

/* The sum over the blocks of the product of their words' set bits; with a step of 2 blocks, that of
 * the folded filter, whose blocks are pairs of these. */
static inline uint64_t sum_products(const uint8_t *blocks, uint64_t z, uint64_t step) {
    uint64_t sum = 0;
    for (uint64_t i = 0; i < z; i += step) {
        const uint8_t *block = blocks + BLOCK_SIZE * i, *other = block + BLOCK_SIZE * (step - 1);
        uint64_t product = 1;
        for (size_t word = 0; word < BLOCK_SIZE; word += 4)
            product *= (uint64_t)__builtin_popcount(read4(block + word) | read4(other + word));
        sum += product;
    }
    return sum;
}

#if defined(__GNUC__) && defined(__x86_64__)
__attribute__((target("popcnt"))) static uint64_t sum_by_popcnt(const uint8_t *blocks, uint64_t z,
                                                                uint64_t step) {
    return sum_products(blocks, z, step);
}

static uint64_t sum_of(const uint8_t *blocks, uint64_t z, uint64_t step) {
    return (__builtin_cpu_supports("popcnt") ? sum_by_popcnt : sum_products)(blocks, z, step);
}
#else
#define sum_of sum_products
#endif

/* sum_of_products(blocks): the numerator of the exact false-positive probability, whose denominator
 * is 32^8 for each block. */
int64_t sum_of_products(Arguments *in) {
    uint64_t z = size_of(in, 0) / BLOCK_SIZE;
    if (!is_filter(size_of(in, 0)) || z > MOST_BLOCKS) return REFUSED;
    return (int64_t)sum_of(bytes_of(in, 0), z, 1);
}

/* fold(blocks, fpp): fold the blocks, a power of two, in halves while the exact probability is at
 * most the one in the 64 bits of the double `fpp`.  The answer is the number of blocks left. */
int64_t fold(Arguments *in) {
    uint8_t *blocks = bytes_of(in, 0);
    uint64_t z = size_of(in, 0) / BLOCK_SIZE;
    double fpp;
    memcpy(&fpp, &in->numbers[0], sizeof fpp);
    if (!is_filter(size_of(in, 0)) || z > MOST_BLOCKS || (z & (z - 1)) != 0) return REFUSED;
    for (; z > 1; z /= 2) {
        /* The denominator is a power of two: the only rounding is that of the sum, as in Python. */
        double denominator = (double)(z / 2) * 1099511627776.0;
        if ((double)sum_of(blocks, z, 2) / denominator > fpp) break;
        for (uint64_t i = 0; i < z * (BLOCK_SIZE / 2); i += BLOCK_SIZE)
            for (uint64_t j = i; j < i + BLOCK_SIZE; j++)
                blocks[j] = (uint8_t)(blocks[i + j] | blocks[i + j + BLOCK_SIZE]);
    }
    return (int64_t)z;
}
