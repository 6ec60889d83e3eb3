/* The values of pages: levels, PLAIN byte arrays, and indices of a dictionary.  Parquet,
 * Encodings.md, "PLAIN", "RLE" and "RLE_DICTIONARY". */
#include "values.h"

#include "xxh64.h"

#define LENGTH_SIZE 4

/* Numbers of one run: packed one after the other from bit 8 * start on, or one for all. */
typedef struct {
    bool is_packed;
    uint64_t count;
    size_t start;
} Run;

/* The run at `at`, of whose numbers `left` are wanted; `at` moves to its end.  False for damage. */
static bool read_run(const uint8_t *data, size_t size, size_t *at, unsigned width, uint64_t left,
                     Run *run) {
    uint64_t header = 0;
    unsigned shift = 0;
    do {
        if (*at >= size || shift > 28) return false;
        header |= (uint64_t)(data[*at] & 0x7F) << shift;
        shift += 7;
    } while (data[(*at)++] >= 0x80);
    uint64_t numbers = header >> 1;
    run->is_packed = header & 1;
    run->start = *at;
    if (run->is_packed) numbers *= 8;
    run->count = numbers < left ? numbers : left;
    uint64_t bytes = ((run->is_packed ? run->count * width : width) + 7) / 8;
    if (numbers == 0 || bytes > size - *at) return false;
    /* Of a last group that is not wanted whole, only the wanted part need be there. */
    *at += (size_t)bytes;
    return true;
}

/* The number of at most 32 bits from a bit on; bits after the data are 0. */
static inline uint64_t read_bits(const uint8_t *data, size_t size, uint64_t bit, unsigned width) {
    size_t at = (size_t)(bit / 8);
    uint64_t word = 0;
    if (size - at >= 8)
        word = read8(data + at);
    else
        for (size_t i = 0; i < size - at; i++) word |= (uint64_t)data[at + i] << 8 * i;
    return word >> bit % 8 & ((UINT64_C(1) << width) - 1);
}

static uint64_t count_packed(const uint8_t *data, size_t size, const Run *run, unsigned width,
                             uint64_t wanted) {
    uint64_t found = 0, bit = 8 * (uint64_t)run->start;
    for (uint64_t i = 0; i < run->count; i++, bit += width)
        found += read_bits(data, size, bit, width) == wanted;
    return found;
}

int64_t count_levels(const uint8_t *data, size_t size, unsigned width, uint64_t wanted,
                     uint64_t values) {
    uint64_t found = 0, left = values;
    size_t at = 0;
    Run run;
    for (; left > 0; left -= run.count) {
        if (!read_run(data, size, &at, width, left, &run)) return DAMAGED;
        if (run.is_packed)
            found += count_packed(data, size, &run, width, wanted);
        else if (data[run.start] == wanted)
            found += run.count;
    }
    return (int64_t)found;
}

int64_t walk_byte_arrays(const uint8_t *data, size_t size, uint64_t count, int64_t *offsets) {
    size_t at = 0;
    for (uint64_t i = 0; i < count; i++) {
        if (offsets != NULL) offsets[i] = (int64_t)at;
        if (size - at < LENGTH_SIZE) return DAMAGED;
        size_t length = read4(data + at);
        at += LENGTH_SIZE;
        if (size - at < length) return DAMAGED;
        at += length;
    }
    if (offsets != NULL) offsets[count] = (int64_t)at;
    return (int64_t)at;
}

/* count_level(levels, width, wanted, values) */
static int64_t count_level(Arguments *in) {
    const int64_t *n = in->numbers;
    if (n[0] < 1 || n[0] > 8 || n[1] < 0 || n[2] < 0) return REFUSED;
    return count_levels(bytes_of(in, 0), size_of(in, 0), (unsigned)n[0], (uint64_t)n[1],
                        (uint64_t)n[2]);
}

/* byte_array_offsets(data, offsets): one offset for each value, and the end of the last. */
static int64_t byte_array_offsets(Arguments *in) {
    if (count_of(in, 1) == 0) return REFUSED;
    return walk_byte_arrays(bytes_of(in, 0), size_of(in, 0), count_of(in, 1) - 1,
                            numbers_of(in, 1));
}

/* look_up(indices, entries, places): enter the entry of each index of a page: the bit width in a
 * byte, then runs.  The last of the entries is no entry, but the end of those before. */
static int64_t look_up(Arguments *in) {
    const uint8_t *data = bytes_of(in, 0);
    const int64_t *entries = numbers_of(in, 1);
    uint8_t *places = bytes_of(in, 2);
    size_t size = size_of(in, 0), at = 1;
    uint64_t wanted = size_of(in, 2) / 4, done = 0;
    if (count_of(in, 1) == 0 || size_of(in, 2) % 4 != 0) return REFUSED;
    if (size == 0 || data[0] > 32) return DAMAGED;
    unsigned width = data[0];
    Run run;
    while (done < wanted) {
        if (!read_run(data, size, &at, width, wanted - done, &run)) return DAMAGED;
        unsigned bits = run.is_packed ? width : (width + 7) / 8 * 8;
        uint64_t bit = 8 * (uint64_t)run.start, limit = UINT64_C(1) << width;
        if (limit > count_of(in, 1) - 1) limit = count_of(in, 1) - 1;
        for (uint64_t end = done + run.count; done < end; done++) {
            uint64_t index = bits == 0 ? 0 : read_bits(data, size, bit, bits);
            if (index >= limit) return DAMAGED;
            uint32_t place = (uint32_t)entries[index];
            memcpy(places + 4 * done, &place, sizeof place);
            if (run.is_packed) bit += width;
        }
    }
    return 0;
}

/* The value whose length is at a place; its end, or DAMAGED if it leaves the data. */
static int64_t end_of_placed(Arguments *in, size_t i, size_t *start) {
    size_t size = size_of(in, 0);
    uint32_t place;
    memcpy(&place, bytes_of(in, 1) + 4 * i, sizeof place);
    if (place > size || size - place < LENGTH_SIZE) return DAMAGED;
    size_t length = read4(bytes_of(in, 0) + place);
    *start = place + LENGTH_SIZE;
    return size - *start < length ? DAMAGED : (int64_t)(*start + length);
}

/* enter_ends(data, places, start, ends): enter where each value will end if they follow each other
 * from `start` on.  The answer is the end of the last, even if it is too large for 32 bits. */
static int64_t enter_ends(Arguments *in) {
    int64_t end = in->numbers[0];
    size_t count = size_of(in, 1) / 4, start;
    if (size_of(in, 2) / 4 != count || end < 0) return REFUSED;
    for (size_t i = 0; i < count; i++) {
        int64_t end_of_value = end_of_placed(in, i, &start);
        if (end_of_value < 0) return DAMAGED;
        end += end_of_value - (int64_t)start;
        uint32_t entered = (uint32_t)end;
        memcpy(bytes_of(in, 2) + 4 * i, &entered, sizeof entered);
    }
    return end;
}

/* copy_values(data, places, start, into): copy the values, without their lengths, one after the
 * other from `start` on.  The answer is the end of the last. */
static int64_t copy_values(Arguments *in) {
    size_t count = size_of(in, 1) / 4, size = size_of(in, 2), start;
    if (in->numbers[0] < 0 || (uint64_t)in->numbers[0] > size) return REFUSED;
    size_t at = (size_t)in->numbers[0];
    for (size_t i = 0; i < count; i++) {
        int64_t end = end_of_placed(in, i, &start);
        if (end < 0 || size - at < (size_t)end - start) return DAMAGED;
        memcpy(bytes_of(in, 2) + at, bytes_of(in, 0) + start, (size_t)end - start);
        at += (size_t)end - start;
    }
    return (int64_t)at;
}

/* 64 bits of a value's bytes and length, private to this program and cheaper than a good hash:
 * different values may share them. */
static uint64_t fingerprint(const uint8_t *data, size_t size) {
    uint64_t h = size * PRIME64_5, rest = 0;
    for (; size >= 8; data += 8, size -= 8) {
        h = (h ^ read8(data)) * PRIME64_1;
        h ^= h >> 32;
    }
    if (size >= 4) {
        rest = read4(data);
        data += 4;
        size -= 4;
    }
    for (; size > 0; size--) rest = rest << 8 | *data++;
    h = (h ^ rest) * PRIME64_2;
    return h ^ h >> 32;
}

/* fingerprints(offsets, data, found): of each data[offsets[i]:offsets[i + 1]]. */
static int64_t fingerprints(Arguments *in) {
    const int64_t *offsets = numbers_of(in, 0);
    uint64_t *found = numbers_of(in, 2);
    int64_t size = (int64_t)size_of(in, 1);
    if (count_of(in, 0) != count_of(in, 2) + 1 || offsets[0] < 0) return REFUSED;
    for (size_t i = 0; i < count_of(in, 2); i++) {
        if (offsets[i + 1] < offsets[i] || offsets[i + 1] > size) return REFUSED;
        found[i] = fingerprint(bytes_of(in, 1) + offsets[i], (size_t)(offsets[i + 1] - offsets[i]));
    }
    return 0;
}

static bool is_among(uint64_t wanted, const uint64_t *ascending, size_t count) {
    size_t low = 0;
    for (size_t high = count; low < high;) {
        size_t middle = low + (high - low) / 2;
        if (ascending[middle] < wanted)
            low = middle + 1;
        else
            high = middle;
    }
    return low < count && ascending[low] == wanted;
}

/* look_for(data, count, width, marks, probes): whether one of the PLAIN values has one of the
 * ascending fingerprints; DAMAGED if they are not all of the data.  `width` is 0 for BYTE_ARRAYs.
 * The lowest bits of each fingerprint name a bit of `marks`, whose size is a power of two. */
static int64_t look_for(Arguments *in) {
    const uint8_t *data = bytes_of(in, 0), *marks = bytes_of(in, 1);
    size_t size = size_of(in, 0), at = 0;
    int64_t count = in->numbers[0], width = in->numbers[1];
    uint64_t last = 8 * (uint64_t)size_of(in, 1) - 1;
    if (size_of(in, 1) == 0 || (last & (last + 1)) != 0 || width < 0) return REFUSED;
    for (int64_t i = 0; i < count; i++) {
        size_t length = (size_t)width;
        if (width == 0) {
            if (size - at < LENGTH_SIZE) return DAMAGED;
            length = read4(data + at);
            at += LENGTH_SIZE;
        }
        if (size - at < length) return DAMAGED;
        uint64_t h = fingerprint(data + at, length);
        at += length;
        if (marks[(h & last) / 8] >> (h & 7) & 1 && is_among(h, numbers_of(in, 2), count_of(in, 2)))
            return 1;
    }
    return at == size ? 0 : DAMAGED;
}

Kernel value_kernels[] = {
    KERNEL(count_level, "rnnn", 0),
    KERNEL(byte_array_offsets, "rW", 0),
    KERNEL(look_up, "rRw", 2),
    KERNEL(enter_ends, "rrnw", 1),
    KERNEL(copy_values, "rrnw", 1),
    KERNEL(fingerprints, "RrW", 1),
    KERNEL(look_for, "rnnrR", 0),
    END_OF_KERNELS,
};
