/* A disk that can lose its power: a library for LD_PRELOAD.
 *
 * It writes down what completed syncs cover, keeps every file that is unlinked or replaced, and
 * holds, slows or fails syncs and writes when told so. tests/support/power_loss.py says how to
 * use it, and takes a data directory back to what was synced.
 *
 * The trace has one line for each completed sync; <began> is when, in nanoseconds: of two syncs at
 * a time the one that began first may end last.
 *   S <inode> <began> <length> <overwritten>
 *                                     a file's data; the length that it had before the sync began,
 *                                     and the length of "overwritten" then
 *   D <inode> <began> <inode>:<name>\0...
 *                                     a directory's names, as they were before the sync began
 * (a D line's fields are separated by NUL, which no name contains, and it ends in NUL LF).
 *
 * "overwritten" has what each write in place is about to replace: inode, offset and length, u64
 * each, and the old bytes.
 */

#define _GNU_SOURCE
#include <dirent.h>
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <sys/uio.h>
#include <time.h>
#include <unistd.h>

/* One byte each, shared with the test's process: see _Switch in power_loss.py. */
enum { HOLD_SYNCS, FAIL_SYNCS, FULL_PERCENT, FULL_REPORTED, DELAY_MILLISECONDS, HELD, SWITCHES };

static volatile unsigned char *switches;
static char data_directory[PATH_MAX];
static size_t data_directory_length;
static char graveyard[PATH_MAX];
static int trace = -1;
static int overwritten = -1;
static pthread_mutex_t overwriting = PTHREAD_MUTEX_INITIALIZER;

#define REAL(name) ((__typeof__(&name))dlsym(RTLD_NEXT, #name))

/* A process that was killed may have left a torn record, of a write that it never made. */
static void cut_torn_record(const char *path) {
    unsigned long long head[3];
    struct stat status;
    off_t end = 0;
    int file = open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0644);
    if (file < 0 || fstat(file, &status) != 0) abort();
    while (pread(file, head, sizeof head, end) == sizeof head) {
        off_t next = end + (off_t)(sizeof head + head[2]);
        if (next > status.st_size) break;
        end = next;
    }
    if (ftruncate(file, end) != 0) abort();
    close(file);
}

__attribute__((constructor)) static void begin(void) {
    const char *data = getenv("POWER_LOSS_DATA_DIRECTORY");
    const char *work = getenv("POWER_LOSS_WORK_DIRECTORY");
    char path[PATH_MAX];
    if (!data || !work || !realpath(data, data_directory)) return;
    data_directory_length = strlen(data_directory);
    snprintf(graveyard, sizeof graveyard, "%s/graveyard", work);
    snprintf(path, sizeof path, "%s/switches", work);
    int file = open(path, O_RDWR | O_CLOEXEC);
    if (file < 0) abort();
    void *shared = mmap(NULL, SWITCHES, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
    if (shared == MAP_FAILED) abort();
    close(file);
    snprintf(path, sizeof path, "%s/trace", work);
    trace = open(path, O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC, 0644);
    if (trace < 0) abort();
    snprintf(path, sizeof path, "%s/overwritten", work);
    cut_torn_record(path);
    overwritten = open(path, O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC, 0644);
    if (overwritten < 0) abort();
    switches = shared;
}

static int inside(const char *path) {
    return strncmp(path, data_directory, data_directory_length) == 0 &&
           (path[data_directory_length] == '/' || path[data_directory_length] == 0);
}

static int is_ours(int fd) {
    char link[64], path[PATH_MAX];
    if (!switches) return 0;
    snprintf(link, sizeof link, "/proc/self/fd/%d", fd);
    ssize_t length = readlink(link, path, sizeof path - 1);
    if (length < 0) return 0;
    path[length] = 0;
    return inside(path);
}

static void append(const char *line, size_t length) {
    if (REAL(write)(trace, line, length) != (ssize_t)length) abort();
}

/* The trace line of a file or directory, made before its sync; the caller frees it. */
static char *describe(int fd, size_t *length) {
    struct stat status;
    char *line = NULL, path[64];
    struct timespec now;
    if (clock_gettime(CLOCK_MONOTONIC, &now) != 0 || fstat(fd, &status) != 0) abort();
    unsigned long long began = now.tv_sec * 1000000000ull + now.tv_nsec;
    FILE *out = open_memstream(&line, length);
    if (S_ISDIR(status.st_mode)) {
        struct dirent *entry;
        snprintf(path, sizeof path, "/proc/self/fd/%d", fd);
        DIR *directory = opendir(path);
        if (!directory) abort();
        fprintf(out, "D %llu %llu", (unsigned long long)status.st_ino, began);
        while ((entry = readdir(directory)))
            if (strcmp(entry->d_name, ".") && strcmp(entry->d_name, ".."))
                fprintf(out, "%c%llu:%s", 0, (unsigned long long)entry->d_ino, entry->d_name);
        closedir(directory);
        fputc(0, out);
    } else {
        struct stat old;
        if (fstat(overwritten, &old) != 0) abort();
        fprintf(out, "S %llu %llu %llu %llu", (unsigned long long)status.st_ino, began,
                (unsigned long long)status.st_size, (unsigned long long)old.st_size);
    }
    fputc('\n', out);
    fclose(out);
    return line;
}

static int synced(int fd, int (*sync)(int)) {
    size_t length;
    if (!is_ours(fd)) return sync(fd);
    char *line = describe(fd, &length);
    if (switches[DELAY_MILLISECONDS]) usleep(1000u * switches[DELAY_MILLISECONDS]);
    while (switches[HOLD_SYNCS]) {
        switches[HELD] = 1;
        usleep(500);
    }
    int result = -1;
    if (switches[FAIL_SYNCS]) errno = EIO;
    else if ((result = sync(fd)) == 0) append(line, length);
    int error = errno;
    free(line);
    errno = error;
    return result;
}

int fsync(int fd) { return synced(fd, REAL(fsync)); }
int fdatasync(int fd) { return synced(fd, REAL(fdatasync)); }

/* Keep a file that is about to lose its name: a power cut may bring the name back. */
static void bury(int at, const char *path) {
    struct stat status;
    char link[64], real[PATH_MAX], grave[PATH_MAX + 32];
    if (!switches) return;
    int file = openat(at, path, O_PATH | O_NOFOLLOW | O_CLOEXEC);
    if (file < 0) return;
    snprintf(link, sizeof link, "/proc/self/fd/%d", file);
    ssize_t length = readlink(link, real, sizeof real - 1);
    if (length >= 0 && fstat(file, &status) == 0 && S_ISREG(status.st_mode)) {
        real[length] = 0;
        snprintf(grave, sizeof grave, "%s/%llu", graveyard, (unsigned long long)status.st_ino);
        if (inside(real) && linkat(AT_FDCWD, real, AT_FDCWD, grave, 0) != 0 && errno != EEXIST)
            abort();
    }
    close(file);
}

int unlink(const char *path) {
    bury(AT_FDCWD, path);
    return REAL(unlink)(path);
}

int unlinkat(int at, const char *path, int flags) {
    if (!(flags & AT_REMOVEDIR)) bury(at, path);
    return REAL(unlinkat)(at, path, flags);
}

int rename(const char *from, const char *to) {
    bury(AT_FDCWD, to);
    return REAL(rename)(from, to);
}

int renameat(int from_at, const char *from, int to_at, const char *to) {
    bury(to_at, to);
    return REAL(renameat)(from_at, from, to_at, to);
}

/* Whether a write is among those for which there is no room: FULL_PERCENT of all, evenly mixed. */
static int is_refused(int fd) {
    static unsigned writes;
    if (!switches || !switches[FULL_PERCENT] || !is_ours(fd)) return 0;
    unsigned mixed = __atomic_add_fetch(&writes, 1, __ATOMIC_RELAXED) * 2654435769u;
    mixed = (mixed ^ mixed >> 15) * 2246822519u;
    if ((mixed ^ mixed >> 13) % 100 >= switches[FULL_PERCENT]) return 0;
    errno = ENOSPC;
    return 1;
}

/* Keep what a write at this place replaces, if there is anything. */
static void keep_old(int fd, off_t offset, size_t size) {
    struct stat status;
    char link[64];
    if (!is_ours(fd) || fstat(fd, &status) != 0 || !S_ISREG(status.st_mode)) return;
    if (offset >= status.st_size) return;
    if ((off_t)size > status.st_size - offset) size = status.st_size - offset;
    unsigned long long head[3] = {status.st_ino, offset, size};
    char *old = malloc(sizeof head + size);
    if (!old) abort();
    memcpy(old, head, sizeof head);
    /* The file may be open for writing only. */
    snprintf(link, sizeof link, "/proc/self/fd/%d", fd);
    int readable = open(link, O_RDONLY | O_CLOEXEC);
    if (readable < 0) abort();
    if (pread(readable, old + sizeof head, size, offset) != (ssize_t)size) abort();
    close(readable);
    pthread_mutex_lock(&overwriting);
    size += sizeof head;
    if (REAL(write)(overwritten, old, size) != (ssize_t)size) abort();
    pthread_mutex_unlock(&overwriting);
    free(old);
}

ssize_t write(int fd, const void *bytes, size_t size) {
    if (is_refused(fd)) return -1;
    if (switches && !(fcntl(fd, F_GETFL) & O_APPEND)) {
        off_t offset = lseek(fd, 0, SEEK_CUR);
        if (offset >= 0) keep_old(fd, offset, size);
    }
    return REAL(write)(fd, bytes, size);
}

ssize_t pwrite(int fd, const void *bytes, size_t size, off_t offset) {
    if (is_refused(fd)) return -1;
    keep_old(fd, offset, size);
    return REAL(pwrite)(fd, bytes, size, offset);
}

ssize_t pwrite64(int fd, const void *bytes, size_t size, off64_t offset) {
    if (is_refused(fd)) return -1;
    keep_old(fd, offset, size);
    return REAL(pwrite64)(fd, bytes, size, offset);
}

ssize_t writev(int fd, const struct iovec *parts, int count) {
    return is_refused(fd) ? -1 : REAL(writev)(fd, parts, count);
}

int statvfs(const char *path, struct statvfs *status) {
    int result = REAL(statvfs)(path, status);
    if (result == 0 && switches && switches[FULL_REPORTED]) status->f_bavail = 0;
    return result;
}

int statvfs64(const char *path, struct statvfs64 *status) {
    int result = REAL(statvfs64)(path, status);
    if (result == 0 && switches && switches[FULL_REPORTED]) status->f_bavail = 0;
    return result;
}
