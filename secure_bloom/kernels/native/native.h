/* What all subjects share: how Python calls a kernel, and reads of little-endian numbers.
 *
 * Rules: a function takes lengths and checks each read and write against them, allocates nothing
 * whose size comes from a file, keeps no global state, and returns a number below 0 for bytes that
 * it does not take, which Python then reads again and names the mistake in. */
#pragma once

#include <Python.h>
#include <stdbool.h>
#include <stdint.h>
#include <string.h>

#if defined(__BYTE_ORDER__) && __BYTE_ORDER__ != __ORDER_LITTLE_ENDIAN__
#error "numpy does the work on big-endian machines"
#endif

#define MAX_ARGUMENTS 12
#define BLOCK_SIZE 32
/* Answers of kernels: the arguments do not fit each other (ValueError); the bytes are damaged. */
#define REFUSED INT64_MIN
#define DAMAGED (-1)

/* The arguments of a call: buffers and numbers, each counted from 0. */
typedef struct {
    Py_buffer buffers[MAX_ARGUMENTS];
    int64_t numbers[MAX_ARGUMENTS];
    int buffer_count;
    int number_count;
} Arguments;

/* All functions that Python calls: name, format, and the buffer whose size says how long it takes.
 * The format has a letter for each argument: r bytes to read, w bytes to write, R and W the same
 * for aligned numbers of 64 bits, n a signed number of 64 bits.  They call nothing of Python. */
#define KERNELS(K)                 \
    K(insert_plain, "wrnn", 1)     \
    K(sum_of_products, "r", 0)     \
    K(fold, "wn", 0)               \
    K(insert_hashes, "wR", 1)      \
    K(check_hashes, "rRw", 1)      \
    K(scan, "rW", 0)               \
    K(read_fields, "rRnRnW", 0)    \
    K(walk_pages, "rRnnnnW", 0)    \
    K(set_filters, "rRRrRnw", 0)   \
    K(hash_rows, "rnW", 0)         \
    K(hash_spans, "RnrW", 1)       \
    K(hudi_insert, "wnnnnRrnn", 1) \
    K(hudi_check, "rnnnnRrWw", 1)  \
    K(leave, "rRRrrRnnW", 0)       \
    K(ask, "rnRnrRRw", 0)          \
    K(paimon_hash, "RW", 0)        \
    K(paimon_insert, "wnR", 1)     \
    K(paimon_check, "rnRw", 1)     \
    K(count_level, "rnnn", 0)      \
    K(byte_array_offsets, "rnW", 0)\
    K(copy_entries, "rrRnww", 4)   \
    K(look_for, "rnnrR", 0)

#define DECLARE(name, format, work) int64_t name(Arguments *in);
KERNELS(DECLARE)

static inline uint8_t *bytes_of(Arguments *in, int i) { return in->buffers[i].buf; }
static inline void *numbers_of(Arguments *in, int i) { return in->buffers[i].buf; }
static inline size_t size_of(const Arguments *in, int i) { return (size_t)in->buffers[i].len; }
static inline size_t count_of(const Arguments *in, int i) { return size_of(in, i) / 8; }

static inline uint32_t read4(const uint8_t *at) {
    uint32_t word;
    memcpy(&word, at, sizeof word);
    return word;
}

static inline uint64_t read8(const uint8_t *at) {
    return (uint64_t)read4(at) | (uint64_t)read4(at + 4) << 32;
}
