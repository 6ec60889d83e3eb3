/* Set the place of a filter in the metadata of column chunks, and copy all other bytes of a footer
 * as they lie.  structures/splices.py does the same for any field.  parquet.thrift, ColumnChunk. */
#include "compact.h"

/* Field ids of ColumnChunk and ColumnMetaData; tests/kernels compare them with parquet.thrift. */
enum { META_DATA = 3, ENCRYPTED_COLUMN_METADATA = 9 };
enum { BLOOM_FILTER_OFFSET = 14, BLOOM_FILTER_LENGTH = 15 };

#define LONGEST_NUMBER 10
/* A short header has the difference to the id before in four bits. */
#define MAX_DELTA 15

/* Where the next byte goes, and how many there is room for. */
typedef struct {
    uint8_t *next;
    int64_t room;
} Output;

/* A field to set: its encoded value, or `inner` fields to set in the structure that it is. */
typedef struct New {
    Field field;
    const uint8_t *value;
    int64_t size;
    const struct New *inner;
} New;

static bool put(Output *out, const uint8_t *data, int64_t size) {
    if (size < 0 || size > out->room) return false;
    if (size > 0) memcpy(out->next, data, (size_t)size);
    out->next += size;
    out->room -= size;
    return true;
}

/* Encode a number that is not negative; the answer is its size. */
static int64_t encode_number(int64_t number, uint8_t *into) {
    int64_t size = 0;
    uint64_t left = (uint64_t)number << 1;
    for (; left > 0x7F; left >>= 7) into[size++] = (uint8_t)(left | 0x80);
    into[size++] = (uint8_t)left;
    return size;
}

/* Encode the shortest header of a field after field `before`; the answer is its size. */
static int64_t encode_header(int before, Field field, uint8_t *into) {
    int delta = field.id - before;
    into[0] = (uint8_t)((delta <= MAX_DELTA ? delta << 4 : 0) | field.kind);
    return 1 + (delta <= MAX_DELTA ? 0 : encode_number(field.id, into + 1));
}

static bool put_header(Output *out, int before, Field field) {
    uint8_t header[1 + LONGEST_NUMBER];
    return put(out, header, encode_header(before, field, header));
}

/* Whether the header in [at, end) is the shortest one; another one has its id in full. */
static bool is_shortest(Bytes in, int64_t at, int64_t end, int before, Field field) {
    uint8_t header[1 + LONGEST_NUMBER];
    int64_t size = encode_header(before, field, header);
    return size == end - at && memcmp(header, in.data + at, (size_t)size) == 0;
}

/* Copy the structure at `at` with `count` fields set, whose ids ascend.  A field that has `inner`
 * fields is set only if it is there. */
static int64_t set_fields(Bytes in, int64_t at, const New *new, int count, Output *out) {
    Field field = {WIRE_STOP, 0};
    for (int before = 0, old_before = 0;;) {
        int64_t value = read_field_header(in, at, &field);
        if (value < 0) return NOWHERE;
        for (; count > 0 && (field.kind == WIRE_STOP || new->field.id < field.id); new++, count--) {
            if (new->inner != NULL) continue;
            if (!put_header(out, before, new->field) || !put(out, new->value, new->size))
                return NOWHERE;
            before = new->field.id;
        }
        if (field.kind == WIRE_STOP) return put(out, in.data + at, value - at) ? value : NOWHERE;
        bool is_set = count > 0 && new->field.id == field.id;
        bool is_new = is_set && new->inner == NULL;
        bool is_kept = before == old_before || !is_shortest(in, at, value, old_before, field);
        int64_t end = end_of_value(in, value, field.kind);
        if (end < 0 || (is_set && new->field.kind != field.kind)) return NOWHERE;
        if (is_kept && !is_new ? !put(out, in.data + at, value - at) : !put_header(out, before, field))
            return NOWHERE;
        bool is_put = is_new   ? put(out, new->value, new->size)
                      : is_set ? set_fields(in, value, new->inner, 2, out) == end
                               : put(out, in.data + value, end - value);
        if (!is_put) return NOWHERE;
        new += is_set, count -= is_set;
        before = old_before = field.id;
        at = end;
    }
}

/* set_filters(plain, offsets, places, sealed, bounds, is_meta_data, out): copy a FileMetaData, and
 * set the filter of each column chunk: offset places[2 * i], length places[2 * i + 1].  Bytes
 * bounds[i] to bounds[i + 1] of `sealed`, if there are any, are its new encrypted metadata.  With
 * `is_meta_data` it is one ColumnMetaData, whose end is that of the copy.  The answer is the size of
 * the copy; DAMAGED for other bytes, an order that does not ascend, or too little room. */
int64_t set_filters(Arguments *in) {
    Bytes plain = {bytes_of(in, 0), (int64_t)size_of(in, 0)};
    const int64_t *offsets = numbers_of(in, 1), *places = numbers_of(in, 2);
    const int64_t *bounds = numbers_of(in, 4);
    size_t count = count_of(in, 1);
    int64_t done = 0, room = (int64_t)size_of(in, 5);
    bool is_meta_data = in->numbers[0] != 0;
    Output out = {bytes_of(in, 5), room};
    if (count_of(in, 2) != 2 * count || count_of(in, 4) != count + 1) return REFUSED;
    for (size_t i = 0; i < count; i++) {
        uint8_t offset[LONGEST_NUMBER], length[LONGEST_NUMBER];
        int64_t sealed = bounds[i + 1] - bounds[i];
        if (places[2 * i] < 0 || places[2 * i + 1] < 0 || places[2 * i + 1] > INT32_MAX ||
            bounds[i] < 0 || bounds[i + 1] < bounds[i] || bounds[i + 1] > (int64_t)size_of(in, 3))
            return REFUSED;
        const New filter[] = {
            {{WIRE_I64, BLOOM_FILTER_OFFSET}, offset, encode_number(places[2 * i], offset), NULL},
            {{WIRE_I32, BLOOM_FILTER_LENGTH}, length, encode_number(places[2 * i + 1], length), NULL}};
        const New chunk[] = {{{WIRE_STRUCT, META_DATA}, NULL, 0, filter},
                             {{WIRE_BINARY, ENCRYPTED_COLUMN_METADATA},
                              bytes_of(in, 3) + bounds[i], sealed, NULL}};
        if (offsets[i] < done || offsets[i] > plain.size) return DAMAGED;
        if (!put(&out, plain.data + done, offsets[i] - done)) return DAMAGED;
        done = is_meta_data ? set_fields(plain, offsets[i], filter, 2, &out)
                            : set_fields(plain, offsets[i], chunk, sealed > 0 ? 2 : 1, &out);
        if (done < 0) return DAMAGED;
    }
    if (!is_meta_data && !put(&out, plain.data + done, plain.size - done)) return DAMAGED;
    return room - out.room;
}
