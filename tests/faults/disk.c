/*
 * A disk that fails when it is told to, preloaded into a process (LD_PRELOAD): files below a folder may grow by so many
 * bytes and no more, and writes and syncs can be made to fail. What the disk does is in a file that is mapped, so that
 * a test changes it while the process runs.
 *
 * FAULTS_CONTROL  that file: a `struct control`
 * FAULTS_FOLDER   files below it are on that disk
 *
 * As on a real disk, a write that fits in part is cut short, and the next one gives ENOSPC; overwriting what is there
 * needs no room; shortening a file gives some back. Not seen: writes through a shared mapping, fallocate.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <unistd.h>

/* The calls are passed on as system calls of 64-bit Linux, where an offset is one argument. */
#if !defined(__linux__) || !defined(__LP64__)
#error "made for 64-bit Linux"
#endif

/* What failing at the beginning of a file means: LMDB's meta pages are there. tests/tests/full_disk/faults.rs writes it, one number after the other. */
struct control {
    _Atomic int64_t room;                /* bytes by which all files together may still grow */
    _Atomic int64_t put_back_fails;      /* EIO from writes at the beginning of a file without O_DSYNC; nothing is written */
    _Atomic int64_t synced_writes_fail;  /* EIO from a descriptor with O_DSYNC, though all is written; 2: syncs too, from then on */
    _Atomic int64_t syncs_fail;          /* EIO from fsync and fdatasync of a file */
    _Atomic int64_t log_syncs_fail;      /* the same of the files log-0 and log-1 alone */
    _Atomic int64_t log_reads_fail;      /* EIO from reads of these files at a given place */
    _Atomic int64_t opens_fail;          /* this error from opening a file for writing, and from making one */
    _Atomic int64_t cuts_tables;         /* the next write that LMDB's file grows by is cut short, as if there were room for half */
    _Atomic int64_t direct_writes_fail;  /* EINVAL from a descriptor with O_DIRECT, as on a disk that has larger blocks; counts them */
};

static struct control *control;
static char folder[PATH_MAX];

__attribute__((constructor)) static void start(void) {
    const char *path = getenv("FAULTS_CONTROL"), *below = getenv("FAULTS_FOLDER");
    if (!path || !below || strlen(below) >= sizeof folder) return;
    strcpy(folder, below);
    int fd = open(path, O_RDWR | O_CLOEXEC);
    void *mapped = mmap(NULL, sizeof *control, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    if (fd < 0 || mapped == MAP_FAILED) abort();
    close(fd);
    control = mapped;
}

/* The path of a file on the disk goes to `path`. */
static int path_on_disk(int fd, struct stat *file, char path[PATH_MAX]) {
    char link[64];
    int saved = errno, is = 0;
    if (control && fstat(fd, file) == 0 && S_ISREG(file->st_mode)) {
        snprintf(link, sizeof link, "/proc/self/fd/%d", fd);
        ssize_t length = readlink(link, path, PATH_MAX - 1);
        is = length > 0 && (path[length] = 0, strncmp(path, folder, strlen(folder)) == 0);
    }
    errno = saved;
    return is;
}

static int is_on_disk(int fd, struct stat *file) {
    char path[PATH_MAX];
    return path_on_disk(fd, file, path);
}

/* Takes room for `wanted` bytes; how many there were. */
static int64_t take_room(int64_t wanted) {
    int64_t room = control->room, taken;
    do taken = room < 0 ? 0 : wanted < room ? wanted : room;
    while (!__atomic_compare_exchange_n((int64_t *)&control->room, &room, room - taken, 0, __ATOMIC_SEQ_CST, __ATOMIC_SEQ_CST));
    return taken;
}

static ssize_t fail(int error) {
    errno = error;
    return -1;
}

/* `offset` below zero stands for the descriptor's own place. */
static ssize_t write_by(int fd, const struct iovec *data, int count, off_t offset) {
    struct iovec pieces[IOV_MAX];
    struct stat file;
    char path[PATH_MAX];
    int64_t whole = 0, left;
    if (!path_on_disk(fd, &file, path) || count > IOV_MAX)
        return offset < 0 ? syscall(SYS_writev, fd, data, count) : syscall(SYS_pwritev, fd, data, count, offset, 0);
    int flags = fcntl(fd, F_GETFL);
    if (control->direct_writes_fail && flags & O_DIRECT) {
        control->direct_writes_fail++;
        return fail(EINVAL);
    }
    if (control->put_back_fails && !(flags & O_DSYNC) && offset >= 0 && offset < 2 * 4096) return fail(EIO);
    for (int i = 0; i < count; i++) whole += (int64_t)data[i].iov_len;
    off_t from = offset >= 0 ? offset : flags & O_APPEND ? file.st_size : lseek(fd, 0, SEEK_CUR);
    int64_t growth = from + whole - file.st_size;
    int64_t room_for = growth > 0 && strstr(path, "/data.mdb") && atomic_exchange(&control->cuts_tables, 0) ? growth / 2 : growth;
    int64_t taken = growth > 0 ? take_room(room_for) : 0;
    left = growth > 0 ? whole - (growth - taken) : whole;
    if (left <= 0 && whole > 0) {
        control->room += taken;
        return fail(ENOSPC);
    }
    int used = 0;
    for (; used < count && left > 0; used++) {
        pieces[used] = data[used];
        if ((int64_t)pieces[used].iov_len > left) pieces[used].iov_len = (size_t)left;
        left -= (int64_t)pieces[used].iov_len;
    }
    ssize_t written =
        offset < 0 ? syscall(SYS_writev, fd, pieces, used) : syscall(SYS_pwritev, fd, pieces, used, offset, 0);
    if (!control->synced_writes_fail || !(flags & O_DSYNC)) return written;
    if (control->synced_writes_fail == 2) control->syncs_fail = 1;
    return fail(EIO);
}

static ssize_t write_one(int fd, const void *data, size_t bytes, off_t offset) {
    struct iovec piece = {(void *)data, bytes};
    return write_by(fd, &piece, 1, offset);
}

ssize_t write(int fd, const void *data, size_t bytes) { return write_one(fd, data, bytes, -1); }
ssize_t pwrite(int fd, const void *data, size_t bytes, off_t offset) { return write_one(fd, data, bytes, offset); }
ssize_t pwrite64(int fd, const void *data, size_t bytes, off64_t offset) { return write_one(fd, data, bytes, offset); }
ssize_t writev(int fd, const struct iovec *data, int count) { return write_by(fd, data, count, -1); }
ssize_t pwritev(int fd, const struct iovec *data, int count, off_t offset) { return write_by(fd, data, count, offset); }
ssize_t pwritev64(int fd, const struct iovec *data, int count, off64_t offset) {
    return write_by(fd, data, count, offset);
}

int ftruncate64(int fd, off64_t length) {
    struct stat file;
    if (is_on_disk(fd, &file) && length < file.st_size) control->room += file.st_size - length;
    return (int)syscall(SYS_ftruncate, fd, length);
}

int ftruncate(int fd, off_t length) { return ftruncate64(fd, length); }

static ssize_t read_at(int fd, void *data, size_t bytes, off_t offset) {
    struct stat file;
    char path[PATH_MAX];
    if (control && control->log_reads_fail && path_on_disk(fd, &file, path) && strstr(path, "/log-")) return fail(EIO);
    return syscall(SYS_pread64, fd, data, bytes, offset);
}

ssize_t pread(int fd, void *data, size_t bytes, off_t offset) { return read_at(fd, data, bytes, offset); }
ssize_t pread64(int fd, void *data, size_t bytes, off64_t offset) { return read_at(fd, data, bytes, offset); }

/* Paths of the disk are absolute: the folder is. */
static int open_by(int at, const char *path, int flags, mode_t mode) {
    int writes = (flags & O_ACCMODE) != O_RDONLY || flags & O_CREAT;
    if (control && control->opens_fail && writes && strncmp(path, folder, strlen(folder)) == 0)
        return (int)fail((int)control->opens_fail);
    return (int)syscall(SYS_openat, at, path, flags, mode);
}

/* A mode is passed only where a file may be made. */
#define MODE_OF(flags)                                   \
    mode_t mode = 0;                                     \
    if ((flags) & (O_CREAT | O_TMPFILE)) {               \
        va_list rest;                                    \
        va_start(rest, flags);                           \
        mode = va_arg(rest, mode_t);                     \
        va_end(rest);                                    \
    }

int open(const char *path, int flags, ...) {
    MODE_OF(flags)
    return open_by(AT_FDCWD, path, flags, mode);
}

int open64(const char *path, int flags, ...) {
    MODE_OF(flags)
    return open_by(AT_FDCWD, path, flags, mode);
}

int openat(int at, const char *path, int flags, ...) {
    MODE_OF(flags)
    return open_by(at, path, flags, mode);
}

int openat64(int at, const char *path, int flags, ...) {
    MODE_OF(flags)
    return open_by(at, path, flags, mode);
}

static int sync_by(long call, int fd) {
    struct stat file;
    char path[PATH_MAX];
    if (path_on_disk(fd, &file, path) && (control->syncs_fail || (control->log_syncs_fail && strstr(path, "/log-"))))
        return (int)fail(EIO);
    return (int)syscall(call, fd);
}

int fsync(int fd) { return sync_by(SYS_fsync, fd); }
int fdatasync(int fd) { return sync_by(SYS_fdatasync, fd); }
