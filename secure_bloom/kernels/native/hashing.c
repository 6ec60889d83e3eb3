/* Hashes of arrays of values. */
#include "xxh64.h"

void hash_fixed(const uint8_t *values, size_t width, size_t count, uint64_t *hashes) {
    if (width == 4) {
        for (size_t i = 0; i < count; i++) hashes[i] = hash_word4(read4(values + 4 * i));
    } else if (width == 8) {
        for (size_t i = 0; i < count; i++) hashes[i] = hash_word8(read8(values + 8 * i));
    } else {
        for (size_t i = 0; i < count; i++) hashes[i] = hash_bytes(values + width * i, width);
    }
}

/* hash_rows(rows, width, hashes): hash the values of `width` bytes each. */
static int64_t hash_rows(Arguments *in) {
    size_t count = count_of(in, 1);
    uint64_t width = (uint64_t)in->numbers[0];
    if (in->numbers[0] < 0 || (width != 0 && count > size_of(in, 0) / width)) return REFUSED;
    hash_fixed(bytes_of(in, 0), (size_t)width, count, numbers_of(in, 1));
    return 0;
}

Kernel hash_kernels[] = {
    KERNEL(hash_rows, "rnW", 0),
    END_OF_KERNELS,
};
