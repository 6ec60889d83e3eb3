/* What all subjects of the extension share: checked arguments, reads of little-endian numbers, and
 * the functions that are chosen by the processor.
 *
 * Rules (docs/design/native.md): a function takes lengths and checks each read and write against
 * them, allocates nothing whose size comes from a file, keeps no global state, and returns an error
 * code that Python turns into a located error. */
#ifndef SECURE_BLOOM_NATIVE_H
#define SECURE_BLOOM_NATIVE_H

#include <Python.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#define MAX_ARGUMENTS 12
/* The GIL is released for calls on at least this many bytes: about 20 microseconds. */
#define LONG_CALL (64 * 1024)
#define BLOCK_SIZE 32

typedef void (*InsertHashes)(uint8_t *blocks, uint64_t z, const uint64_t *hashes, size_t count);
typedef void (*CheckHashes)(const uint8_t *blocks, uint64_t z, const uint64_t *hashes, size_t count,
                            uint8_t *found);

/* The functions that were chosen when the module was imported. */
typedef struct {
    InsertHashes insert_hashes;
    CheckHashes check_hashes;
    const char *processor;
} Kernels;

/* The arguments of a call: buffers and numbers, each in their order. */
typedef struct {
    Py_buffer buffers[MAX_ARGUMENTS];
    int64_t numbers[MAX_ARGUMENTS];
    int buffer_count;
    int number_count;
} Arguments;

/* Take the arguments by `format`: r bytes to read, w bytes to write, R and W the same for aligned
 * numbers of 64 bits, n a signed number of 64 bits.  All buffers are contiguous.  Returns false with
 * an exception set.  After true, the caller calls release_arguments. */
bool take_arguments(Arguments *in, const char *format, PyObject *const *args, Py_ssize_t count);
void release_arguments(Arguments *in);
/* Raise ValueError for arguments that do not fit each other, and return NULL. */
PyObject *refuse_arguments(Arguments *in, const char *message);
const Kernels *kernels_of(PyObject *module);

static inline const uint8_t *bytes_of(const Arguments *in, int i) { return in->buffers[i].buf; }
static inline uint8_t *writable(Arguments *in, int i) { return in->buffers[i].buf; }
static inline void *numbers_of(Arguments *in, int i) { return in->buffers[i].buf; }
static inline size_t count_of(const Arguments *in, int i) { return (size_t)in->buffers[i].len / 8; }
static inline size_t size_of(const Arguments *in, int i) { return (size_t)in->buffers[i].len; }

/* Release the GIL if the call takes long; end_long_call takes it back. */
static inline PyThreadState *begin_long_call(size_t bytes) {
    return bytes >= LONG_CALL ? PyEval_SaveThread() : NULL;
}

static inline void end_long_call(PyThreadState *state) {
    if (state != NULL) PyEval_RestoreThread(state);
}

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

/* Choose the functions of filter.c for this processor. */
void choose_filter_kernels(Kernels *kernels);

/* One table of methods for each subject; a table ends in an entry of zeros. */
extern PyMethodDef filter_methods[];
extern PyMethodDef hash_methods[];

#endif
