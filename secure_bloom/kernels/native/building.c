/* Build a filter: hash the PLAIN values of a page and insert them in all their forms, then fold the
 * filter by the exact false-positive probability of its bits.  Encodings.md, "PLAIN". */
#include "filter.h"
#include "values.h"
#include "xxh64.h"

enum { IS_FLOATING = 1, IS_DECIMAL = 2 };

/* Hashes that wait to be inserted: the bits of a filter are touched in a loop of their own. */
typedef struct {
    uint8_t *blocks;
    uint64_t z;
    size_t count;
    uint64_t hashes[512];
} Batch;

static void flush(Batch *batch) {
    insert_into(batch->blocks, batch->z, batch->hashes, batch->count);
    batch->count = 0;
}

static inline void add(Batch *batch, uint64_t hash) {
    if (batch->count == sizeof batch->hashes / sizeof *batch->hashes) flush(batch);
    batch->hashes[batch->count++] = hash;
}

/* The bits of a FLOAT of the same value as the bits of a FLOAT16. */
static uint32_t widened(uint32_t half) {
    uint32_t sign = (half & 0x8000) << 16, exponent = half >> 10 & 31, fraction = half & 0x3FF;
    if (exponent == 31) return sign | 0x7F800000U | fraction << 13;
    if (exponent != 0) return sign | (exponent + 112) << 23 | fraction << 13;
    if (fraction == 0) return sign;
    for (exponent = 113; !(fraction & 0x400); exponent--) fraction <<= 1;
    return sign | exponent << 23 | (fraction & 0x3FF) << 13;
}

/* A floating-point number of 2, 4 or 8 bytes.  DuckDB looks for a FLOAT16 as for a FLOAT. */
static void add_number(Batch *batch, uint64_t bits, size_t width) {
    uint8_t bytes[2] = {(uint8_t)bits, (uint8_t)(bits >> 8)};
    if (width == 8) add(batch, hash_word8(bits));
    if (width == 4) add(batch, hash_word4((uint32_t)bits));
    if (width == 2) add(batch, hash_bytes(bytes, sizeof bytes));
    if (width == 2) add(batch, hash_word4(widened((uint32_t)bits)));
}

static uint64_t number_at(const uint8_t *at, size_t width) {
    if (width == 8) return read8(at);
    return width == 4 ? read4(at) : (uint64_t)at[0] | (uint64_t)at[1] << 8;
}

/* Engines find both zeros equal, and Spark every NaN: if one occurs, its other forms go in too. */
static void insert_floating(Batch *batch, const uint8_t *values, size_t width, size_t count) {
    uint64_t sign = UINT64_C(1) << (8 * width - 1);
    uint64_t infinity = width == 8 ? UINT64_C(0x7FF) << 52 : width == 4 ? 0x7F800000U : 0x7C00U;
    uint64_t quiet = infinity | (width == 8 ? UINT64_C(1) << 51 : width == 4 ? 1U << 22 : 1U << 9);
    bool has_zero = false, has_nan = false;
    for (size_t i = 0; i < count; i++) {
        uint64_t bits = number_at(values + width * i, width), magnitude = bits & ~sign;
        has_zero |= magnitude == 0;
        has_nan |= magnitude > infinity;
        add_number(batch, bits, width);
    }
    for (uint64_t signs = 0; signs < 2; signs++) {
        if (has_zero) add_number(batch, signs * sign, width);
        if (has_nan) add_number(batch, signs * sign | quiet, width);
    }
}

static void insert_fixed(Batch *batch, const uint8_t *values, size_t width, size_t count) {
    size_t room = sizeof batch->hashes / sizeof *batch->hashes;
    for (size_t i = 0; i < count; i += room) {
        batch->count = count - i < room ? count - i : room;
        hash_fixed(values + width * i, width, batch->count, batch->hashes);
        flush(batch);
    }
}

/* Readers look for a decimal in its shortest form: without leading bytes that repeat the sign. */
static void add_shortest(Batch *batch, const uint8_t *value, size_t size) {
    for (; size > 1 && *value == (value[1] < 0x80 ? 0 : 0xFF); size--) value++;
    add(batch, hash_bytes(value, size));
}

static int64_t insert_byte_arrays(Batch *batch, const uint8_t *data, size_t size, uint64_t count,
                                  bool is_decimal) {
    size_t at = 0;
    for (uint64_t i = 0; i < count; i++) {
        if (size - at < 4 || size - at - 4 < read4(data + at)) return DAMAGED;
        size_t length = read4(data + at);
        add(batch, hash_bytes(data + at + 4, length));
        if (is_decimal) add_shortest(batch, data + at + 4, length);
        at += 4 + length;
    }
    return 0;
}

/* insert_plain(blocks, values, count, width, kind): insert values of `width` bytes each, or with 0
 * BYTE_ARRAYs, each after its length. */
static int64_t insert_plain(Arguments *in) {
    size_t size = size_of(in, 1);
    const uint8_t *values = bytes_of(in, 1);
    int64_t count = in->numbers[0], width = in->numbers[1], kind = in->numbers[2], answer = 0;
    Batch batch = {bytes_of(in, 0), size_of(in, 0) / BLOCK_SIZE, 0, {0}};
    if (!is_filter(size_of(in, 0)) || count < 0 || width < 0) return REFUSED;
    if (width > 0 && (uint64_t)count > size / (uint64_t)width) return DAMAGED;
    if (width == 0)
        answer = insert_byte_arrays(&batch, values, size, (uint64_t)count, kind == IS_DECIMAL);
    else if (kind != IS_FLOATING)
        insert_fixed(&batch, values, (size_t)width, (size_t)count);
    else if (width == 2 || width == 4 || width == 8)
        insert_floating(&batch, values, (size_t)width, (size_t)count);
    else
        return REFUSED;
    flush(&batch);
    return answer;
}

/* end_of_byte_arrays(data, count): the end of so many BYTE_ARRAYs, or DAMAGED. */
static int64_t end_of_byte_arrays(Arguments *in) {
    if (in->numbers[0] < 0) return REFUSED;
    return walk_byte_arrays(bytes_of(in, 0), size_of(in, 0), (uint64_t)in->numbers[0], NULL);
}

/* Sums of the products of 8 counts of at most 32 fit 64 bits for as many blocks. */
#define MOST_BLOCKS (UINT64_C(1) << 22)

static inline uint64_t ones(uint32_t word) {
#ifdef __GNUC__
    return (uint64_t)__builtin_popcount(word);
#else
    word -= word >> 1 & 0x55555555U;
    word = (word & 0x33333333U) + (word >> 2 & 0x33333333U);
    return ((word + (word >> 4)) & 0x0F0F0F0FU) * 0x01010101U >> 24;
#endif
}

/* The sum over the blocks of the product of their words' set bits; with a step of 2 blocks, that of
 * the folded filter, whose blocks are pairs of these. */
static inline uint64_t sum_products(const uint8_t *blocks, uint64_t z, uint64_t step) {
    uint64_t sum = 0;
    for (uint64_t i = 0; i < z; i += step) {
        const uint8_t *block = blocks + BLOCK_SIZE * i, *other = block + BLOCK_SIZE * (step - 1);
        uint64_t product = 1;
        for (size_t word = 0; word < BLOCK_SIZE; word += 4)
            product *= ones(read4(block + word) | read4(other + word));
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
static int64_t sum_of_products(Arguments *in) {
    uint64_t z = size_of(in, 0) / BLOCK_SIZE;
    if (!is_filter(size_of(in, 0)) || z > MOST_BLOCKS) return REFUSED;
    return (int64_t)sum_of(bytes_of(in, 0), z, 1);
}

/* fold(blocks, fpp): fold the blocks, a power of two, in halves while the exact probability is at
 * most the one in the 64 bits of the double `fpp`.  The answer is the number of blocks left. */
static int64_t fold(Arguments *in) {
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
            for (uint64_t byte = 0; byte < BLOCK_SIZE; byte++)
                blocks[i + byte] = (uint8_t)(blocks[2 * i + byte] | blocks[2 * i + BLOCK_SIZE + byte]);
    }
    return (int64_t)z;
}

Kernel building_kernels[] = {
    KERNEL(insert_plain, "wrnnn", 1),
    KERNEL(end_of_byte_arrays, "rn", 0),
    KERNEL(sum_of_products, "r", 0),
    KERNEL(fold, "wn", 0),
    END_OF_KERNELS,
};
