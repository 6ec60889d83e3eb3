/* The values of pages: levels, BYTE_ARRAYs, indices of a dictionary, and the search for values.  Parquet,
 * Encodings.md, "PLAIN", "RLE" and "RLE_DICTIONARY". */
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
    /* Arrow takes a last group for damage too of which only the wanted part is there. */
    uint64_t bytes = run->is_packed ? numbers * width : (width + 7) / 8;
    if (run->is_packed) numbers *= 8;
    run->count = numbers < left ? numbers : left;
    if (numbers == 0 || bytes > size - *at) return false;
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
        memcpy(&word, data + at, size - at);
    return word >> bit % 8 & ((UINT64_C(1) << width) - 1);
}

static uint64_t count_packed(const uint8_t *data, size_t size, const Run *run, unsigned width,
                             uint64_t wanted) {
    uint64_t found = 0, bit = 8 * (uint64_t)run->start;
    for (uint64_t i = 0; i < run->count; i++, bit += width)
        found += read_bits(data, size, bit, width) == wanted;
    return found;
}

/* count_level(levels, width, wanted, values): how many of the first `values` levels of `width` bits,
 * 1 to 8, are `wanted`. */
int64_t count_level(Arguments *in) {
    const uint8_t *data = bytes_of(in, 0);
    const int64_t *n = in->numbers;
    if (n[0] < 1 || n[0] > 8 || n[1] < 0 || n[2] < 0) return REFUSED;
    uint64_t found = 0, wanted = (uint64_t)n[1];
    size_t at = 0;
    Run run;
    for (uint64_t left = (uint64_t)n[2]; left > 0; left -= run.count) {
        if (!read_run(data, size_of(in, 0), &at, (unsigned)n[0], left, &run)) return DAMAGED;
        if (run.is_packed)
            found += count_packed(data, size_of(in, 0), &run, (unsigned)n[0], wanted);
        else if (data[run.start] == wanted)
            found += run.count;
    }
    return (int64_t)found;
}

/* byte_array_offsets(data, count, offsets): the end of `count` BYTE_ARRAYs, each after its length, or
 * DAMAGED.  `offsets` gets where each starts, and the end of the last, unless it is empty. */
int64_t byte_array_offsets(Arguments *in) {
    const uint8_t *data = bytes_of(in, 0);
    size_t size = size_of(in, 0), at = 0;
    int64_t count = in->numbers[0], *offsets = count_of(in, 1) == 0 ? NULL : numbers_of(in, 1);
    if (count < 0 || (offsets != NULL && count_of(in, 1) != (size_t)count + 1)) return REFUSED;
    for (int64_t i = 0; i < count; i++) {
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

/* copy_entries(indices, data, bounds, start, ends, into): copy the BYTE_ARRAYs that the indices of a
 * page name (bit width in a byte, then runs), one after the other from `start` on, and enter where
 * each ends, even if that is too large for 32 bits.  Entry i is data[bounds[i] + 4:bounds[i + 1]].
 * Without indices it is each entry once, and if `into` is empty only the ends are entered.  The
 * result is the end of the last. */
int64_t copy_entries(Arguments *in) {
    const uint8_t *indices = bytes_of(in, 0);
    const int64_t *bounds = numbers_of(in, 2);
    size_t size = size_of(in, 0), room = size_of(in, 4), at = 1;
    uint64_t wanted = size_of(in, 3) / 4, entries = count_of(in, 2) - 1, done = 0;
    int64_t end = in->numbers[0];
    unsigned width = size == 0 ? 0 : indices[0];
    if (count_of(in, 2) == 0 || end < 0 || (room > 0 && (uint64_t)end > room)) return REFUSED;
    if (width > 32) return DAMAGED;
    if (size > 0 && entries > UINT64_C(1) << width) entries = UINT64_C(1) << width;
    Run run = {false, wanted, 0};
    while (done < wanted) {
        if (size > 0 && !read_run(indices, size, &at, width, wanted - done, &run)) return DAMAGED;
        unsigned bits = run.is_packed ? width : (width + 7) / 8 * 8;
        uint64_t bit = 8 * (uint64_t)run.start;
        for (uint64_t last = done + run.count; done < last; done++, bit += run.is_packed * width) {
            uint64_t i = size == 0 ? done : bits == 0 ? 0 : read_bits(indices, size, bit, bits);
            if (i >= entries || bounds[i] < 0 || bounds[i + 1] < bounds[i] ||
                bounds[i + 1] > (int64_t)size_of(in, 1))
                return DAMAGED;
            int64_t start = bounds[i] + LENGTH_SIZE, length = bounds[i + 1] - start;
            if (length < 0 || (room > 0 && (uint64_t)length > room - (uint64_t)end)) return DAMAGED;
            if (room > 0) memcpy(bytes_of(in, 4) + end, bytes_of(in, 1) + start, (size_t)length);
            end += length;
            uint32_t entered = (uint32_t)end;
            memcpy(bytes_of(in, 3) + 4 * done, &entered, sizeof entered);
        }
    }
    return end;
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

/* unpack(runs, width, limit, numbers): the numbers of 32 bits that the runs hold, of `width` bits
 * each, 0 to 32.  DAMAGED if there are too few, or if one is not below `limit`. */
int64_t unpack(Arguments *in) {
    const uint8_t *data = bytes_of(in, 0);
    uint8_t *numbers = bytes_of(in, 1);
    size_t size = size_of(in, 0), at = 0;
    uint64_t wanted = size_of(in, 1) / 4, done = 0;
    if (in->numbers[0] < 0 || in->numbers[0] > 32 || in->numbers[1] < 0) return REFUSED;
    unsigned width = (unsigned)in->numbers[0], bits;
    uint64_t limit = (uint64_t)in->numbers[1], largest = 0;
    Run run;
    while (done < wanted) {
        if (!read_run(data, size, &at, width, wanted - done, &run)) return DAMAGED;
        bits = run.is_packed ? width : (width + 7) / 8 * 8;
        uint64_t bit = 8 * (uint64_t)run.start;
        for (uint64_t last = done + run.count; done < last; done++, bit += run.is_packed * width) {
            uint64_t number = bits == 0 ? 0 : read_bits(data, size, bit, bits);
            largest = number > largest ? number : largest;
            uint32_t entered = (uint32_t)number;
            memcpy(numbers + 4 * done, &entered, sizeof entered);
        }
        if (largest >= limit) return DAMAGED;
    }
    return (int64_t)done;
}

/* pick_indices(runs, width, limit, count, ranks, picked): of `count` numbers, as `unpack` takes them,
 * those at the ascending ranks.  DAMAGED as there. */
int64_t pick_indices(Arguments *in) {
    const uint8_t *data = bytes_of(in, 0);
    const int64_t *ranks = numbers_of(in, 1), *n = in->numbers;
    int64_t *picked = numbers_of(in, 2);
    size_t size = size_of(in, 0), at = 0, next = 0, wanted = count_of(in, 1);
    if (n[0] < 0 || n[0] > 32 || n[1] < 0 || n[2] < 0 || count_of(in, 2) != wanted) return REFUSED;
    unsigned width = (unsigned)n[0];
    uint64_t limit = (uint64_t)n[1], count = (uint64_t)n[2], done = 0, largest = 0;
    Run run;
    for (; done < count; done += run.count) {
        if (!read_run(data, size, &at, width, count - done, &run)) return DAMAGED;
        unsigned bits = run.is_packed ? width : (width + 7) / 8 * 8, step = run.is_packed * width;
        uint64_t first = 8 * (uint64_t)run.start, different = run.is_packed ? run.count : 1;
        /* Numbers of a width are all below a power of two. */
        if (limit < UINT64_C(1) << bits)
            for (uint64_t i = 0; i < different; i++) {
                uint64_t number = bits == 0 ? 0 : read_bits(data, size, first + i * step, bits);
                largest = number > largest ? number : largest;
            }
        for (; next < wanted && ranks[next] >= 0 && (uint64_t)ranks[next] < done + run.count; next++) {
            if ((uint64_t)ranks[next] < done) return REFUSED;
            uint64_t bit = first + ((uint64_t)ranks[next] - done) * step;
            picked[next] = bits == 0 ? 0 : (int64_t)read_bits(data, size, bit, bits);
        }
        if (largest >= limit) return DAMAGED;
    }
    return next == wanted ? (int64_t)next : REFUSED;
}

/* pick_spans(data, count, ranks, spans): the starts and ends of some of `count` BYTE_ARRAYs, at
 * ascending ranks.  DAMAGED if they are not all of the data. */
int64_t pick_spans(Arguments *in) {
    const uint8_t *data = bytes_of(in, 0);
    const int64_t *ranks = numbers_of(in, 1);
    int64_t *spans = numbers_of(in, 2), count = in->numbers[0];
    size_t size = size_of(in, 0), at = 0, next = 0, wanted = count_of(in, 1);
    if (count < 0 || count_of(in, 2) / 2 != wanted) return REFUSED;
    for (int64_t i = 0; i < count; i++) {
        if (size - at < LENGTH_SIZE) return DAMAGED;
        size_t length = read4(data + at);
        at += LENGTH_SIZE;
        if (size - at < length) return DAMAGED;
        for (; next < wanted && ranks[next] == i; next++) {
            spans[2 * next] = (int64_t)at;
            spans[2 * next + 1] = (int64_t)(at + length);
        }
        at += length;
    }
    if (at != size) return DAMAGED;
    return next == wanted ? (int64_t)next : REFUSED;
}

/* find_values(data, count, width, only, marks, hashes, found): how many of the PLAIN values are
 * `only`, or have one of the ascending hashes if that is empty; `found` gets their positions, and
 * the search ends with the first one that has no room.  DAMAGED if the values are not all of the
 * data.  `width` is 0 for BYTE_ARRAYs.  The lowest bits of each hash name a bit of `marks`, whose
 * size is a power of two. */
int64_t find_values(Arguments *in) {
    const uint8_t *data = bytes_of(in, 0), *only = bytes_of(in, 1), *marks = bytes_of(in, 2);
    size_t size = size_of(in, 0), at = 0, sought = size_of(in, 1), room = count_of(in, 4), done = 0;
    int64_t count = in->numbers[0], width = in->numbers[1], *found = numbers_of(in, 4);
    uint64_t last = 8 * (uint64_t)size_of(in, 2) - 1;
    if (size_of(in, 2) == 0 || (last & (last + 1)) != 0 || width < 0) return REFUSED;
    for (int64_t i = 0; i < count; i++) {
        size_t length = (size_t)width;
        if (width == 0) {
            if (size - at < LENGTH_SIZE) return DAMAGED;
            length = read4(data + at);
            at += LENGTH_SIZE;
        }
        if (size - at < length) return DAMAGED;
        const uint8_t *value = data + at;
        at += length;
        if (sought > 0) {
            if (length != sought || memcmp(value, only, sought) != 0) continue;
        } else {
            uint64_t h = hash_bytes(value, length);
            if (!(marks[(h & last) / 8] >> (h & 7) & 1)) continue;
            if (!is_among(h, numbers_of(in, 3), count_of(in, 3))) continue;
        }
        if (done == room) return (int64_t)room + 1;
        found[done++] = i;
    }
    return at == size ? (int64_t)done : DAMAGED;
}
