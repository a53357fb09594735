// A library for LD_PRELOAD that makes the disk fail for the files of one directory.
//
// FAULT_DIRECTORY names the directory, as it stands in the paths of its files. FAULT_CONTROL names a file of at least 4096
// bytes with numbers of 32 bits, which a test changes while the process runs:
//   [0] the fault: 0 none, 1 a sync fails, 2 a write fails (EIO), 3 a write finds no room (ENOSPC), 4 a write is short and the
//       next one finds no room, 5 a sync fails after it was done, 6 a read fails (EIO)
//   [1] how many calls of the kind pass first
//   [2] how many calls have failed
//   [3] how many calls fail; 0 for all
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

enum { no_fault, failing_sync, failing_write, full_disk, short_write, late_sync, failing_read };

static volatile int *control;
static const char *directory;

static void __attribute__((constructor)) begin(void) {
    const char *path = getenv("FAULT_CONTROL");
    directory = getenv("FAULT_DIRECTORY");
    int descriptor = path && directory ? open(path, O_RDWR | O_CLOEXEC) : -1;
    if (descriptor < 0) return;
    void *memory = mmap(0, 4096, PROT_READ | PROT_WRITE, MAP_SHARED, descriptor, 0);
    close(descriptor);
    if (memory != MAP_FAILED) control = memory;
}

// Whether this call fails.
static int strikes(int descriptor, int first, int second) {
    if (!control || (control[0] != first && control[0] != second)) return 0;
    char link[64], path[4096];
    snprintf(link, sizeof link, "/proc/self/fd/%d", descriptor);
    ssize_t size = readlink(link, path, sizeof path - 1);
    if (size < 0) return 0;
    path[size] = 0;
    if (!strstr(path, directory) || strstr(path, "-shm")) return 0;
    if (control[1] > 0) {
        __sync_fetch_and_sub(&control[1], 1);
        return 0;
    }
    if (control[3] > 0 && control[2] >= control[3]) return 0;
    __sync_fetch_and_add(&control[2], 1);
    return 1;
}

#define REAL(name) \
    static __typeof__(name) *real; \
    if (!real) real = dlsym(RTLD_NEXT, #name)

static int synced(int descriptor, int (*real)(int)) {
    if (!strikes(descriptor, failing_sync, late_sync)) return real(descriptor);
    if (control[0] == late_sync) real(descriptor);
    errno = EIO;
    return -1;
}

int fsync(int descriptor) { REAL(fsync); return synced(descriptor, real); }
int fdatasync(int descriptor) { REAL(fdatasync); return synced(descriptor, real); }

typedef ssize_t write_function(int, const void *, size_t, off_t);

static ssize_t written(int descriptor, const void *bytes, size_t count, off_t offset, write_function *real) {
    if (strikes(descriptor, failing_write, failing_write)) { errno = EIO; return -1; }
    if (strikes(descriptor, full_disk, full_disk)) { errno = ENOSPC; return -1; }
    if (strikes(descriptor, short_write, short_write)) {
        if (count > 1 && control[2] % 2) return real(descriptor, bytes, count / 2, offset);
        errno = ENOSPC;
        return -1;
    }
    return real(descriptor, bytes, count, offset);
}

ssize_t pwrite(int descriptor, const void *bytes, size_t count, off_t offset) {
    REAL(pwrite);
    return written(descriptor, bytes, count, offset, real);
}

ssize_t pwrite64(int descriptor, const void *bytes, size_t count, off_t offset) {
    REAL(pwrite64);
    return written(descriptor, bytes, count, offset, (write_function *)real);
}

ssize_t pread(int descriptor, void *bytes, size_t count, off_t offset) {
    REAL(pread);
    if (strikes(descriptor, failing_read, failing_read)) { errno = EIO; return -1; }
    return real(descriptor, bytes, count, offset);
}

ssize_t pread64(int descriptor, void *bytes, size_t count, off_t offset) {
    REAL(pread64);
    if (strikes(descriptor, failing_read, failing_read)) { errno = EIO; return -1; }
    return real(descriptor, bytes, count, offset);
}
