/* The module secure_bloom.kernels._native: its arguments, its state and the tables of its methods.
 * Built for the stable ABI of CPython 3.11. */
#include "native.h"

#ifndef SOURCES
#define SOURCES ""
#endif

static bool take_buffer(Arguments *in, char kind, PyObject *argument) {
    bool is_written = kind == 'w' || kind == 'W', is_numbers = kind == 'R' || kind == 'W';
    Py_buffer *taken = &in->buffers[in->buffer_count];
    int flags = is_written ? PyBUF_C_CONTIGUOUS | PyBUF_WRITABLE : PyBUF_C_CONTIGUOUS;
    if (PyObject_GetBuffer(argument, taken, flags) != 0) return false;
    in->buffer_count++;
    if (is_numbers && (taken->len % 8 != 0 || (uintptr_t)taken->buf % 8 != 0)) {
        PyErr_SetString(PyExc_ValueError, "wanted an aligned buffer of 64-bit numbers");
        return false;
    }
    return true;
}

bool take_arguments(Arguments *in, const char *format, PyObject *const *args, Py_ssize_t count) {
    in->buffer_count = in->number_count = 0;
    Py_ssize_t wanted = (Py_ssize_t)strlen(format);
    if (wanted != count || wanted > MAX_ARGUMENTS) {
        PyErr_Format(PyExc_TypeError, "got %zd arguments, wanted %zd", count, wanted);
        return false;
    }
    for (Py_ssize_t i = 0; i < count; i++) {
        bool is_taken;
        if (format[i] == 'n') {
            int64_t number = PyLong_AsLongLong(args[i]);
            is_taken = number != -1 || !PyErr_Occurred();
            in->numbers[in->number_count++] = number;
        } else {
            is_taken = take_buffer(in, format[i], args[i]);
        }
        if (!is_taken) {
            release_arguments(in);
            return false;
        }
    }
    return true;
}

void release_arguments(Arguments *in) {
    for (int i = 0; i < in->buffer_count; i++) PyBuffer_Release(&in->buffers[i]);
    in->buffer_count = 0;
}

PyObject *refuse_arguments(Arguments *in, const char *message) {
    release_arguments(in);
    return PyErr_Format(PyExc_ValueError, "%s do not fit the other arguments", message);
}

const Kernels *kernels_of(PyObject *module) { return PyModule_GetState(module); }

static int execute(PyObject *module) {
    Kernels *kernels = PyModule_GetState(module);
    choose_filter_kernels(kernels);
    PyMethodDef *const subjects[] = {hash_methods, filter_methods};
    for (size_t i = 0; i < sizeof subjects / sizeof *subjects; i++)
        if (PyModule_AddFunctions(module, subjects[i]) < 0) return -1;
    if (PyModule_AddStringConstant(module, "processor", kernels->processor) < 0) return -1;
    return PyModule_AddStringConstant(module, "sources", SOURCES);
}

static PyModuleDef_Slot slots[] = {
    {Py_mod_exec, (void *)(uintptr_t)execute},
    {0, NULL},
};

static struct PyModuleDef definition = {
    PyModuleDef_HEAD_INIT, "_native", NULL, sizeof(Kernels), NULL, slots, NULL, NULL, NULL,
};

PyMODINIT_FUNC PyInit__native(void) { return PyModuleDef_Init(&definition); }
