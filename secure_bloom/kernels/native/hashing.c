/* Hashes of arrays of values; the compiler makes loops of their own of the common widths. */
#include "xxh64.h"

void hash_fixed(const uint8_t *values, size_t width, size_t count, uint64_t *hashes) {
    if (width == 4) {
        for (size_t i = 0; i < count; i++) hashes[i] = hash_bytes(values + 4 * i, 4);
    } else if (width == 8) {
        for (size_t i = 0; i < count; i++) hashes[i] = hash_bytes(values + 8 * i, 8);
    } else {
        for (size_t i = 0; i < count; i++) hashes[i] = hash_bytes(values + width * i, width);
    }
}

/* hash_rows(rows, width, hashes): hash the values of `width` bytes each. */
int64_t hash_rows(Arguments *in) {
    size_t count = count_of(in, 1);
    uint64_t width = (uint64_t)in->numbers[0];
    if (in->numbers[0] < 0 || (width != 0 && count > size_of(in, 0) / width)) return REFUSED;
    hash_fixed(bytes_of(in, 0), (size_t)width, count, numbers_of(in, 1));
    return 0;
}

/* hash_spans(offsets, prefix, data, hashes): hash each data[offsets[i] + prefix:offsets[i + 1]].
 * DAMAGED for offsets that fall, leave the data, or are nearer to each other than `prefix`. */
int64_t hash_spans(Arguments *in) {
    const int64_t *offsets = numbers_of(in, 0);
    int64_t size = (int64_t)size_of(in, 1), prefix = in->numbers[0];
    uint64_t *hashes = numbers_of(in, 2);
    if (prefix < 0 || count_of(in, 0) != count_of(in, 2) + 1) return REFUSED;
    if (offsets[0] < 0) return DAMAGED;
    for (size_t i = 0; i < count_of(in, 2); i++) {
        int64_t start = offsets[i], end = offsets[i + 1];
        if (end > size || end < start || end - start < prefix) return DAMAGED;
        hashes[i] = hash_bytes(bytes_of(in, 1) + start + prefix, (size_t)(end - start - prefix));
    }
    return 0;
}
