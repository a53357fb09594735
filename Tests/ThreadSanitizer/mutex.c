// Tells the thread sanitizer of the slow paths of Swift's Mutex.
//
// The standard library's Mutex locks in two ways: by an atomic instruction, which the compiler puts into the tested code
// and the sanitizer sees, and, where threads meet, by a call into libswiftSynchronization, which hands the lock over in
// the kernel and is not instrumented. Without this library, preloaded, the sanitizer reports each value behind a contended
// Mutex as a race.

#define _GNU_SOURCE
#include <dlfcn.h>
#include <stdbool.h>
#include <stdint.h>

#define SWIFT __attribute__((swiftcall))
#define SELF __attribute__((swift_context))
#define LOCK "$s15Synchronization12_MutexHandleV9_lockSlowyys6UInt32VF"
#define UNLOCK "$s15Synchronization12_MutexHandleV11_unlockSlowyyF"
#define TRY_LOCK "$s15Synchronization12_MutexHandleV12_tryLockSlowSbyF"

static void (*acquire)(void *);
static void (*release)(void *);
static SWIFT void (*next_lock)(uint32_t, SELF void *);
static SWIFT void (*next_unlock)(SELF void *);
static SWIFT bool (*next_try_lock)(SELF void *);

__attribute__((constructor)) static void find(void) {
    acquire = dlsym(RTLD_DEFAULT, "__tsan_acquire");
    release = dlsym(RTLD_DEFAULT, "__tsan_release");
    next_lock = dlsym(RTLD_NEXT, LOCK);
    next_unlock = dlsym(RTLD_NEXT, UNLOCK);
    next_try_lock = dlsym(RTLD_NEXT, TRY_LOCK);
}

SWIFT void lock(uint32_t thread, SELF void *mutex) __asm__(LOCK);
SWIFT void lock(uint32_t thread, SELF void *mutex) {
    next_lock(thread, mutex);
    if (acquire) acquire(mutex);
}

SWIFT void unlock(SELF void *mutex) __asm__(UNLOCK);
SWIFT void unlock(SELF void *mutex) {
    if (release) release(mutex);
    next_unlock(mutex);
}

SWIFT bool try_lock(SELF void *mutex) __asm__(TRY_LOCK);
SWIFT bool try_lock(SELF void *mutex) {
    bool is_taken = next_try_lock(mutex);
    if (is_taken && acquire) acquire(mutex);
    return is_taken;
}
