// microhttpd-limit: how fast the conversations of Storekeeper can be on libmicrohttpd.
//
//     microhttpd-limit [--durable FILE]
//     microhttpd-limit --version
//
// Listens on a free port of 127.0.0.1, prints the port, and ends at SIGTERM. It knows one state, /v1/state/counter, which
// every POST to /v1/actions changes, whatever it says. With --durable the actions are in an SQLite database before they
// are answered.

#include "limit.h"

#include <arpa/inet.h>
#include <signal.h>
#include <sqlite3.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/resource.h>
#include <unistd.h>

bool pass_moved, pass_resumed;
uint32_t held_count;

static int bell;
static volatile sig_atomic_t must_end;

static void end(int signal) {
    (void)signal;
    must_end = 1;
    uint64_t one = 1;
    // A bell that is full rings all the same.
    if (write(bell, &one, sizeof one) < 0) return;
}

// How many connections may be open: as many as there may be files, but for a few of our own.
static unsigned int raise_descriptor_limit(void) {
    struct rlimit limit;
    if (getrlimit(RLIMIT_NOFILE, &limit) != 0) return 1000;
    if (limit.rlim_max > 65536) limit.rlim_max = 65536;
    limit.rlim_cur = limit.rlim_max;
    setrlimit(RLIMIT_NOFILE, &limit);
    return (unsigned int)limit.rlim_cur - 24;
}

static struct MHD_Daemon *start_daemon(void) {
    struct sockaddr_in address = { .sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
    // A loop of our own is the fastest mode, and the internal thread can deadlock.
    return MHD_start_daemon(
        MHD_USE_EPOLL | MHD_ALLOW_SUSPEND_RESUME, 0, NULL, NULL, counter_handle, NULL,
        MHD_OPTION_SOCK_ADDR, (struct sockaddr *)&address,
        MHD_OPTION_CONNECTION_LIMIT, raise_descriptor_limit(),
        // The pools of parked connections stay small, and a request costs a microsecond less than with 32 KiB.
        MHD_OPTION_CONNECTION_MEMORY_LIMIT, (size_t)8192,
        MHD_OPTION_LISTEN_BACKLOG_SIZE, 4096u,
        MHD_OPTION_NOTIFY_COMPLETED, counter_completed, NULL,
        MHD_OPTION_END);
}

// How long nothing needs to be done, in milliseconds; -1: until something happens.
static int sleep_milliseconds(struct MHD_Daemon *daemon) {
    if (pass_resumed) return 0;
    MHD_UNSIGNED_LONG_LONG milliseconds;
    if (MHD_get_timeout(daemon, &milliseconds) != MHD_YES) return -1;
    if (milliseconds > 0) return (int)milliseconds;
    // Held requests are always ready, and libmicrohttpd would spin. After a pass that moved nothing else there is only
    // the bell to wait for, or a client; should something have been overlooked, it waits for a millisecond.
    return held_count == 0 || pass_moved ? 0 : 1;
}

static void run(struct MHD_Daemon *daemon, int poller, bool is_durable) {
    while (!must_end) {
        int milliseconds = sleep_milliseconds(daemon);
        struct epoll_event events[2];
        // libmicrohttpd looks up its own events; a bell that rings meanwhile is heard through `recorder_collect`.
        if (milliseconds != 0) epoll_wait(poller, events, 2, milliseconds);
        // What the recorder's news resume is picked up by this very pass; what the pass resumes, by the next.
        if (is_durable) recorder_collect();
        pass_moved = pass_resumed = false;
        MHD_run(daemon);
        if (is_durable) recorder_submit();
    }
}

static bool watch(int poller, int descriptor, uint32_t events) {
    struct epoll_event event = { .events = events };
    return epoll_ctl(poller, EPOLL_CTL_ADD, descriptor, &event) == 0;
}

int main(int count, char **arguments) {
    if (count == 2 && strcmp(arguments[1], "--version") == 0) {
        printf("libmicrohttpd %s, SQLite %s\n", MHD_get_version(), sqlite3_libversion());
        return 0;
    }
    const char *file = count == 3 && strcmp(arguments[1], "--durable") == 0 ? arguments[2] : NULL;
    if (count != 1 && file == NULL) {
        fprintf(stderr, "usage: microhttpd-limit [--durable FILE]\n");
        return 64;
    }
    int poller = epoll_create1(EPOLL_CLOEXEC);
    bell = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    if (poller < 0 || bell < 0) return 1;
    signal(SIGPIPE, SIG_IGN);
    signal(SIGTERM, end);
    signal(SIGINT, end);
    counter_start(file != NULL);
    if (file != NULL && !recorder_start(file, bell)) {
        fprintf(stderr, "microhttpd-limit: no database at %s\n", file);
        return 1;
    }
    struct MHD_Daemon *daemon = start_daemon();
    if (daemon == NULL) {
        fprintf(stderr, "microhttpd-limit: libmicrohttpd did not start\n");
        return 1;
    }
    // Edge-triggered, so that nobody has to read the bell.
    if (!watch(poller, MHD_get_daemon_info(daemon, MHD_DAEMON_INFO_EPOLL_FD)->epoll_fd, EPOLLIN)
        || !watch(poller, bell, EPOLLIN | EPOLLET)) {
        return 1;
    }
    printf("%u\n", MHD_get_daemon_info(daemon, MHD_DAEMON_INFO_BIND_PORT)->port);
    fflush(stdout);

    run(daemon, poller, file != NULL);

    counter_release_all();
    MHD_run(daemon);
    // Held requests are cut, as the open connections are.
    MHD_stop_daemon(daemon);
    recorder_stop();
    return 0;
}
