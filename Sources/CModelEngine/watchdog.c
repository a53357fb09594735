// For pthread_getcpuclockid.
#define _GNU_SOURCE

#include "watchdog.h"

#include <pthread.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static Watched *first = NULL;
static pthread_once_t once = PTHREAD_ONCE_INIT;

/// The processor time of a thread; negative where the thread has ended.
static double cpu_seconds(clockid_t clock) {
    struct timespec time;
    if (clock_gettime(clock, &time) != 0) return -1;
    return (double)time.tv_sec + (double)time.tv_nsec / 1e9;
}

_Noreturn static void end_process(const Watched *watched) {
    char line[256];
    int length = snprintf(
        line, sizeof line, "{\"level\":\"critical\",\"message\":\"a model cannot be interrupted, so the process ends\",\"running\":\"%s\"}\n",
        watched->name);
    ssize_t written = write(STDERR_FILENO, line, (size_t)length);
    (void)written;
    // EX_TEMPFAIL of sysexits.h. It is not the 70 of a stop that took too long, behind which systemd starts no server.
    _exit(75);
}

static void examine(Watched *watched) {
    unsigned long calls = atomic_load(&watched->calls);
    double now = calls % 2 == 0 ? -1 : cpu_seconds(atomic_load(&watched->clock));
    // A call that has ended meanwhile is not the one whose clock this was.
    if (now < 0 || atomic_load(&watched->calls) != calls) return;
    if (watched->seen != calls) {
        watched->seen = calls;
        watched->begun = now;
    }
    double most = atomic_load(&watched->seconds) * (__atomic_load_n(watched->phase, __ATOMIC_RELAXED) == PHASE_OF_SETTLING ? 10 : 1);
    if (now - watched->begun > most) end_process(watched);
}

static void *watch(void *nothing) {
    for (;;) {
        nanosleep(&(struct timespec){.tv_nsec = 100000000}, NULL);
        pthread_mutex_lock(&mutex);
        for (Watched *each = first; each != NULL; each = each->next) examine(each);
        pthread_mutex_unlock(&mutex);
    }
    return nothing;
}

static void start(void) {
    pthread_t thread;
    if (pthread_create(&thread, NULL, watch, NULL) == 0) pthread_detach(thread);
}

void watchdog_add(Watched *watched, const volatile unsigned char *phase) {
    watched->phase = phase;
    pthread_mutex_lock(&mutex);
    watched->next = first;
    first = watched;
    pthread_mutex_unlock(&mutex);
    pthread_once(&once, start);
}

void watchdog_remove(Watched *watched) {
    pthread_mutex_lock(&mutex);
    Watched **place = &first;
    while (*place != NULL && *place != watched) place = &(*place)->next;
    if (*place == watched) *place = watched->next;
    pthread_mutex_unlock(&mutex);
}

void watchdog_name(Watched *watched, ModelText name) {
    size_t length = name.length < sizeof watched->name - 1 ? name.length : sizeof watched->name - 1;
    for (size_t index = 0; index < length; index += 1) {
        char byte = name.bytes[index];
        watched->name[index] = byte < ' ' || byte == '"' || byte == '\\' || byte > '~' ? '?' : byte;
    }
    watched->name[length] = 0;
}

void watchdog_begin(Watched *watched, double seconds) {
    clockid_t clock;
    if (pthread_getcpuclockid(pthread_self(), &clock) != 0) return;
    atomic_store_explicit(&watched->clock, clock, memory_order_relaxed);
    atomic_store_explicit(&watched->seconds, seconds, memory_order_relaxed);
    atomic_fetch_add(&watched->calls, 1);
}

void watchdog_end(Watched *watched) {
    if (atomic_load_explicit(&watched->calls, memory_order_relaxed) % 2 == 1) atomic_fetch_add(&watched->calls, 1);
}
