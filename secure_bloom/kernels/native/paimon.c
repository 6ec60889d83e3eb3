/* Hash numbers for BloomFilter64 of Apache Paimon, insert hashes and check them.  Bit i is bit i & 7
 * of byte i >> 3; the positions of a hash are steps of its upper half from its lower half. */
#include "native.h"

/* Thomas Wang's 64-bit mix; as in Java, right shifts keep the sign. */
static uint64_t mix(uint64_t k) {
    k = ~k + (k << 21);
    k ^= (uint64_t)((int64_t)k >> 24);
    k = k + (k << 3) + (k << 8);
    k ^= (uint64_t)((int64_t)k >> 14);
    k = k + (k << 2) + (k << 4);
    k ^= (uint64_t)((int64_t)k >> 28);
    return k + (k << 31);
}

/* paimon_hash(numbers, hashes) */
int64_t paimon_hash(Arguments *in) {
    const uint64_t *numbers = numbers_of(in, 0);
    uint64_t *hashes = numbers_of(in, 1);
    if (count_of(in, 0) != count_of(in, 1)) return REFUSED;
    for (size_t i = 0; i < count_of(in, 0); i++) hashes[i] = mix(numbers[i]);
    return 0;
}

/* The next bit of a hash; a step that is negative as a signed number is inverted first. */
static uint64_t next_bit(uint32_t *step, uint64_t hash, uint64_t bits) {
    *step += (uint32_t)(hash >> 32);
    return (*step & 0x80000000U ? ~*step : *step) % bits;
}

/* Arguments: bits, number of positions, hashes. */
static bool is_filter(Arguments *in) {
    return size_of(in, 0) > 0 && size_of(in, 0) <= INT32_MAX / 8 && in->numbers[0] >= 0;
}

/* paimon_insert(bits, functions, hashes) */
int64_t paimon_insert(Arguments *in) {
    const uint64_t *hashes = numbers_of(in, 1);
    if (!is_filter(in)) return REFUSED;
    for (size_t i = 0; i < count_of(in, 1); i++) {
        uint32_t step = (uint32_t)hashes[i];
        for (int64_t n = 0; n < in->numbers[0]; n++) {
            uint64_t bit = next_bit(&step, hashes[i], 8 * (uint64_t)size_of(in, 0));
            bytes_of(in, 0)[bit / 8] |= (uint8_t)(1U << bit % 8);
        }
    }
    return 0;
}

/* paimon_check(bits, functions, hashes, found).  All positions are looked at, even after one that
 * is not set: a branch that the processor cannot predict costs more. */
int64_t paimon_check(Arguments *in) {
    const uint8_t *bits = bytes_of(in, 0);
    const uint64_t *hashes = numbers_of(in, 1);
    if (!is_filter(in) || size_of(in, 2) != count_of(in, 1)) return REFUSED;
    for (size_t i = 0; i < count_of(in, 1); i++) {
        uint32_t step = (uint32_t)hashes[i];
        unsigned all = 1;
        for (int64_t n = 0; n < in->numbers[0]; n++) {
            uint64_t bit = next_bit(&step, hashes[i], 8 * (uint64_t)size_of(in, 0));
            all &= (unsigned)bits[bit / 8] >> bit % 8;
        }
        bytes_of(in, 2)[i] = all & 1;
    }
    return 0;
}
