/* Thrift compact protocol: numbers, headers and the ends of values, in bytes that nobody checked.
 * https://github.com/apache/thrift/blob/master/doc/specs/thrift-compact-protocol.md
 *
 * Each function reads only below `in.size`.  It returns the offset after what it read, or NOWHERE
 * for bytes that are damaged or unusual.  What is accepted here, the Thrift library accepts too.
 * It accepts more: maps, lists of lists, and field ids that do not ascend. */
#pragma once

#include "native.h"

enum {
    WIRE_STOP, WIRE_TRUE, WIRE_FALSE, WIRE_BYTE, WIRE_I16, WIRE_I32, WIRE_I64, WIRE_DOUBLE,
    WIRE_BINARY, WIRE_LIST, WIRE_SET, WIRE_MAP, WIRE_STRUCT, WIRE_UUID
};

/* The bytes in which offsets count. */
typedef struct {
    const uint8_t *data;
    int64_t size;
} Bytes;

/* The header of a field; before the first field of a structure it is {WIRE_STOP, 0}. */
typedef struct {
    int kind;
    int id;
} Field;

#define NOWHERE INT64_C(-1)
/* In place of a number that a structure does not have. */
#define ABSENT INT64_MIN
/* The same limits as in structures/trees.py. */
#define MAX_DEPTH 32
#define MAX_ELEMENTS (INT64_C(1) << 18)

/* The varint at `at`, of at most 63 bits. */
int64_t read_varint(Bytes in, int64_t at, int64_t *number);
/* A signed number of a wire type; NOWHERE for one with more bits than its type. */
int64_t read_number(Bytes in, int64_t at, int kind, int64_t *number);
/* Type and count of a list's elements. */
int64_t read_list_header(Bytes in, int64_t at, int *kind, int64_t *count);
/* The header of the next field; its kind is WIRE_STOP at the end of the structure. */
int64_t read_field_header(Bytes in, int64_t at, Field *field);
/* The end of `count` structures that follow each other. */
int64_t end_of_structures(Bytes in, int64_t at, int64_t count);
/* The end of a field's value. */
int64_t end_of_value(Bytes in, int64_t at, int kind);
/* Start and end of a field's value: of the content of bytes, of other values as encoded. */
int64_t read_extent(Bytes in, int64_t at, int kind, int64_t *start, int64_t *end);
