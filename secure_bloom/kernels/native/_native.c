/* The module secure_bloom.kernels._native, for the stable ABI of CPython 3.11: how Python's
 * arguments become those of a kernel. */
#include "filter.h"
#include "native.h"

/* The GIL is released for work on this many bytes of weight 1: about 20 microseconds. */
#define LONG_WORK (64 * 1024)

static bool take_buffer(Arguments *in, char kind, PyObject *argument) {
    bool is_written = kind == 'w' || kind == 'W', is_numbers = kind == 'R' || kind == 'W';
    Py_buffer *taken = &in->buffers[in->buffer_count];
    int flags = is_written ? PyBUF_C_CONTIGUOUS | PyBUF_WRITABLE : PyBUF_C_CONTIGUOUS;
    if (PyObject_GetBuffer(argument, taken, flags) != 0) return false;
    in->buffer_count++;
    if (!is_numbers || (taken->len % 8 == 0 && (uintptr_t)taken->buf % 8 == 0)) return true;
    PyErr_SetString(PyExc_ValueError, "wanted an aligned buffer of 64-bit numbers");
    return false;
}

static bool take_number(Arguments *in, PyObject *argument) {
    int64_t number = PyLong_AsLongLong(argument);
    in->numbers[in->number_count++] = number;
    return number != -1 || !PyErr_Occurred();
}

static void release_arguments(Arguments *in) {
    for (int i = 0; i < in->buffer_count; i++) PyBuffer_Release(&in->buffers[i]);
}

static bool take_arguments(Arguments *in, const char *format, PyObject *const *args,
                           Py_ssize_t count) {
    in->buffer_count = in->number_count = 0;
    Py_ssize_t wanted = (Py_ssize_t)strlen(format);
    if (wanted != count || wanted > MAX_ARGUMENTS) {
        PyErr_Format(PyExc_TypeError, "got %zd arguments, wanted %zd", count, wanted);
        return false;
    }
    for (Py_ssize_t i = 0; i < count; i++) {
        char kind = format[i];
        if (kind == 'n' ? take_number(in, args[i]) : take_buffer(in, kind, args[i])) continue;
        release_arguments(in);
        return false;
    }
    return true;
}

typedef struct {
    PyMethodDef method;
    const char *format;
    int work, weight;
    int64_t (*run)(Arguments *in);
} Kernel;

/* The GIL is released for a kernel where its buffer `work` is large for its weight. */
static PyObject *call_kernel(PyObject *self, PyObject *const *args, Py_ssize_t count) {
    Arguments in;
    const Kernel *kernel = PyCapsule_GetPointer(self, NULL);
    if (kernel == NULL || !take_arguments(&in, kernel->format, args, count)) return NULL;
    bool is_long = in.buffer_count > 0 && size_of(&in, kernel->work) >= LONG_WORK / (size_t)kernel->weight;
    PyThreadState *state = is_long ? PyEval_SaveThread() : NULL;
    int64_t answer = kernel->run(&in);
    if (state != NULL) PyEval_RestoreThread(state);
    release_arguments(&in);
    if (answer != REFUSED) return PyLong_FromLongLong(answer);
    return PyErr_Format(PyExc_ValueError, "%s: the arguments do not fit", kernel->method.ml_name);
}

#define KERNEL(name, format, work, weight) \
    {{#name, (PyCFunction)(void (*)(void))call_kernel, METH_FASTCALL, NULL}, format, work, weight, name},
static Kernel kernels[] = {KERNELS(KERNEL)};

static int add_kernel(PyObject *module, Kernel *kernel) {
    PyObject *self = PyCapsule_New(kernel, NULL, NULL);
    PyObject *function = self == NULL ? NULL : PyCFunction_New(&kernel->method, self);
    Py_XDECREF(self);
    int failed = PyModule_AddObjectRef(module, kernel->method.ml_name, function);
    Py_XDECREF(function);
    return failed;
}

static int execute(PyObject *module) {
    if (processor_name() == NULL) {
        PyErr_SetString(PyExc_ImportError, "this compiler's code needs a processor with AVX2");
        return -1;
    }
    for (size_t i = 0; i < sizeof kernels / sizeof *kernels; i++)
        if (add_kernel(module, kernels + i) < 0) return -1;
    if (PyModule_AddStringConstant(module, "processor", processor_name()) < 0) return -1;
    return PyModule_AddStringConstant(module, "sources", SOURCES);  // extension.py compares
}

static PyModuleDef_Slot slots[] = {{Py_mod_exec, (void *)(uintptr_t)execute}, {0, NULL}};

static struct PyModuleDef definition = {
    PyModuleDef_HEAD_INIT, "_native", NULL, 0, NULL, slots, NULL, NULL, NULL,
};

PyMODINIT_FUNC PyInit__native(void) { return PyModuleDef_Init(&definition); }
