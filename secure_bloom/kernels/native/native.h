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

/* All functions that Python calls: name, format, the buffer whose size says how long it takes, and
 * the time that a byte of it takes, where one of them hashes a byte in 1.
 * The format has a letter for each argument: r bytes to read, w bytes to write, R and W the same
 * for aligned numbers of 64 bits, n a signed number of 64 bits.  They call nothing of Python. */
#define KERNELS(K)                     \
    K(insert_plain, "wrnn", 1, 2)      \
    K(sum_of_products, "r", 0, 1)      \
    K(fold, "wn", 0, 2)                \
    K(insert_hashes, "wR", 1, 2)       \
    K(check_hashes, "rRw", 1, 2)       \
    K(scan, "rW", 0, 2)                \
    K(read_fields, "rRnRnW", 0, 2)     \
    K(walk_pages, "rRnnnnW", 0, 1)     \
    K(set_filters, "rRRrRnw", 0, 1)    \
    K(hash_rows, "rnW", 0, 1)          \
    K(hash_spans, "RnrW", 1, 2)        \
    K(hudi_insert, "wnnnnRrnn", 1, 128)\
    K(hudi_check, "rnnnnRrWw", 1, 128) \
    K(leave, "rRRrrRnnW", 0, 1)        \
    K(ask, "rnRnrRRw", 0, 1)           \
    K(paimon_hash, "RW", 0, 1)         \
    K(paimon_insert, "wnR", 1, 8)      \
    K(paimon_check, "rnRw", 1, 8)      \
    K(count_level, "rnnn", 0, 32)      \
    K(byte_array_offsets, "rnW", 0, 1) \
    K(copy_entries, "rrRnww", 3, 4)    \
    K(fold_values, "RrwWWww", 1, 4)    \
    K(find_words, "rnnrrwWWW", 0, 8)   \
    K(find_runs, "rrnW", 0, 1)         \
    K(unpack, "rnnw", 1, 2)             \
    K(pick_indices, "rnnnRW", 0, 4)     \
    K(pick_spans, "rnRW", 0, 1)         \
    K(find_values, "rnnrrRW", 0, 4)     \
    K(delta_numbers, "rnnW", 1, 2)      \
    K(join_prefixes, "RRrRWw", 0, 1)

#define DECLARE(name, format, work, weight) int64_t name(Arguments *in);
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
