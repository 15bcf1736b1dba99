/*
 * Disk faults: a library that stands between a program and its files (LD_PRELOAD), counts the calls
 * that change files below one directory, and lets one of them go wrong.
 *
 * It keeps, for each file, what every write since the last sync has replaced, and for each directory
 * the names that were made, moved and removed since its last sync. A power cut at call N undoes a
 * part of that and ends the process with code 77. Nothing waits for the real disk: a sync only forgets
 * what could be undone.
 *
 *   RAILBUS_FAULT_ROOT    the directory; files elsewhere, and RocksDB's LOG, are left alone
 *   RAILBUS_FAULT         none, cut-tail, cut-pages, kill, eio, enospc or short
 *   RAILBUS_FAULT_AT      the number of the call, from 1
 *   RAILBUS_FAULT_SEED    decides what a power cut takes
 *   RAILBUS_FAULT_COUNT   a file of 8 bytes that tells how many calls there were
 *   RAILBUS_FAULT_LIES    file: syncs of files do nothing; directory: those of directories
 *
 * cut-tail: of each file a prefix of its writes is kept, the last of them in part.
 * cut-pages: of each file any of the unsynced pages are kept.
 * Either way each directory keeps a prefix of its changes. Truncation and new directories count as
 * durable at once.
 */
#define _GNU_SOURCE
#include <dlfcn.h>
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
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/uio.h>
#include <unistd.h>

#define PAGE 4096
#define CUT_CODE 77
#define MAX_FD 65536

enum fault { NONE, CUT_TAIL, CUT_PAGES, KILL, FAIL_EIO, FAIL_ENOSPC, SHORT };

/* What a piece of a write, within one page, has replaced. */
struct piece {
    off_t at;
    uint32_t len, had;
    off_t size_before;
    unsigned char *old;
};

struct file {
    dev_t dev;
    ino_t ino;
    int fd; /* our own, while something can be undone */
    size_t count, room;
    struct piece *pieces;
    struct file *next;
};

enum change_kind { MADE, MOVED, REMOVED };

struct change {
    enum change_kind kind;
    char *name, *from, *saved;
};

struct directory {
    dev_t dev;
    ino_t ino;
    size_t count, room;
    struct change *changes;
    struct directory *next;
};

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static char root[PATH_MAX];
static char saved_root[PATH_MAX + 16];
static size_t root_len;
static enum fault fault;
static uint64_t fault_at, seed, calls, saved_names;
static volatile uint64_t *shown_calls;
static int lies_about_files, lies_about_directories;
static unsigned char tracked[MAX_FD]; /* 1: a file, 2: a directory */
static struct file *files;
static struct directory *directories;

#define REAL(name, type, ...) \
    static type (*real_##name)(__VA_ARGS__); \
    if (!real_##name) real_##name = (type (*)(__VA_ARGS__))dlsym(RTLD_NEXT, #name)

static ssize_t plain_pread(int fd, void *to, size_t len, off_t at) {
    REAL(pread64, ssize_t, int, void *, size_t, off_t);
    return real_pread64(fd, to, len, at);
}

static ssize_t plain_pwrite(int fd, const void *from, size_t len, off_t at) {
    REAL(pwrite64, ssize_t, int, const void *, size_t, off_t);
    return real_pwrite64(fd, from, len, at);
}

static int plain_open(const char *path, int flags, mode_t mode) {
    REAL(open64, int, const char *, int, ...);
    return real_open64(path, flags, mode);
}

static int plain_rename(const char *from, const char *to) {
    REAL(rename, int, const char *, const char *);
    return real_rename(from, to);
}

static int plain_unlink(const char *path) {
    REAL(unlink, int, const char *);
    return real_unlink(path);
}

static int plain_link(const char *from, const char *to) {
    REAL(link, int, const char *, const char *);
    return real_link(from, to);
}

static int plain_ftruncate(int fd, off_t size) {
    REAL(ftruncate64, int, int, off_t);
    return real_ftruncate64(fd, size);
}

/* splitmix64 */
static uint64_t roll(uint64_t below) {
    uint64_t z = seed += 0x9e3779b97f4a7c15;
    z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9;
    z = (z ^ z >> 27) * 0x94d049bb133111eb;
    z ^= z >> 31;
    return below ? z % below : 0;
}

__attribute__((constructor)) static void begin(void) {
    static const char *names[] = {"none", "cut-tail", "cut-pages", "kill", "eio", "enospc", "short"};
    const char *at = getenv("RAILBUS_FAULT_AT"), *from = getenv("RAILBUS_FAULT_SEED");
    const char *name = getenv("RAILBUS_FAULT"), *where = getenv("RAILBUS_FAULT_ROOT");
    const char *lies = getenv("RAILBUS_FAULT_LIES"), *count = getenv("RAILBUS_FAULT_COUNT");
    if (!where || !name || strlen(where) >= PATH_MAX) return;
    for (int i = 0; i < 7; i++) if (!strcmp(name, names[i])) fault = i;
    fault_at = at ? strtoull(at, NULL, 10) : 0;
    seed = from ? strtoull(from, NULL, 10) : 0;
    lies_about_files = lies && !strcmp(lies, "file");
    lies_about_directories = lies && !strcmp(lies, "directory");
    if (count) {
        int fd = plain_open(count, O_RDWR | O_CREAT | O_CLOEXEC, 0600);
        if (fd >= 0 && !plain_ftruncate(fd, 8)) {
            void *map = mmap(NULL, 8, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
            if (map != MAP_FAILED) shown_calls = map;
        }
        if (fd >= 0) close(fd);
    }
    strcpy(root, where);
    snprintf(saved_root, sizeof saved_root, "%s.saved", root);
    mkdir(saved_root, 0700);
    root_len = strlen(root);
}

/* The absolute path in `to`; whether it lies below the root. */
static int is_ours(int at, const char *path, char *to) {
    if (!root_len || !path) return 0;
    if (path[0] == '/') {
        if (strlen(path) >= PATH_MAX) return 0;
        strcpy(to, path);
    } else {
        char link[64], base[PATH_MAX];
        snprintf(link, sizeof link, at == AT_FDCWD ? "/proc/self/cwd" : "/proc/self/fd/%d", at);
        ssize_t len = readlink(link, base, sizeof base - 1);
        if (len < 0 || len + strlen(path) + 2 > PATH_MAX) return 0;
        base[len] = 0;
        memcpy(to, base, len);
        to[len] = '/';
        strcpy(to + len + 1, path);
    }
    if (strncmp(to, root, root_len) || (to[root_len] && to[root_len] != '/')) return 0;
    const char *name = strrchr(to, '/');
    return strncmp(name + 1, "LOG", 3) != 0;
}

static void forget_file(struct file *file) {
    for (size_t i = 0; i < file->count; i++) free(file->pieces[i].old);
    free(file->pieces);
    file->pieces = NULL;
    file->count = file->room = 0;
    if (file->fd >= 0) close(file->fd);
    file->fd = -1;
}

static struct file *file_of(int fd) {
    struct stat stat;
    if (fstat(fd, &stat)) return NULL;
    for (struct file *file = files; file; file = file->next)
        if (file->dev == stat.st_dev && file->ino == stat.st_ino) return file;
    struct file *file = calloc(1, sizeof *file);
    file->dev = stat.st_dev;
    file->ino = stat.st_ino;
    file->fd = -1;
    file->next = files;
    return files = file;
}

static struct directory *directory_of(const struct stat *stat) {
    for (struct directory *it = directories; it; it = it->next)
        if (it->dev == stat->st_dev && it->ino == stat->st_ino) return it;
    struct directory *it = calloc(1, sizeof *it);
    it->dev = stat->st_dev;
    it->ino = stat->st_ino;
    it->next = directories;
    return directories = it;
}

/* Notes what a write of `len` bytes at `at` will replace. */
static void note_write(int fd, off_t at, size_t len) {
    struct file *file = file_of(fd);
    struct stat stat;
    if (!file || fstat(fd, &stat)) return;
    if (file->fd < 0) {
        char path[64];
        snprintf(path, sizeof path, "/proc/self/fd/%d", fd);
        file->fd = plain_open(path, O_RDWR | O_CLOEXEC, 0);
        if (file->fd < 0) return;
    }
    while (len) {
        size_t left = PAGE - at % PAGE, part = len < left ? len : left;
        if (file->count == file->room) {
            file->room = file->room ? 2 * file->room : 16;
            file->pieces = realloc(file->pieces, file->room * sizeof *file->pieces);
        }
        struct piece *piece = &file->pieces[file->count++];
        *piece = (struct piece){.at = at, .len = part, .size_before = stat.st_size, .old = malloc(part)};
        ssize_t had = plain_pread(file->fd, piece->old, part, at);
        piece->had = had > 0 ? had : 0;
        at += part;
        len -= part;
    }
}

static void put_back(struct file *file, const struct piece *piece) {
    static const unsigned char zeros[PAGE];
    if (piece->had && plain_pwrite(file->fd, piece->old, piece->had, piece->at) < 0) return;
    if (piece->had < piece->len)
        (void)!plain_pwrite(file->fd, zeros, piece->len - piece->had, piece->at + piece->had);
}

static void set_size(struct file *file, off_t size) {
    struct stat stat;
    if (!fstat(file->fd, &stat) && stat.st_size > size) (void)!plain_ftruncate(file->fd, size);
}

/* Keeps a prefix of the writes, and of the next one a part. */
static void lose_tail(struct file *file) {
    size_t kept = roll(file->count + 1);
    off_t size = -1;
    for (size_t i = file->count; i > kept; i--) {
        struct piece piece = file->pieces[i - 1];
        size = piece.size_before;
        if (i - 1 == kept) {
            uint32_t part = roll(piece.len);
            piece.at += part;
            piece.len -= part;
            piece.old += part;
            piece.had = piece.had > part ? piece.had - part : 0;
            if (size < piece.at) size = piece.at;
        }
        put_back(file, &piece);
    }
    for (size_t i = 0; i < kept && size >= 0; i++) {
        off_t end = file->pieces[i].at + file->pieces[i].len;
        if (size < end) size = end;
    }
    if (size >= 0) set_size(file, size);
}

/* Keeps any of the pages. */
static void lose_pages(struct file *file) {
    uint64_t dice = roll(0) ^ seed;
    off_t size = file->count ? file->pieces[0].size_before : 0;
    for (size_t i = file->count; i > 0; i--) {
        struct piece *piece = &file->pieces[i - 1];
        uint64_t coin = ((uint64_t)piece->at / PAGE + dice) * 0x9e3779b97f4a7c15;
        if (coin >> 63) put_back(file, piece);
        else if (size < piece->at + (off_t)piece->len) size = piece->at + piece->len;
    }
    if (roll(2)) set_size(file, size);
}

static void lose_writes(struct file *file) {
    if (file->fd < 0) return;
    if (fault == CUT_TAIL) lose_tail(file);
    else lose_pages(file);
    forget_file(file);
}

static void forget_changes(struct directory *directory) {
    for (size_t i = 0; i < directory->count; i++) {
        struct change *change = &directory->changes[i];
        if (change->saved) plain_unlink(change->saved);
        free(change->name);
        free(change->from);
        free(change->saved);
    }
    directory->count = 0;
}

static void undo_change(const struct change *change) {
    if (change->kind == MADE) plain_unlink(change->name);
    if (change->kind == MOVED) plain_rename(change->name, change->from);
    if (change->saved) plain_rename(change->saved, change->name);
}

static void lose_changes(struct directory *directory) {
    size_t kept = roll(directory->count + 1);
    for (size_t i = directory->count; i > kept; i--) undo_change(&directory->changes[i - 1]);
}

static void cut_the_power(void) {
    for (struct file *file = files; file; file = file->next) lose_writes(file);
    for (struct directory *it = directories; it; it = it->next) lose_changes(it);
    _exit(CUT_CODE);
}

/* Another name for the file at `path`, which stays when that one goes. */
static char *save(const char *path) {
    char name[PATH_MAX + 64];
    snprintf(name, sizeof name, "%s/%d-%llu", saved_root, getpid(), (unsigned long long)++saved_names);
    return plain_link(path, name) ? NULL : strdup(name);
}

static void note_change(enum change_kind kind, const char *name, const char *from, char *saved) {
    char parent[PATH_MAX];
    struct stat status;
    strcpy(parent, name);
    *strrchr(parent, '/') = 0;
    if (stat(parent, &status)) return;
    struct directory *directory = directory_of(&status);
    if (directory->count == directory->room) {
        directory->room = directory->room ? 2 * directory->room : 16;
        directory->changes = realloc(directory->changes, directory->room * sizeof *directory->changes);
    }
    directory->changes[directory->count++] =
        (struct change){kind, strdup(name), from ? strdup(from) : NULL, saved};
}

/* Counts a call; whether it is the one that goes wrong. Before it, a power cut and a kill happen. */
static int goes_wrong(void) {
    uint64_t call = ++calls;
    if (shown_calls) *shown_calls = call;
    if (call != fault_at) return 0;
    if (fault == CUT_TAIL || fault == CUT_PAGES) cut_the_power();
    if (fault == KILL) raise(SIGKILL);
    return fault != NONE;
}

static int fails(void) {
    if (!goes_wrong()) return 0;
    if (fault == SHORT) return 0;
    errno = fault == FAIL_EIO ? EIO : ENOSPC;
    return 1;
}

static void let_go(void) {
    int error = errno;
    pthread_mutex_unlock(&lock);
    errno = error;
}

static int kind_of(int fd) {
    return fd >= 0 && fd < MAX_FD ? tracked[fd] : 0;
}

static int open_ours(const char *full, int at, const char *path, int flags, mode_t mode) {
    REAL(openat64, int, int, const char *, int, ...);
    struct stat before;
    int was_there = !stat(full, &before);
    int changes = (flags & O_CREAT && !was_there) || flags & O_TRUNC;
    pthread_mutex_lock(&lock);
    int fd = changes && fails() ? -1 : real_openat64(at, path, flags, mode);
    if (fd >= 0 && fd < MAX_FD) {
        struct stat status;
        tracked[fd] = !fstat(fd, &status) && S_ISDIR(status.st_mode) ? 2 : 1;
        if (flags & O_TRUNC && was_there) forget_file(file_of(fd));
        if (flags & O_CREAT && !was_there) {
            forget_file(file_of(fd));
            note_change(MADE, full, NULL, NULL);
        }
    }
    let_go();
    return fd;
}

static int open_any(int at, const char *path, int flags, mode_t mode) {
    REAL(openat64, int, int, const char *, int, ...);
    char full[PATH_MAX];
    if (is_ours(at, path, full)) return open_ours(full, at, path, flags, mode);
    int fd = real_openat64(at, path, flags, mode);
    if (fd >= 0 && fd < MAX_FD) tracked[fd] = 0;
    return fd;
}

#define MODE(flags) \
    mode_t mode = 0; \
    if ((flags) & (O_CREAT | __O_TMPFILE)) { \
        va_list rest; \
        va_start(rest, flags); \
        mode = va_arg(rest, mode_t); \
        va_end(rest); \
    }

int open64(const char *path, int flags, ...) { MODE(flags); return open_any(AT_FDCWD, path, flags, mode); }
int open(const char *path, int flags, ...) { MODE(flags); return open_any(AT_FDCWD, path, flags, mode); }
int openat64(int at, const char *path, int flags, ...) { MODE(flags); return open_any(at, path, flags, mode); }
int openat(int at, const char *path, int flags, ...) { MODE(flags); return open_any(at, path, flags, mode); }

int close(int fd) {
    REAL(close, int, int);
    if (fd >= 0 && fd < MAX_FD) tracked[fd] = 0;
    return real_close(fd);
}

/* How much of a write is done by the call that goes wrong: half of it, in whole pages if it has any. */
static size_t half_of(size_t len) {
    return len >= 2 * PAGE ? len / 2 / PAGE * PAGE : len >= PAGE ? len : len > 1 ? len / 2 : len;
}

static ssize_t write_at(int fd, const void *from, size_t len, off_t at) {
    if (goes_wrong()) {
        if (fault != SHORT) {
            errno = fault == FAIL_EIO ? EIO : ENOSPC;
            return -1;
        }
        len = half_of(len);
    }
    note_write(fd, at, len);
    return plain_pwrite(fd, from, len, at);
}

ssize_t pwrite64(int fd, const void *from, size_t len, off_t at) {
    if (kind_of(fd) != 1) return plain_pwrite(fd, from, len, at);
    pthread_mutex_lock(&lock);
    ssize_t done = write_at(fd, from, len, at);
    let_go();
    return done;
}

ssize_t pwrite(int fd, const void *from, size_t len, off_t at) { return pwrite64(fd, from, len, at); }

/* Where the next write to a file goes. */
static off_t position_of(int fd) {
    struct stat status;
    if (fcntl(fd, F_GETFL) & O_APPEND) return fstat(fd, &status) ? 0 : status.st_size;
    return lseek(fd, 0, SEEK_CUR);
}

ssize_t write(int fd, const void *from, size_t len) {
    REAL(write, ssize_t, int, const void *, size_t);
    if (kind_of(fd) != 1) return real_write(fd, from, len);
    pthread_mutex_lock(&lock);
    ssize_t done = -1;
    if (goes_wrong()) {
        if (fault == SHORT) len = half_of(len);
        else errno = fault == FAIL_EIO ? EIO : ENOSPC;
    }
    if (calls != fault_at || fault == SHORT || fault == NONE) {
        note_write(fd, position_of(fd), len);
        done = real_write(fd, from, len);
    }
    let_go();
    return done;
}

ssize_t pwritev64(int fd, const struct iovec *parts, int count, off_t at) {
    REAL(pwritev64, ssize_t, int, const struct iovec *, int, off_t);
    if (kind_of(fd) != 1) return real_pwritev64(fd, parts, count, at);
    pthread_mutex_lock(&lock);
    size_t len = 0;
    ssize_t done = -1;
    for (int i = 0; i < count; i++) len += parts[i].iov_len;
    if (goes_wrong()) {
        if (fault == SHORT) {
            size_t half = half_of(parts[0].iov_len);
            note_write(fd, at, half);
            done = plain_pwrite(fd, parts[0].iov_base, half, at);
        } else {
            errno = fault == FAIL_EIO ? EIO : ENOSPC;
        }
    } else {
        note_write(fd, at, len);
        done = real_pwritev64(fd, parts, count, at);
    }
    let_go();
    return done;
}

ssize_t pwritev(int fd, const struct iovec *parts, int count, off_t at) { return pwritev64(fd, parts, count, at); }

static int sync_any(int fd, int (*real)(int)) {
    int kind = kind_of(fd);
    if (!kind) return real(fd);
    pthread_mutex_lock(&lock);
    int done = 0;
    struct stat status;
    if (fails()) {
        done = -1;
        int error = errno;
        /* The system takes the pages for clean, and what was not written is gone. */
        if (kind == 1) lose_writes(file_of(fd));
        errno = error;
    } else if (kind == 1 && !lies_about_files) {
        forget_file(file_of(fd));
    } else if (kind == 2 && !lies_about_directories && !fstat(fd, &status)) {
        forget_changes(directory_of(&status));
    }
    let_go();
    return done;
}

int fsync(int fd) { REAL(fsync, int, int); return sync_any(fd, real_fsync); }
int fdatasync(int fd) { REAL(fdatasync, int, int); return sync_any(fd, real_fdatasync); }

int fallocate64(int fd, int mode, off_t at, off_t len) {
    REAL(fallocate64, int, int, int, off_t, off_t);
    if (kind_of(fd) != 1) return real_fallocate64(fd, mode, at, len);
    pthread_mutex_lock(&lock);
    int done = fails() ? -1 : real_fallocate64(fd, mode, at, len);
    let_go();
    return done;
}

int fallocate(int fd, int mode, off_t at, off_t len) { return fallocate64(fd, mode, at, len); }

int ftruncate64(int fd, off_t size) {
    if (kind_of(fd) != 1) return plain_ftruncate(fd, size);
    pthread_mutex_lock(&lock);
    int done = -1;
    if (!fails()) {
        struct stat status;
        if (!fstat(fd, &status) && size < status.st_size) {
            /* What was there before is no longer undone behind the new end. */
            struct file *file = file_of(fd);
            for (size_t i = 0; i < file->count; i++) {
                struct piece *piece = &file->pieces[i];
                if (piece->size_before > size) piece->size_before = size;
                if (piece->at >= size) piece->had = 0;
                else if (piece->at + (off_t)piece->had > size) piece->had = size - piece->at;
            }
        }
        done = plain_ftruncate(fd, size);
    }
    let_go();
    return done;
}

int ftruncate(int fd, off_t size) { return ftruncate64(fd, size); }

int rename(const char *from, const char *to) {
    char full_from[PATH_MAX], full_to[PATH_MAX];
    if (!is_ours(AT_FDCWD, from, full_from) || !is_ours(AT_FDCWD, to, full_to)) return plain_rename(from, to);
    pthread_mutex_lock(&lock);
    int done = -1;
    if (!fails()) {
        char *saved = save(full_to);
        done = plain_rename(from, to);
        if (!done) note_change(MOVED, full_to, full_from, saved);
        else free(saved);
    }
    let_go();
    return done;
}

int unlink(const char *path) {
    char full[PATH_MAX];
    if (!is_ours(AT_FDCWD, path, full)) return plain_unlink(path);
    pthread_mutex_lock(&lock);
    int done = -1;
    if (!fails()) {
        char *saved = save(full);
        done = plain_unlink(path);
        if (!done) note_change(REMOVED, full, NULL, saved);
        else free(saved);
    }
    let_go();
    return done;
}

int link(const char *from, const char *to) {
    char full[PATH_MAX];
    if (!is_ours(AT_FDCWD, to, full)) return plain_link(from, to);
    pthread_mutex_lock(&lock);
    int done = -1;
    if (!fails()) {
        done = plain_link(from, to);
        if (!done) note_change(MADE, full, NULL, NULL);
    }
    let_go();
    return done;
}

int linkat(int from_at, const char *from, int to_at, const char *to, int flags) {
    REAL(linkat, int, int, const char *, int, const char *, int);
    char full[PATH_MAX];
    if (!is_ours(to_at, to, full)) return real_linkat(from_at, from, to_at, to, flags);
    pthread_mutex_lock(&lock);
    int done = -1;
    if (!fails()) {
        done = real_linkat(from_at, from, to_at, to, flags);
        if (!done) note_change(MADE, full, NULL, NULL);
    }
    let_go();
    return done;
}
