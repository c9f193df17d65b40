/* A disk with sectors that can't be read: a library for LD_PRELOAD.
 *
 * A read at a place in a file fails with EIO where it meets a bad sector. The file named by
 * BAD_SECTORS is shared with the test's process: tests/support/stores/bad_sectors.py.
 */

#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

/* One range of one file; a length of 0 is none. */
struct bad {
    uint64_t inode, offset, length;
};

static volatile struct bad *bad;

#define REAL(name) ((__typeof__(&name))dlsym(RTLD_NEXT, #name))

__attribute__((constructor)) static void begin(void) {
    const char *path = getenv("BAD_SECTORS");
    if (!path) return;
    int file = open(path, O_RDONLY | O_CLOEXEC);
    if (file < 0) abort();
    void *shared = mmap(NULL, sizeof *bad, PROT_READ, MAP_SHARED, file, 0);
    if (shared == MAP_FAILED) abort();
    close(file);
    bad = shared;
}

static int is_bad(int file, size_t count, off_t offset) {
    struct stat status;
    if (!bad || !bad->length) return 0;
    if ((uint64_t)offset >= bad->offset + bad->length) return 0;
    if ((uint64_t)offset + count <= bad->offset) return 0;
    return fstat(file, &status) == 0 && status.st_ino == bad->inode;
}

ssize_t pread(int file, void *buffer, size_t count, off_t offset) {
    if (is_bad(file, count, offset)) {
        errno = EIO;
        return -1;
    }
    return REAL(pread)(file, buffer, count, offset);
}

ssize_t pread64(int file, void *buffer, size_t count, off64_t offset) {
    return pread(file, buffer, count, offset);
}
