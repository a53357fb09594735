#pragma once

// The parts of libmicrohttpd 0.9.75 that Swift cannot import: wrappers of its C variadic functions, and a logger that
// reads a va_list. This header also includes the two Linux headers that the event loop needs and that Swift's Glibc
// module lacks, and wraps the socket calls whose constants or structures Swift cannot import.

#include <microhttpd.h>
#include <netinet/in.h>
#include <poll.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/ioctl.h>
#include <sys/socket.h>

// The receiver of libmicrohttpd's own messages: a function that takes a line of text, and its first argument.
struct MicroHTTPDLog {
    void (*write)(void *context, const char *line);
    void *context;
};

// The three functions that libmicrohttpd calls back, all with `context` as their first argument.
struct MicroHTTPDCallbacks {
    void *context;
    MHD_AccessHandlerCallback handle;
    MHD_RequestCompletedCallback completed;
    MHD_NotifyConnectionCallback connection;
};

// MHD_LogCallback takes a va_list, which Swift can neither read nor pass on: this function formats the line.
static inline void microhttpd_log(void *context, const char *format, va_list arguments) {
    const struct MicroHTTPDLog *log = (const struct MicroHTTPDLog *)context;
    char line[512];
    if (vsnprintf(line, sizeof line, format, arguments) > 0) log->write(log->context, line);
}

// MHD_start_daemon is variadic. This function passes the options that are function pointers, with their types; the
// caller passes the numeric ones in `options`. The logger comes first, as the manual of MHD_OPTION_EXTERNAL_LOGGER
// demands.
static inline struct MHD_Daemon *microhttpd_start(
    unsigned int flags, const struct MicroHTTPDCallbacks *callbacks, const struct MicroHTTPDLog *log,
    const struct MHD_OptionItem *options) {
    return MHD_start_daemon(
        flags, 0, NULL, NULL, callbacks->handle, callbacks->context,
        MHD_OPTION_EXTERNAL_LOGGER, &microhttpd_log, (void *)log,
        MHD_OPTION_NOTIFY_COMPLETED, callbacks->completed, callbacks->context,
        MHD_OPTION_NOTIFY_CONNECTION, callbacks->connection, callbacks->context,
        MHD_OPTION_ARRAY, options,
        MHD_OPTION_END);
}

// MHD_get_daemon_info is variadic. Returns -1 when the daemon has no epoll descriptor.
static inline int microhttpd_epoll_descriptor(struct MHD_Daemon *daemon) {
    const union MHD_DaemonInfo *info = MHD_get_daemon_info(daemon, MHD_DAEMON_INFO_EPOLL_FD);
    return info == NULL ? -1 : info->epoll_fd;
}

// MHD_get_connection_info is variadic. Returns -1 when the connection has no socket.
static inline int microhttpd_connection_descriptor(struct MHD_Connection *connection) {
    const union MHD_ConnectionInfo *info = MHD_get_connection_info(connection, MHD_CONNECTION_INFO_CONNECTION_FD);
    return info == NULL ? -1 : info->connect_fd;
}

// MHD_get_connection_info is variadic. Returns the peer's address, or NULL when libmicrohttpd does not know it.
static inline const struct sockaddr *microhttpd_client_address(struct MHD_Connection *connection) {
    const union MHD_ConnectionInfo *info = MHD_get_connection_info(connection, MHD_CONNECTION_INFO_CLIENT_ADDRESS);
    return info == NULL ? NULL : info->client_addr;
}

// MHD_get_connection_info is variadic. Returns the pointer that the connection callback has stored.
static inline void *microhttpd_socket_context(struct MHD_Connection *connection) {
    const union MHD_ConnectionInfo *info = MHD_get_connection_info(connection, MHD_CONNECTION_INFO_SOCKET_CONTEXT);
    return info == NULL ? NULL : info->socket_context;
}

// Accepts a client. Returns its socket, and its address, or -1 with errno when no client could be accepted. It is in C
// because a macro hides accept4 from Swift.
int accept4(int, struct sockaddr *, socklen_t *, int);
static inline int microhttpd_accept(int listener, struct sockaddr_storage *address) {
    socklen_t size = sizeof *address;
    return accept4(listener, (struct sockaddr *)address, &size, SOCK_NONBLOCK | SOCK_CLOEXEC);
}

// Hands a connected socket to the daemon, which owns it from then on and closes it where it refuses it.
static inline bool microhttpd_add(struct MHD_Daemon *daemon, int socket) {
    struct sockaddr_storage address;
    socklen_t size = sizeof address;
    if (getpeername(socket, (struct sockaddr *)&address, &size) != 0) {
        // The client has gone; the daemon notices when it reads.
        memset(&address, 0, sizeof address);
        address.ss_family = AF_INET;
        size = sizeof(struct sockaddr_in);
    }
    return MHD_add_connection(daemon, socket, (struct sockaddr *)&address, size) == MHD_YES;
}

// Sets up the socket of a stream: each chunk is sent at once (TCP_NODELAY), the kernel buffers at most 64 KiB for a
// client that does not read, and the kernel detects a client that disappeared without closing (SO_KEEPALIVE). An option
// that cannot be set leaves the stream slower but correct, so the results are not checked.
static inline void microhttpd_prepare_stream(int socket) {
    enum { TCP_NODELAY_OPTION = 1 };
    int yes = 1, bytes = 64 << 10;
    setsockopt(socket, IPPROTO_TCP, TCP_NODELAY_OPTION, &yes, sizeof yes);
    setsockopt(socket, SOL_SOCKET, SO_SNDBUF, &bytes, sizeof bytes);
    setsockopt(socket, SOL_SOCKET, SO_KEEPALIVE, &yes, sizeof yes);
}

// Bounds what the kernel takes for a client that does not read: TCP_NOTSENT_LOWAT, which the sockets that a listening
// socket accepts inherit. libmicrohttpd offers a socket the whole rest of an answer, and without the bound the kernel
// copies up to 4 MB of it, for each of many clients in one iteration. What is in flight to a client that reads is not
// bounded. Without the option the answers are correct but delay others, so the result is not checked.
static inline void microhttpd_bound_unsent(int socket) {
    enum { TCP_NOTSENT_LOWAT_OPTION = 25 };
    int bytes = 512 << 10;
    setsockopt(socket, IPPROTO_TCP, TCP_NOTSENT_LOWAT_OPTION, &bytes, sizeof bytes);
}

// Has the kernel report again that a TCP socket is readable, to those who watch it edge-triggered: tcp_set_rcvlowat, with
// the value that the socket has anyway, signals what has been received and not read (Linux 4.18 and later).
static inline void microhttpd_report_readable(int socket) {
    int bytes = 1;
    setsockopt(socket, SOL_SOCKET, SO_RCVLOWAT, &bytes, sizeof bytes);
}

// Has the kernel report that a TCP socket has room, at once or as soon as it has: do_tcp_setsockopt signals it after it has
// set TCP_NOTSENT_LOWAT. Where there is no room now, tcp_poll notes that somebody wants it, which otherwise only a call
// that finds no room does.
static inline void microhttpd_report_writable(int socket) {
    struct pollfd watched = {.fd = socket, .events = POLLOUT};
    poll(&watched, 1, 0);
    microhttpd_bound_unsent(socket);
}

// Reads and discards up to 64 KiB that a client has sent after its last request.
static inline void microhttpd_discard_input(int socket) {
    char bytes[4096];
    for (int count = 0; count < 16 && recvfrom(socket, bytes, sizeof bytes, MSG_DONTWAIT, NULL, NULL) > 0; count++) {}
}

// Returns the user ID of the process at the other end of a Unix socket as it connected, or -1. It is in C because
// struct ucred needs _GNU_SOURCE.
static inline int64_t microhttpd_peer_user(int socket) {
    struct { int32_t process; uint32_t user, group; } peer;
    socklen_t size = sizeof peer;
    return getsockopt(socket, SOL_SOCKET, SO_PEERCRED, &peer, &size) == 0 ? (int64_t)peer.user : -1;
}
