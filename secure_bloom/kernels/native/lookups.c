/* Ask what is known of many column chunks whether one of some values may be in them: first their
 * bounds, then their Bloom filters.  Statistics of parquet.thrift; BloomFilter.md. */
#include "compact.h"
#include "filter.h"

/* The slots of a column chunk in a row of read_fields.  Texts have two: their start and end. */
enum {
    NUM_VALUES, DATA_PAGE_OFFSET, DICTIONARY_PAGE_OFFSET, FILTER_OFFSET, FILTER_LENGTH, NULL_COUNT,
    MIN_VALUE, MAX_VALUE = MIN_VALUE + 2, OLD_MIN = MAX_VALUE + 2, OLD_MAX = OLD_MIN + 2,
    PATH = OLD_MAX + 2, FILE_PATH = PATH + 2, CRYPTO_METADATA = FILE_PATH + 2,
    ENCRYPTED_METADATA = CRYPTO_METADATA + 2, LEVEL_HISTOGRAM = ENCRYPTED_METADATA + 2,
    SLOTS = LEVEL_HISTOGRAM + 2
};

/* How the values of a column are ordered, and what its bounds say. */
enum {
    IS_LITTLE = 1,     /* numbers, the highest byte last; else the first byte counts most */
    IS_SIGNED = 2,     /* the highest bit is a sign */
    HAS_ORDER = 4,     /* min_value and max_value are in this order */
    HAS_OLD_ORDER = 8, /* so are min and max */
    MAY_BE_NULL = 16   /* the column is not a required one */
};

/* The start of a run of values for a chunk that is not decided here. */
#define UNDECIDED INT64_C(-1)

typedef struct {
    const uint8_t *start;
    int64_t size;
} Value;

/* Ascending values: value i is data[offsets[i]:offsets[i + 1]]. */
typedef struct {
    const uint8_t *data;
    const int64_t *offsets;
    int64_t count;
} Values;

/* Below zero if `a` comes before `b`, 0 if they are equal.  A prefix comes before what it begins. */
static int64_t compare(Value a, Value b, int64_t flags) {
    int64_t common = a.size < b.size ? a.size : b.size;
    for (int64_t i = 0; i < common; i++) {
        int x = flags & IS_LITTLE ? a.start[a.size - 1 - i] : a.start[i];
        int y = flags & IS_LITTLE ? b.start[b.size - 1 - i] : b.start[i];
        if (x != y) return i == 0 && flags & IS_SIGNED && (x ^ y) & 0x80 ? y - x : x - y;
    }
    return a.size - b.size;
}

/* The bytes between the two offsets in the slots from `slot` on; start is NULL if they are none. */
static Value value_at(Bytes in, const int64_t *chunk, int slot) {
    int64_t start = chunk[slot], end = chunk[slot + 1];
    if (start < 0 || end < start || end > in.size) return (Value){NULL, 0};
    return (Value){in.data + start, end - start};
}

/* Whether the chunk is not a usual one: its data in another file, another column, not one value
 * for each row. */
static bool is_unusual(Bytes in, const int64_t *chunk, Value path, int64_t rows) {
    Value own = value_at(in, chunk, PATH);
    if (chunk[FILE_PATH] != ABSENT || chunk[NUM_VALUES] != rows || own.start == NULL) return true;
    return own.size != path.size || memcmp(own.start, path.start, (size_t)path.size) != 0;
}

/* Whether the chunk has a Bloom filter, and no dictionary that is smaller. */
static bool is_filter_next(const int64_t *chunk) {
    int64_t data = chunk[DATA_PAGE_OFFSET], dictionary = chunk[DICTIONARY_PAGE_OFFSET];
    if (chunk[FILTER_OFFSET] < 0 || chunk[FILTER_LENGTH] < 0 || data < 0) return false;
    return dictionary <= 0 || dictionary >= data || data - dictionary >= chunk[FILTER_LENGTH];
}

/* The lower and upper bound that can be believed: both in order, each as wide as the type. */
static bool read_bounds(Bytes in, const int64_t *chunk, int64_t width, int64_t flags,
                        Value bounds[2]) {
    int slot = flags & HAS_ORDER && chunk[MIN_VALUE] >= 0 && chunk[MAX_VALUE] >= 0 ? MIN_VALUE
               : flags & HAS_OLD_ORDER                                            ? OLD_MIN
                                                                                  : -1;
    if (slot < 0) return false;
    bounds[0] = value_at(in, chunk, slot);
    bounds[1] = value_at(in, chunk, slot + 2);
    if (bounds[0].start == NULL || bounds[1].start == NULL) return false;
    if (width > 0 && (bounds[0].size != width || bounds[1].size != width)) return false;
    return compare(bounds[0], bounds[1], flags) <= 0;
}

/* Whether the histogram of levels, if there is one, allows that all values are null. */
static bool allows_nulls(Bytes in, const int64_t *chunk) {
    int64_t levels, number, total = 0, last = 0, at = chunk[LEVEL_HISTOGRAM];
    int kind = WIRE_STOP;
    if (at < 0) return true;
    at = read_list_header(in, at, &kind, &levels);
    if (kind != WIRE_I64) return false;
    for (int64_t i = 0; at >= 0 && i < levels; i++) {
        at = read_number(in, at, WIRE_I64, &number);
        if (at < 0 || number < 0 || number > chunk[NUM_VALUES] - total) return false;
        total += last = number;
    }
    return at >= 0 && last == 0 && (levels == 0 || total == chunk[NUM_VALUES]);
}

/* Whether all values are said to be null, and nothing contradicts that. */
static bool are_nulls(Bytes in, const int64_t *chunk) {
    for (int slot = MIN_VALUE; slot <= OLD_MAX; slot += 2)
        if (chunk[slot] >= 0) return false;
    return chunk[NULL_COUNT] == chunk[NUM_VALUES] && allows_nulls(in, chunk);
}

/* How many values come before `bound`; with `or_same` also those that are equal. */
static int64_t count_below(Values values, Value bound, bool or_same, int64_t flags) {
    int64_t low = 0, high = values.count;
    while (low < high) {
        int64_t middle = low + (high - low) / 2, start = values.offsets[middle];
        Value value = {values.data + start, values.offsets[middle + 1] - start};
        int64_t order = compare(value, bound, flags);
        if (order < 0 || (or_same && order == 0))
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

/* Enter the run of values that the bounds of a chunk leave. */
static void leave_chunk(Bytes in, const int64_t *chunk, Value path, int64_t rows, Values values,
                        int64_t width, int64_t flags, int64_t run[2]) {
    Value bounds[2];
    int64_t start = 0, end = values.count;
    run[0] = UNDECIDED, run[1] = 0;
    if (is_unusual(in, chunk, path, rows)) return;
    if (flags & MAY_BE_NULL && are_nulls(in, chunk)) {
        end = 0;
    } else if (read_bounds(in, chunk, width, flags, bounds)) {
        start = count_below(values, bounds[0], false, flags);
        end = count_below(values, bounds[1], true, flags);
    }
    if (start == end || is_filter_next(chunk)) run[0] = start, run[1] = end;
}

/* Whether offsets ascend from 0 to `size`. */
static bool are_offsets(const int64_t *offsets, int64_t count, int64_t size) {
    if (count < 1 || offsets[0] != 0 || offsets[count - 1] != size) return false;
    for (int64_t i = 1; i < count; i++)
        if (offsets[i] < offsets[i - 1]) return false;
    return true;
}

/* leave(plain, chunks, rows, path, values, offsets, width, flags, runs)
 * Enter the run of values, (start, end), that the bounds of each chunk leave.  It starts with
 * UNDECIDED if Python must look at the chunk.  An empty run rules the chunk out. */
int64_t leave(Arguments *in) {
    Bytes plain = {bytes_of(in, 0), (int64_t)size_of(in, 0)};
    const int64_t *chunks = numbers_of(in, 1), *rows = numbers_of(in, 2);
    Value path = {bytes_of(in, 3), (int64_t)size_of(in, 3)};
    Values values = {bytes_of(in, 4), numbers_of(in, 5), (int64_t)count_of(in, 5) - 1};
    int64_t *runs = numbers_of(in, 6);
    size_t count = count_of(in, 6) / 2;
    if (count_of(in, 1) / SLOTS < count || count_of(in, 2) < count) return REFUSED;
    if (!are_offsets(values.offsets, values.count + 1, (int64_t)size_of(in, 4))) return REFUSED;
    for (size_t i = 0; i < count; i++)
        leave_chunk(plain, chunks + i * SLOTS, path, rows[i], values, in->numbers[0],
                    in->numbers[1], runs + 2 * i);
    return 0;
}

/* Answers of a filter.  UNUSUAL: Python decodes its header. */
enum { NONE, SOME, UNUSUAL };

/* A header starts with its first field, numBytes, a number of 32 bits. */
#define NUM_BYTES (1 << 4 | WIRE_I32)

/* The offset after a filter's header, which ends in `rest`; NOWHERE for any other header.  Its
 * bitset has `size` bytes. */
static int64_t end_of_header(Bytes in, int64_t at, Value rest, int64_t *size) {
    if (at < 0 || at >= in.size || in.data[at] != NUM_BYTES) return NOWHERE;
    at = read_number(in, at + 1, WIRE_I32, size);
    if (at < 0 || *size <= 0 || *size % BLOCK_SIZE != 0 || rest.size > in.size - at)
        return NOWHERE;
    return memcmp(in.data + at, rest.start, (size_t)rest.size) == 0 ? at + rest.size : NOWHERE;
}

/* The answer of one filter for any of some hashes.  Its bitset starts at `bitset`, or right after the
 * header if that is NOWHERE, and ends at `last`. */
static uint8_t ask_filter(Bytes in, int64_t header, int64_t bitset, int64_t last, Value rest,
                          const uint64_t *hashes, int64_t count) {
    if (last > in.size) return UNUSUAL;
    int64_t size, end = end_of_header((Bytes){in.data, last}, header, rest, &size);
    if (bitset < 0) bitset = end;
    if (end < 0 || end > bitset || bitset > last || size != last - bitset) return UNUSUAL;
    for (int64_t i = 0; i < count; i++)
        if (may_have(in.data + bitset, (uint64_t)size / BLOCK_SIZE, hashes[i])) return SOME;
    return NONE;
}

/* ask(data, base, bounds, is_opened, rest, hashes, runs, answers)
 * Enter the answer of each filter for a run of the hashes.  Bounds count from `base`, the offset of
 * `data` in its file.  Filter i has bounds 2 * i and 2 * i + 1, its start and end.  If it was
 * decrypted it has three: the start of its header, of its bitset, and of the next filter. */
int64_t ask(Arguments *in) {
    Bytes data = {bytes_of(in, 0), (int64_t)size_of(in, 0)};
    const int64_t *bounds = numbers_of(in, 1), *runs = numbers_of(in, 4);
    const uint64_t *hashes = numbers_of(in, 3);
    Value rest = {bytes_of(in, 2), (int64_t)size_of(in, 2)};
    int64_t base = in->numbers[0], known = (int64_t)count_of(in, 3);
    bool is_opened = in->numbers[1] != 0;
    size_t count = size_of(in, 5);
    if (count_of(in, 1) < 2 * count + is_opened || count_of(in, 4) / 2 < count) return REFUSED;
    for (size_t i = 0; i < count; i++) {
        const int64_t *own = bounds + 2 * i, *run = runs + 2 * i;
        if (run[0] < 0 || run[1] < run[0] || run[1] > known) return REFUSED;
        int64_t bitset = is_opened ? own[1] - base : NOWHERE, last = own[1 + is_opened] - base;
        bytes_of(in, 5)[i] = ask_filter(data, own[0] - base, bitset, last, rest, hashes + run[0],
                                        run[1] - run[0]);
    }
    return 0;
}
