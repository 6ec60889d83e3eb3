/* The DELTA encodings of pages.  Parquet, Encodings.md, "DELTA_BINARY_PACKED" and "DELTA_BYTE_ARRAY". */
#include "native.h"

/* Numbers of one page: the bytes left, and the fields of the header. */
typedef struct {
    const uint8_t *data;
    size_t size, at;
} Source;

/* The varint at `in.at`, which moves to its end.  False if it does not end, or has more than 64 bits. */
static bool read_varint(Source *in, uint64_t *number) {
    *number = 0;
    for (unsigned shift = 0; shift < 64; shift += 7) {
        if (in->at >= in->size) return false;
        uint8_t byte = in->data[in->at++];
        *number |= (uint64_t)(byte & 0x7F) << shift;
        if (byte < 0x80) return shift < 63 || byte <= 1;
    }
    return false;
}

static inline uint64_t unzigzag(uint64_t number) { return number >> 1 ^ (0 - (number & 1)); }

/* The number of 1 to 64 bits from a bit on.  All of its bytes are below `size`. */
static inline uint64_t read_wide(const uint8_t *data, size_t size, uint64_t bit, unsigned width) {
    size_t at = (size_t)(bit / 8);
    unsigned shift = (unsigned)(bit % 8);
    uint64_t word = 0;
    if (size - at >= 8)
        word = read8(data + at);
    else
        memcpy(&word, data + at, size - at);
    word >>= shift;
    if (shift + width > 64) word |= (uint64_t)data[at + 8] << (64 - shift);
    return width == 64 ? word : word & ((UINT64_C(1) << width) - 1);
}

/* delta_numbers(data, start, widest, numbers): the end of the DELTA_BINARY_PACKED numbers that begin
 * at `start`, or DAMAGED unless there are as many as `numbers` has room for, with deltas of at most
 * `widest` bits.  Sums are modulo 2^64. */
int64_t delta_numbers(Arguments *in) {
    Source from = {bytes_of(in, 0), size_of(in, 0), 0};
    int64_t *numbers = numbers_of(in, 1), start = in->numbers[0], widest = in->numbers[1];
    uint64_t wanted = count_of(in, 1), block, minis, total, number, least;
    if (start < 0 || (uint64_t)start > from.size || widest < 0 || widest > 64) return REFUSED;
    from.at = (size_t)start;
    if (!read_varint(&from, &block) || !read_varint(&from, &minis) || !read_varint(&from, &total) ||
        !read_varint(&from, &number))
        return DAMAGED;
    if (total != wanted || minis == 0 || block % minis != 0) return DAMAGED;
    uint64_t of_mini = block / minis, done = 0;
    if (of_mini == 0 || of_mini % 32 != 0 || of_mini > UINT32_MAX) return DAMAGED;
    uint64_t sum = unzigzag(number);
    if (wanted > 0) numbers[done++] = (int64_t)sum;
    while (done < wanted) {
        if (!read_varint(&from, &least) || minis > from.size - from.at) return DAMAGED;
        least = unzigzag(least);
        const uint8_t *widths = from.data + from.at;
        from.at += (size_t)minis;
        for (uint64_t mini = 0; mini < minis && done < wanted; mini++) {
            unsigned width = widths[mini];
            uint64_t bytes = of_mini / 8 * width, bit = 8 * (uint64_t)from.at;
            if (width > widest || bytes > from.size - from.at) return DAMAGED;
            uint64_t last = wanted - done < of_mini ? wanted : done + of_mini;
            for (; done < last; done++, bit += width) {
                sum += least + (width == 0 ? 0 : read_wide(from.data, from.size, bit, width));
                numbers[done] = (int64_t)sum;
            }
            from.at += (size_t)bytes;
        }
    }
    return (int64_t)from.at;
}

/* join_prefixes(prefixes, bounds, suffixes, ranks, ends, into): copy some values, each the first
 * prefixes[i] bytes of the value before it and then suffixes[bounds[i]:bounds[i + 1]], one after the
 * other, and enter where each ends.  The result is the end of the last, or DAMAGED. */
int64_t join_prefixes(Arguments *in) {
    const int64_t *prefixes = numbers_of(in, 0), *bounds = numbers_of(in, 1), *ranks = numbers_of(in, 3);
    const uint8_t *suffixes = bytes_of(in, 2);
    uint8_t *into = bytes_of(in, 5);
    size_t count = count_of(in, 0), wanted = count_of(in, 3), room = size_of(in, 5), end = 0;
    int64_t *ends = numbers_of(in, 4);
    if (count_of(in, 1) != count + 1 || count_of(in, 4) != wanted) return REFUSED;
    for (size_t k = 0; k < wanted; k++) {
        if (ranks[k] < 0 || (uint64_t)ranks[k] >= count) return REFUSED;
        size_t i = (size_t)ranks[k], needed = 0;
        bool is_first = true;
        uint8_t *value = into + end;
        do {
            int64_t prefix = prefixes[i], first = bounds[i], own = bounds[i + 1] - first;
            if (prefix < 0 || prefix > INT32_MAX || first < 0 || bounds[i + 1] < first ||
                (uint64_t)bounds[i + 1] > size_of(in, 2))
                return DAMAGED;
            size_t length = (size_t)prefix + (size_t)own;
            if (is_first) {
                if (length > room - end) return DAMAGED;
                needed = length;
                end += length;
                is_first = false;
            }
            if (needed > length) return DAMAGED;
            if (needed > (size_t)prefix) {
                memcpy(value + prefix, suffixes + first, needed - (size_t)prefix);
                needed = (size_t)prefix;
            }
            if (needed > 0 && i-- == 0) return DAMAGED;
        } while (needed > 0);
        ends[k] = (int64_t)end;
    }
    return (int64_t)end;
}
