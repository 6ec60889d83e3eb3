// Makes one system call of a process fail, come short, or be its last.
//
// Built by campaigns/preload.py and loaded with LD_PRELOAD, so that everything in the process goes
// through here: Python, its C modules, pyarrow.  Until it is armed it does nothing.  When armed it
// counts calls, and does what it was told at the one with the number it was told.
#define _GNU_SOURCE
#include <dirent.h>
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <sys/types.h>
#include <sys/uio.h>
#include <time.h>
#include <unistd.h>

enum { NONE, KILL_BEFORE, KILL_AFTER, FAIL_BEFORE, FAIL_AFTER, SHORT };
enum { MOST = 8192, LONGEST = 24 };

static atomic_int armed;
static atomic_long calls;
static long target;
static int action, error;
static char names[MOST][LONGEST];

void faults_arm(long at, int what, int code) {
    calls = 0;
    target = at;
    action = what;
    error = code;
    armed = 1;
}

long faults_disarm(void) {
    armed = 0;
    return calls;
}

const char *faults_name(long at) { return at < MOST ? names[at] : ""; }

static int step(const char *name) {
    if (!armed) return NONE;
    long at = atomic_fetch_add(&calls, 1);
    if (at < MOST) strncpy(names[at], name, LONGEST - 1);
    if (at != target) return NONE;
    if (action == KILL_BEFORE) kill(getpid(), SIGKILL);
    return action;
}

static long half(long length) { return length > 8192 ? length / 2 & ~4095L : (length + 1) / 2; }

#define WRAP_SHORT(type, name, params, args, failed, shorten)                       \
    type name params {                                                              \
        static type(*real) params;                                                  \
        if (!real) real = (type(*) params)dlsym(RTLD_NEXT, #name);                  \
        int what = step(#name);                                                     \
        if (what == FAIL_BEFORE) {                                                  \
            errno = error;                                                          \
            return failed;                                                          \
        }                                                                           \
        if (what == SHORT) {                                                        \
            shorten;                                                                \
        }                                                                           \
        type result = real args;                                                    \
        if (what == KILL_AFTER) kill(getpid(), SIGKILL);                            \
        if (what == FAIL_AFTER) {                                                   \
            errno = error;                                                          \
            return failed;                                                          \
        }                                                                           \
        return result;                                                              \
    }
#define WRAP(type, name, params, args) WRAP_SHORT(type, name, params, args, (type)-1, )

WRAP_SHORT(ssize_t, read, (int fd, void *to, size_t n), (fd, to, n), -1, n = half(n))
WRAP_SHORT(ssize_t, write, (int fd, const void *from, size_t n), (fd, from, n), -1, n = half(n))
WRAP_SHORT(ssize_t, pread, (int fd, void *to, size_t n, off_t at), (fd, to, n, at), -1, n = half(n))
WRAP_SHORT(ssize_t, pread64, (int fd, void *to, size_t n, off64_t at), (fd, to, n, at), -1, n = half(n))
WRAP_SHORT(ssize_t, pwrite64, (int fd, const void *from, size_t n, off64_t at), (fd, from, n, at), -1,
           n = half(n))
WRAP_SHORT(ssize_t, copy_file_range,
           (int in, off64_t *from, int out, off64_t *to, size_t n, unsigned flags),
           (in, from, out, to, n, flags), -1, n = half(n))
WRAP_SHORT(ssize_t, sendfile64, (int out, int in, off64_t *from, size_t n), (out, in, from, n), -1,
           n = half(n))
static _Thread_local struct iovec part;
#define ONE_SHORT_PART                                           \
    part = (struct iovec){parts->iov_base, half(parts->iov_len)}; \
    parts = &part;                                               \
    count = 1
WRAP_SHORT(ssize_t, writev, (int fd, const struct iovec *parts, int count), (fd, parts, count), -1,
           ONE_SHORT_PART)
WRAP_SHORT(ssize_t, pwritev64, (int fd, const struct iovec *parts, int count, off64_t at),
           (fd, parts, count, at), -1, ONE_SHORT_PART)
WRAP_SHORT(ssize_t, pwritev64v2, (int fd, const struct iovec *parts, int count, off64_t at, int flags),
           (fd, parts, count, at, flags), -1, ONE_SHORT_PART)

WRAP(off64_t, lseek64, (int fd, off64_t at, int whence), (fd, at, whence))
WRAP(int, fsync, (int fd), (fd))
WRAP(int, fdatasync, (int fd), (fd))
WRAP(int, ftruncate64, (int fd, off64_t size), (fd, size))
WRAP(int, truncate64, (const char *path, off64_t size), (path, size))
WRAP(int, rename, (const char *old, const char *new), (old, new))
WRAP(int, renameat, (int from, const char *old, int to, const char *new), (from, old, to, new))
WRAP(int, renameat2, (int from, const char *old, int to, const char *new, unsigned flags),
     (from, old, to, new, flags))
WRAP(int, link, (const char *old, const char *new), (old, new))
WRAP(int, linkat, (int from, const char *old, int to, const char *new, int flags),
     (from, old, to, new, flags))
WRAP(int, unlink, (const char *path), (path))
WRAP(int, unlinkat, (int folder, const char *path, int flags), (folder, path, flags))
WRAP(int, mkdir, (const char *path, mode_t mode), (path, mode))
WRAP(int, mkdirat, (int folder, const char *path, mode_t mode), (folder, path, mode))
WRAP(int, flock, (int fd, int operation), (fd, operation))
WRAP(int, fchmod, (int fd, mode_t mode), (fd, mode))
WRAP(int, fchown, (int fd, uid_t owner, gid_t group), (fd, owner, group))
WRAP(ssize_t, flistxattr, (int fd, char *list, size_t size), (fd, list, size))
WRAP(ssize_t, fgetxattr, (int fd, const char *name, void *value, size_t size), (fd, name, value, size))
WRAP(int, fsetxattr, (int fd, const char *name, const void *value, size_t size, int flags),
     (fd, name, value, size, flags))
WRAP(int, futimens, (int fd, const struct timespec times[2]), (fd, times))
WRAP(int, utimensat, (int folder, const char *path, const struct timespec times[2], int flags),
     (folder, path, times, flags))
WRAP(int, stat64, (const char *path, struct stat64 *to), (path, to))
WRAP(int, lstat64, (const char *path, struct stat64 *to), (path, to))
WRAP(int, fstat64, (int fd, struct stat64 *to), (fd, to))
WRAP(int, fstatat64, (int folder, const char *path, struct stat64 *to, int flags),
     (folder, path, to, flags))
WRAP(int, statvfs64, (const char *path, struct statvfs64 *to), (path, to))
WRAP(int, fstatvfs64, (int fd, struct statvfs64 *to), (fd, to))
WRAP(ssize_t, readlink, (const char *path, char *to, size_t size), (path, to, size))
WRAP(int, access, (const char *path, int mode), (path, mode))
WRAP_SHORT(DIR *, opendir, (const char *path), (path), NULL, )

// Linux gives the descriptor back whatever it reports.
int close(int fd) {
    static int (*real)(int);
    if (!real) real = (int (*)(int))dlsym(RTLD_NEXT, "close");
    int what = step("close");
    int result = real(fd);
    if (what == KILL_AFTER) kill(getpid(), SIGKILL);
    if (what != FAIL_BEFORE && what != FAIL_AFTER) return result;
    errno = error;
    return -1;
}

#define WITH_MODE                       \
    mode_t mode = 0;                    \
    if (flags & (O_CREAT | O_TMPFILE)) { \
        va_list more;                   \
        va_start(more, flags);          \
        mode = va_arg(more, mode_t);    \
        va_end(more);                   \
    }
static int opened(const char *name, int folder, const char *path, int flags, mode_t mode) {
    static int (*real)(int, const char *, int, ...);
    if (!real) real = (int (*)(int, const char *, int, ...))dlsym(RTLD_NEXT, "openat64");
    int what = step(name);
    if (what == FAIL_BEFORE) {
        errno = error;
        return -1;
    }
    int result = real(folder, path, flags, mode);
    if (what == KILL_AFTER) kill(getpid(), SIGKILL);
    if (what != FAIL_AFTER) return result;
    errno = error;
    return -1;
}
int open64(const char *path, int flags, ...) {
    WITH_MODE
    return opened("open64", AT_FDCWD, path, flags, mode);
}
int openat64(int folder, const char *path, int flags, ...) {
    WITH_MODE
    return opened("openat64", folder, path, flags, mode);
}
