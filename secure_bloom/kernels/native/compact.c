/* Thrift compact protocol; compact.h says what each function does. */
#include "compact.h"

/* Field ids are signed numbers of 16 bits, sizes are numbers of 32 bits. */
#define MAX_FIELD_ID 32767
#define SIZE_BYTES 5

int64_t read_varint(Bytes in, int64_t at, int64_t *number) {
    uint64_t found = 0;
    for (int shift = 0; at >= 0 && at < in.size && shift <= 56; shift += 7) {
        uint8_t byte = in.data[at++];
        found |= (uint64_t)(byte & 0x7F) << shift;
        if (byte < 0x80) {
            *number = (int64_t)found;
            return at;
        }
    }
    return NOWHERE;
}

static int64_t unzigzag(int64_t number) { return number >> 1 ^ -(number & 1); }

/* The most bytes of a varint: 3, 5 or 10 for numbers of 16, 32 or 64 bits. */
static int64_t longest(int kind) { return kind == WIRE_I16 ? 3 : kind == WIRE_I32 ? 5 : 10; }

int64_t read_number(Bytes in, int64_t at, int kind, int64_t *number) {
    int64_t raw, end = read_varint(in, at, &raw);
    int bits = kind == WIRE_I16 ? 16 : kind == WIRE_I32 ? 32 : 63;
    if (end < 0 || raw >> bits != 0 || end - at > longest(kind)) return NOWHERE;
    *number = unzigzag(raw);
    return end;
}

/* A count of things that take a byte or more each; NOWHERE if fewer bytes are left. */
static int64_t read_size(Bytes in, int64_t at, int64_t *count) {
    int64_t end = read_varint(in, at, count);
    return end < 0 || end - at > SIZE_BYTES || *count > in.size - end ? NOWHERE : end;
}

int64_t read_list_header(Bytes in, int64_t at, int *kind, int64_t *count) {
    if (at < 0 || at >= in.size) return NOWHERE;
    uint8_t head = in.data[at++];
    *kind = head & 15;
    *count = head >> 4;
    /* 15 means that the count follows. */
    if (*count == 15) at = read_size(in, at, count);
    return at < 0 || *count > in.size - at || *count > MAX_ELEMENTS ? NOWHERE : at;
}

/* The end of the number at `at`, which takes at most `limit` bytes. */
static int64_t end_of_number(Bytes in, int64_t at, int64_t limit) {
    int64_t end = at;
    while (end < in.size && in.data[end] >= 0x80) end++;
    return end < in.size && end - at < limit ? end + 1 : NOWHERE;
}

int64_t read_field_header(Bytes in, int64_t at, Field *field) {
    if (at < 0 || at >= in.size) return NOWHERE;
    uint8_t head = in.data[at++];
    int64_t id = field->id + (head >> 4);
    field->kind = head & 15;
    if (field->kind == WIRE_STOP) return head == 0 ? at : NOWHERE;
    /* Without a difference of ids, the id itself follows. */
    if (head < 16) at = read_number(in, at, WIRE_I16, &id);
    if (at < 0 || id <= field->id || id > MAX_FIELD_ID) return NOWHERE;
    field->id = (int)id;
    return at;
}

/* The end of a value in which no other value nests.  A boolean takes a byte in a list. */
static int64_t end_of_scalar(Bytes in, int64_t at, int kind) {
    int64_t size = 0, start = at;
    if (kind >= WIRE_I16 && kind <= WIRE_I64) return end_of_number(in, at, longest(kind));
    if (kind == WIRE_BINARY)
        start = read_size(in, at, &size);
    else if (kind >= WIRE_TRUE && kind <= WIRE_BYTE)
        size = 1;
    else if (kind == WIRE_DOUBLE || kind == WIRE_UUID)
        size = kind == WIRE_DOUBLE ? 8 : 16;
    else
        return NOWHERE;
    return start < 0 || size > in.size - start ? NOWHERE : start + size;
}

static int64_t end_of_any(Bytes in, int64_t at, int kind, int depth);

/* The end of a structure that lies in `depth` others. */
static int64_t end_of_structure(Bytes in, int64_t at, int depth) {
    while (depth < MAX_DEPTH && at >= 0 && at < in.size) {
        uint8_t head = in.data[at++];
        int kind = head & 15;
        if (kind == WIRE_STOP) return head == 0 ? at : NOWHERE;
        if (head < 16) at = end_of_number(in, at, longest(WIRE_I16));
        /* The type of a field is the value of a boolean. */
        if (at >= 0 && kind > WIRE_FALSE) at = end_of_any(in, at, kind, depth + 1);
    }
    return NOWHERE;
}

/* The end of a value, or of a list of structures or scalars, that lies in `depth` structures. */
static int64_t end_of_any(Bytes in, int64_t at, int kind, int depth) {
    int64_t count;
    if (kind == WIRE_STRUCT) return end_of_structure(in, at, depth);
    if (kind != WIRE_LIST && kind != WIRE_SET) return end_of_scalar(in, at, kind);
    at = read_list_header(in, at, &kind, &count);
    if (kind == WIRE_STOP || kind > WIRE_UUID || (kind != WIRE_STRUCT && depth == MAX_DEPTH))
        return NOWHERE;
    for (; at >= 0 && count > 0; count--)
        at = kind == WIRE_STRUCT ? end_of_structure(in, at, depth) : end_of_scalar(in, at, kind);
    return at;
}

int64_t end_of_structures(Bytes in, int64_t at, int64_t count) {
    for (; at >= 0 && count > 0; count--) at = end_of_structure(in, at, 0);
    return at;
}

int64_t end_of_value(Bytes in, int64_t at, int kind) {
    return kind == WIRE_TRUE || kind == WIRE_FALSE ? at : end_of_any(in, at, kind, 0);
}

int64_t read_extent(Bytes in, int64_t at, int kind, int64_t *start, int64_t *end) {
    int64_t length;
    *end = end_of_value(in, at, kind);
    *start = kind == WIRE_BINARY && *end >= 0 ? read_varint(in, at, &length) : at;
    return *end;
}
