/* What all subjects share: how Python calls a kernel, and reads of little-endian numbers.
 *
 * Rules: a function takes lengths and checks each read and write against them, allocates nothing
 * whose size comes from a file, keeps no global state, and returns a number below 0 for bytes that
 * it does not take, which Python then reads again and names the mistake in. */
#ifndef SECURE_BLOOM_NATIVE_H
#define SECURE_BLOOM_NATIVE_H

#include <Python.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

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

/* A function that Python calls.  `format` has a letter for each argument: r bytes to read, w bytes
 * to write, R and W the same for aligned numbers of 64 bits, n a signed number of 64 bits.
 * `run` calls nothing of Python: the GIL is released for it where the buffer `work` is large. */
typedef struct {
    PyMethodDef method;
    const char *format;
    int work;
    int64_t (*run)(Arguments *in);
} Kernel;

PyObject *call_kernel(PyObject *self, PyObject *const *args, Py_ssize_t count);

#define KERNEL(name, format, work) \
    {{#name, (PyCFunction)(void (*)(void))call_kernel, METH_FASTCALL, NULL}, format, work, name}
#define END_OF_KERNELS {{NULL, NULL, 0, NULL}, NULL, 0, NULL}

/* One table for each subject. */
extern Kernel building_kernels[];
extern Kernel filter_kernels[];
extern Kernel footer_kernels[];
extern Kernel hash_kernels[];
extern Kernel hudi_kernels[];
extern Kernel lookup_kernels[];
extern Kernel paimon_kernels[];
extern Kernel value_kernels[];

/* For functions that return more than a number: take the arguments, and release them after use. */
bool take_arguments(Arguments *in, const char *format, PyObject *const *args, Py_ssize_t count);
void release_arguments(Arguments *in);

static inline uint8_t *bytes_of(Arguments *in, int i) { return in->buffers[i].buf; }
static inline void *numbers_of(Arguments *in, int i) { return in->buffers[i].buf; }
static inline size_t size_of(const Arguments *in, int i) { return (size_t)in->buffers[i].len; }
static inline size_t count_of(const Arguments *in, int i) { return size_of(in, i) / 8; }

static inline uint32_t read4(const uint8_t *at) {
    uint32_t word;
    memcpy(&word, at, sizeof word);
#if defined(__BYTE_ORDER__) && __BYTE_ORDER__ == __ORDER_BIG_ENDIAN__
    word = __builtin_bswap32(word);
#endif
    return word;
}

static inline uint64_t read8(const uint8_t *at) {
    return (uint64_t)read4(at) | (uint64_t)read4(at + 4) << 32;
}

#endif
