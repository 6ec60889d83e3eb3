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

/* One of the offsets of `width` bytes, 4 or 8; a negative one is larger than any buffer. */
static uint64_t offset_at(const uint8_t *offsets, int64_t width, size_t i) {
    return width == 8 ? read8(offsets + 8 * i) : (uint64_t)(int64_t)(int32_t)read4(offsets + 4 * i);
}

/* hash_spans(offsets, width, prefix, data, hashes): hash each data[offsets[i] + prefix :
 * offsets[i + 1]].  The answer is DAMAGED for offsets that fall, leave the data, or are nearer to
 * each other than `prefix`; the hashes are then those of the values before. */
static int64_t hash_spans(Arguments *in) {
    size_t count = count_of(in, 2), size = size_of(in, 1);
    int64_t width = in->numbers[0], prefix = in->numbers[1];
    const uint8_t *offsets = bytes_of(in, 0), *data = bytes_of(in, 1);
    uint64_t *hashes = numbers_of(in, 2);
    if ((width != 4 && width != 8) || prefix < 0) return REFUSED;
    if (size_of(in, 0) / (size_t)width != count + 1) return REFUSED;
    uint64_t start = offset_at(offsets, width, 0);
    if (start > size) return DAMAGED;
    for (size_t i = 0; i < count; i++) {
        uint64_t end = offset_at(offsets, width, i + 1);
        if (end > size || end < start || end - start < (uint64_t)prefix) return DAMAGED;
        hashes[i] = hash_bytes(data + start + prefix, (size_t)(end - start) - (size_t)prefix);
        start = end;
    }
    return 0;
}

Kernel hash_kernels[] = {
    KERNEL(hash_rows, "rnW", 0),
    KERNEL(hash_spans, "rnnrW", 1),
    END_OF_KERNELS,
};
