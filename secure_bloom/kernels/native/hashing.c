/* Hashes of arrays of values. */
#include "xxh64.h"

void hash_fixed(const uint8_t *values, size_t width, size_t count, uint64_t *hashes) {
    if (width == 4) {
        for (size_t i = 0; i < count; i++) hashes[i] = hash_word4(read4(values + 4 * i));
    } else if (width == 8) {
        for (size_t i = 0; i < count; i++) hashes[i] = hash_word8(read8(values + 8 * i));
    } else {
        for (size_t i = 0; i < count; i++) hashes[i] = hash_bytes(values + width * i, width);
    }
}

/* hash_rows(rows, width, hashes): hash the values of `width` bytes each. */
static PyObject *hash_rows(PyObject *module, PyObject *const *args, Py_ssize_t nargs) {
    (void)module;
    Arguments in;
    if (!take_arguments(&in, "rnW", args, nargs)) return NULL;
    size_t size = size_of(&in, 0), count = count_of(&in, 1);
    uint64_t width = (uint64_t)in.numbers[0];
    if (in.numbers[0] < 0 || (width != 0 && count > size / width))
        return refuse_arguments(&in, "rows");
    PyThreadState *state = begin_long_call(size + 8 * count);
    hash_fixed(bytes_of(&in, 0), (size_t)width, count, numbers_of(&in, 1));
    end_long_call(state);
    release_arguments(&in);
    Py_RETURN_NONE;
}

PyMethodDef hash_methods[] = {
    {"hash_rows", (PyCFunction)(void (*)(void))hash_rows, METH_FASTCALL, NULL},
    {NULL, NULL, 0, NULL},
};
