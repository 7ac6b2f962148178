/*
 * A witness of what a process asks of its disk, preloaded into it (LD_PRELOAD): every change of a file, every change of
 * a folder's names, every sync, and the first bytes of everything sent over a socket, appended to one log in one order.
 * From that log a test rebuilds the files as a power cut could have left them.
 *
 * RECORDER_LOG     the log, opened for appending
 * RECORDER_FOLDER  names below it are recorded; a file is known by its inode, so no descriptor has to be followed
 * RECORDER_DIES_AT_SYNC  in the place of the so-manieth fdatasync of the files log-0 and log-1, as of each record of a
 *                        database's log, the process is killed; never without it
 * RECORDER_SLOW_SYNCED_WRITES  milliseconds that each write to a descriptor with O_DSYNC waits, as of LMDB's meta pages
 *
 * The order: a change is logged before it is made and its end after it was made, so that one whose end comes before a
 * sync's beginning was complete when the sync began. A sync's end is logged after it returned, what is sent before it
 * is sent: the log never shows a sync earlier or an answer later than it was.
 *
 * Not seen: writes through a shared mapping, io_uring, copy_file_range, fallocate, links. The test compares the files
 * at the end with what the log says of them, so that none of these can pass unnoticed. A sync by other calls (msync,
 * sync_file_range, syncfs) is not counted, which makes the test stricter, never laxer.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <pthread.h>
#include <signal.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <unistd.h>

/* The calls are passed on as system calls of 64-bit Linux, where an offset is one argument. */
#if !defined(__linux__) || !defined(__LP64__)
#error "made for 64-bit Linux"
#endif

/* The kinds of records; tests/tests/power_cut/log.rs reads them. */
enum kind { END = 0, WRITE = 1, TRUNCATE = 2, SYNC = 3, CREATE = 4, FOLDER = 5, RENAME = 6, REMOVE = 7, SENT = 8 };

/* What a record starts with; `bytes` bytes follow: what was written, or paths, each ended by a zero. */
struct record {
    uint32_t kind;
    uint32_t synced;  /* WRITE: whether the descriptor is O_SYNC or O_DSYNC */
    uint64_t number;  /* ties an END to its beginning */
    uint64_t device;
    uint64_t inode;
    int64_t offset;   /* WRITE: where; TRUNCATE: the new length */
    int64_t result;   /* END: what the call returned */
    uint64_t bytes;
};

/* Enough of an answer to tell what it acknowledges. */
enum { SENT_BYTES_MAX = 64 * 1024 };

static int log_fd = -1;
static char folder[PATH_MAX];
static size_t folder_length;
static uint64_t last_number;
static _Atomic long syncs_left = -1;
static long synced_writes_wait;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

__attribute__((constructor)) static void start(void) {
    const char *log = getenv("RECORDER_LOG"), *below = getenv("RECORDER_FOLDER");
    if (!log || !below || strlen(below) >= sizeof folder) return;
    strcpy(folder, below);
    folder_length = strlen(folder);
    const char *dies = getenv("RECORDER_DIES_AT_SYNC");
    if (dies) syncs_left = atol(dies);
    const char *slow = getenv("RECORDER_SLOW_SYNCED_WRITES");
    if (slow) synced_writes_wait = atol(slow);
    log_fd = (int)syscall(SYS_openat, AT_FDCWD, log, O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC, 0600);
}

/* A log with a hole proves nothing. */
static void append(const struct iovec *pieces, int count) {
    ssize_t whole = 0;
    for (int i = 0; i < count; i++) whole += (ssize_t)pieces[i].iov_len;
    if (syscall(SYS_writev, log_fd, pieces, count) != whole) abort();
}

/* Logs the beginning of a change and gives its number; 0 stands for "not recorded". */
static uint64_t begin(struct record *record, const struct iovec *data, int count) {
    struct iovec pieces[IOV_MAX];
    int saved = errno;
    if (count >= IOV_MAX) abort();
    pieces[0] = (struct iovec){record, sizeof *record};
    record->bytes = 0;
    for (int i = 0; i < count; i++) {
        pieces[i + 1] = data[i];
        record->bytes += data[i].iov_len;
    }
    pthread_mutex_lock(&lock);
    record->number = ++last_number;
    append(pieces, count + 1);
    pthread_mutex_unlock(&lock);
    errno = saved;
    return record->number;
}

static long end(uint64_t number, long result, const struct stat *made) {
    struct record record = {.kind = END, .number = number, .result = result};
    struct iovec piece = {&record, sizeof record};
    int saved = errno;
    if (!number) return result;
    if (made) record.device = made->st_dev, record.inode = made->st_ino;
    pthread_mutex_lock(&lock);
    append(&piece, 1);
    pthread_mutex_unlock(&lock);
    errno = saved;
    return result;
}

/* --- content: write, truncate, sync, send --------------------------------------------------------------------- */

static int is_kind(int fd, mode_t kind, struct stat *found) {
    int saved = errno, is = log_fd >= 0 && fstat(fd, found) == 0 && (found->st_mode & S_IFMT) == kind;
    errno = saved;
    return is;
}

/* Before bytes go to a descriptor: a write where it is a file, an answer where it is a socket. `offset` below zero
 * stands for the descriptor's own place. */
static uint64_t begin_write(int fd, const struct iovec *data, int count, off_t offset) {
    struct stat file;
    if (is_kind(fd, S_IFREG, &file)) {
        int flags = fcntl(fd, F_GETFL);
        if (offset < 0) offset = flags & O_APPEND ? file.st_size : lseek(fd, 0, SEEK_CUR);
        struct record record = {.kind = WRITE, .device = file.st_dev, .inode = file.st_ino, .offset = offset};
        record.synced = (flags & O_DSYNC) != 0; /* O_SYNC has this bit too */
        return begin(&record, data, count);
    }
    if (count > 0 && is_kind(fd, S_IFSOCK, &file)) {
        struct record record = {.kind = SENT, .inode = file.st_ino};
        struct iovec pieces[IOV_MAX];
        size_t room = SENT_BYTES_MAX;
        int used = 0;
        for (; used < count && used < IOV_MAX - 1 && room > 0; used++) {
            pieces[used] = data[used];
            if (pieces[used].iov_len > room) pieces[used].iov_len = room;
            room -= pieces[used].iov_len;
        }
        begin(&record, pieces, used);
    }
    return 0;
}

static uint64_t begin_one(int fd, const void *data, size_t bytes, off_t offset) {
    struct iovec piece = {(void *)data, bytes};
    return begin_write(fd, &piece, 1, offset);
}

ssize_t write(int fd, const void *data, size_t bytes) {
    uint64_t number = begin_one(fd, data, bytes, -1);
    return end(number, syscall(SYS_write, fd, data, bytes), NULL);
}

ssize_t pwrite64(int fd, const void *data, size_t bytes, off64_t offset) {
    if (synced_writes_wait && fcntl(fd, F_GETFL) & O_DSYNC) usleep((useconds_t)synced_writes_wait * 1000);
    uint64_t number = begin_one(fd, data, bytes, offset);
    return end(number, syscall(SYS_pwrite64, fd, data, bytes, offset), NULL);
}

ssize_t pwrite(int fd, const void *data, size_t bytes, off_t offset) {
    return pwrite64(fd, data, bytes, offset);
}

ssize_t writev(int fd, const struct iovec *data, int count) {
    uint64_t number = begin_write(fd, data, count, -1);
    return end(number, syscall(SYS_writev, fd, data, count), NULL);
}

ssize_t pwritev64(int fd, const struct iovec *data, int count, off64_t offset) {
    uint64_t number = begin_write(fd, data, count, offset);
    return end(number, syscall(SYS_pwritev, fd, data, count, offset, 0), NULL);
}

ssize_t pwritev(int fd, const struct iovec *data, int count, off_t offset) {
    return pwritev64(fd, data, count, offset);
}

ssize_t sendto(int fd, const void *data, size_t bytes, int flags, const struct sockaddr *to, socklen_t length) {
    begin_one(fd, data, bytes, 0);
    return syscall(SYS_sendto, fd, data, bytes, flags, to, length);
}

ssize_t send(int fd, const void *data, size_t bytes, int flags) {
    return sendto(fd, data, bytes, flags, NULL, 0);
}

ssize_t sendmsg(int fd, const struct msghdr *message, int flags) {
    begin_write(fd, message->msg_iov, (int)message->msg_iovlen, 0);
    return syscall(SYS_sendmsg, fd, message, flags);
}

static uint64_t begin_truncate(const struct stat *file, off_t length) {
    struct record record = {.kind = TRUNCATE, .device = file->st_dev, .inode = file->st_ino, .offset = length};
    return begin(&record, NULL, 0);
}

int ftruncate64(int fd, off64_t length) {
    struct stat file;
    uint64_t number = is_kind(fd, S_IFREG, &file) ? begin_truncate(&file, length) : 0;
    return (int)end(number, syscall(SYS_ftruncate, fd, length), NULL);
}

int ftruncate(int fd, off_t length) {
    return ftruncate64(fd, length);
}

/* A file's sync counts for its bytes and length, a folder's for its names. */
static int sync_by(long call, int fd) {
    struct stat file;
    uint64_t number = 0;
    if (is_kind(fd, S_IFREG, &file) || is_kind(fd, S_IFDIR, &file)) {
        struct record record = {.kind = SYNC, .device = file.st_dev, .inode = file.st_ino};
        number = begin(&record, NULL, 0);
    }
    return (int)end(number, syscall(call, fd), NULL);
}

int fsync(int fd) {
    return sync_by(SYS_fsync, fd);
}

int fdatasync(int fd) {
    char link[64], path[PATH_MAX];
    snprintf(link, sizeof link, "/proc/self/fd/%d", fd);
    ssize_t length = syncs_left > 0 ? readlink(link, path, sizeof path - 1) : 0;
    path[length > 0 ? length : 0] = 0;
    if (strstr(path, "/log-") && --syncs_left == 0) kill(getpid(), SIGKILL);
    return sync_by(SYS_fdatasync, fd);
}

/* --- names: create, make a folder, rename, remove ------------------------------------------------------------- */

/* The whole path of a name below an open folder; whether it is one to record. */
static int whole_path(int at, const char *path, char whole[PATH_MAX]) {
    int saved = errno, length = 0;
    if (log_fd < 0 || !path) return 0;
    if (path[0] == '/') {
        length = snprintf(whole, PATH_MAX, "%s", path);
    } else {
        char link[64], below[PATH_MAX];
        if (at == AT_FDCWD) strcpy(link, "/proc/self/cwd");
        else snprintf(link, sizeof link, "/proc/self/fd/%d", at);
        ssize_t found = readlink(link, below, sizeof below);
        if (found > 0) length = snprintf(whole, PATH_MAX, "%.*s/%s", (int)found, below, path);
    }
    errno = saved;
    return length > 0 && length < PATH_MAX && strncmp(whole, folder, folder_length) == 0;
}

static uint64_t begin_name(enum kind kind, const char *first, const char *second) {
    struct record record = {.kind = kind};
    struct iovec pieces[2] = {{(void *)first, strlen(first) + 1}};
    if (second) pieces[1] = (struct iovec){(void *)second, strlen(second) + 1};
    return begin(&record, pieces, second ? 2 : 1);
}

/* Opening changes something where it makes a file, or empties one that is there. */
static int open_by(int at, const char *path, int flags, mode_t mode) {
    char whole[PATH_MAX];
    struct stat file;
    uint64_t number = 0;
    int fd, saved = errno, creates = 0;
    if ((flags & (O_CREAT | O_TRUNC)) && whole_path(at, path, whole)) {
        if (stat(whole, &file) == 0) number = flags & O_TRUNC ? begin_truncate(&file, 0) : 0;
        else if (flags & O_CREAT) number = begin_name(CREATE, whole, NULL), creates = 1;
        errno = saved;
    }
    fd = (int)syscall(SYS_openat, at, path, flags, mode);
    return (int)end(number, fd, creates && fd >= 0 && fstat(fd, &file) == 0 ? &file : NULL);
}

/* The mode is there only where a file may be made; reading it otherwise gives a number nobody looks at. */
#define OPEN_AT(at)                                     \
    va_list rest;                                       \
    va_start(rest, flags);                              \
    mode_t mode = (mode_t)va_arg(rest, unsigned int);   \
    va_end(rest);                                       \
    return open_by(at, path, flags, mode)


int open(const char *path, int flags, ...) { OPEN_AT(AT_FDCWD); }
int open64(const char *path, int flags, ...) { OPEN_AT(AT_FDCWD); }
int openat(int at, const char *path, int flags, ...) { OPEN_AT(at); }
int openat64(int at, const char *path, int flags, ...) { OPEN_AT(at); }

int creat(const char *path, mode_t mode) {
    return open_by(AT_FDCWD, path, O_CREAT | O_WRONLY | O_TRUNC, mode);
}

int creat64(const char *path, mode_t mode) {
    return creat(path, mode);
}

int mkdirat(int at, const char *path, mode_t mode) {
    char whole[PATH_MAX];
    struct stat file;
    uint64_t number = whole_path(at, path, whole) ? begin_name(FOLDER, whole, NULL) : 0;
    long result = syscall(SYS_mkdirat, at, path, mode);
    return (int)end(number, result, number && result == 0 && stat(whole, &file) == 0 ? &file : NULL);
}

int mkdir(const char *path, mode_t mode) {
    return mkdirat(AT_FDCWD, path, mode);
}

int renameat2(int from_at, const char *from, int to_at, const char *to, unsigned int flags) {
    char whole_from[PATH_MAX], whole_to[PATH_MAX];
    int below = whole_path(from_at, from, whole_from) & whole_path(to_at, to, whole_to);
    uint64_t number = below ? begin_name(RENAME, whole_from, whole_to) : 0;
    return (int)end(number, syscall(SYS_renameat2, from_at, from, to_at, to, flags), NULL);
}

int renameat(int from_at, const char *from, int to_at, const char *to) {
    return renameat2(from_at, from, to_at, to, 0);
}

int rename(const char *from, const char *to) {
    return renameat2(AT_FDCWD, from, AT_FDCWD, to, 0);
}

int unlinkat(int at, const char *path, int flags) {
    char whole[PATH_MAX];
    uint64_t number = whole_path(at, path, whole) ? begin_name(REMOVE, whole, NULL) : 0;
    return (int)end(number, syscall(SYS_unlinkat, at, path, flags), NULL);
}

int unlink(const char *path) {
    return unlinkat(AT_FDCWD, path, 0);
}

int rmdir(const char *path) {
    return unlinkat(AT_FDCWD, path, AT_REMOVEDIR);
}

int remove(const char *path) {
    int saved = errno, result = unlink(path);
    if (result == 0 || (errno != EISDIR && errno != EPERM)) return result;
    errno = saved;
    return rmdir(path);
}
