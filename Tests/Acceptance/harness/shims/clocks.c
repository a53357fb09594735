// A library for LD_PRELOAD that moves the clocks of a process.
//
// CLOCK_CONTROL names a file of at least 4096 bytes with numbers of 64 bits, which a test changes while the process runs:
// [0] is added to the seconds of the wall clock, [1] to those of the monotonic clocks.
#define _GNU_SOURCE
#include <fcntl.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <time.h>
#include <unistd.h>

static volatile long long *control;

static void __attribute__((constructor)) begin(void) {
    const char *path = getenv("CLOCK_CONTROL");
    int descriptor = path ? open(path, O_RDWR | O_CLOEXEC) : -1;
    if (descriptor < 0) return;
    void *memory = mmap(0, 4096, PROT_READ | PROT_WRITE, MAP_SHARED, descriptor, 0);
    close(descriptor);
    if (memory != MAP_FAILED) control = memory;
}

int clock_gettime(clockid_t clock, struct timespec *time) {
    int result = syscall(SYS_clock_gettime, clock, time);
    if (result != 0 || !control) return result;
    switch (clock) {
    case CLOCK_REALTIME:
    case CLOCK_REALTIME_COARSE: time->tv_sec += control[0]; break;
    case CLOCK_MONOTONIC:
    case CLOCK_MONOTONIC_RAW:
    case CLOCK_MONOTONIC_COARSE:
    case CLOCK_BOOTTIME: time->tv_sec += control[1]; break;
    default: break;
    }
    return 0;
}

int gettimeofday(struct timeval *time, void *zone) {
    struct timespec now;
    (void)zone;
    clock_gettime(CLOCK_REALTIME, &now);
    time->tv_sec = now.tv_sec;
    time->tv_usec = now.tv_nsec / 1000;
    return 0;
}

time_t time(time_t *result) {
    struct timespec now;
    clock_gettime(CLOCK_REALTIME, &now);
    if (result) *result = now.tv_sec;
    return now.tv_sec;
}
