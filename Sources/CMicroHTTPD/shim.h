#pragma once

// What Swift cannot import of libmicrohttpd 0.9.75, and nothing clever: wrappers of its C variadic functions, and the
// reading of a va_list. Beside it the two Linux headers of the event loop, which Swift's Glibc module leaves out.

#include <microhttpd.h>
#include <netinet/in.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/ioctl.h>
#include <sys/socket.h>

// Where the library's own messages go: a line of text and the pointer given beside the function.
struct MicroHTTPDLog {
    void (*write)(void *context, const char *line);
    void *context;
};

// The four functions the library calls back, all with the same first argument.
struct MicroHTTPDCallbacks {
    void *context;
    MHD_AccessHandlerCallback handle;
    void *(*request_line)(void *context, const char *uri, struct MHD_Connection *connection);
    MHD_RequestCompletedCallback completed;
    MHD_NotifyConnectionCallback connection;
};

// MHD_LogCallback takes a va_list, which Swift can neither read nor hand on: the text is made here.
static inline void microhttpd_log(void *context, const char *format, va_list arguments) {
    const struct MicroHTTPDLog *log = (const struct MicroHTTPDLog *)context;
    char line[512];
    if (vsnprintf(line, sizeof line, format, arguments) > 0) log->write(log->context, line);
}

// MHD_start_daemon is variadic. The options that are function pointers are passed here, where they keep their types;
// the numbers come in `options`. The logger is first, as MHD_OPTION_EXTERNAL_LOGGER's manual demands.
static inline struct MHD_Daemon *microhttpd_start(
    unsigned int flags, const struct MicroHTTPDCallbacks *callbacks, const struct MicroHTTPDLog *log,
    const struct MHD_OptionItem *options) {
    return MHD_start_daemon(
        flags, 0, NULL, NULL, callbacks->handle, callbacks->context,
        MHD_OPTION_EXTERNAL_LOGGER, &microhttpd_log, (void *)log,
        MHD_OPTION_URI_LOG_CALLBACK, callbacks->request_line, callbacks->context,
        MHD_OPTION_NOTIFY_COMPLETED, callbacks->completed, callbacks->context,
        MHD_OPTION_NOTIFY_CONNECTION, callbacks->connection, callbacks->context,
        MHD_OPTION_ARRAY, options,
        MHD_OPTION_END);
}

// MHD_get_daemon_info is variadic. -1 when there is none.
static inline int microhttpd_epoll_descriptor(struct MHD_Daemon *daemon) {
    const union MHD_DaemonInfo *info = MHD_get_daemon_info(daemon, MHD_DAEMON_INFO_EPOLL_FD);
    return info == NULL ? -1 : info->epoll_fd;
}

// MHD_get_connection_info is variadic. -1 when there is none.
static inline int microhttpd_connection_descriptor(struct MHD_Connection *connection) {
    const union MHD_ConnectionInfo *info = MHD_get_connection_info(connection, MHD_CONNECTION_INFO_CONNECTION_FD);
    return info == NULL ? -1 : info->connect_fd;
}

// MHD_get_connection_info is variadic. The peer's address, NULL when there is none.
static inline const struct sockaddr *microhttpd_client_address(struct MHD_Connection *connection) {
    const union MHD_ConnectionInfo *info = MHD_get_connection_info(connection, MHD_CONNECTION_INFO_CLIENT_ADDRESS);
    return info == NULL ? NULL : info->client_addr;
}

// MHD_get_connection_info is variadic. What the connection callback stored for this connection.
static inline void *microhttpd_socket_context(struct MHD_Connection *connection) {
    const union MHD_ConnectionInfo *info = MHD_get_connection_info(connection, MHD_CONNECTION_INFO_SOCKET_CONTEXT);
    return info == NULL ? NULL : info->socket_context;
}

// MHD_get_connection_info is variadic. Bytes from the method to the end of the empty line after the fields.
static inline size_t microhttpd_head_size(struct MHD_Connection *connection) {
    const union MHD_ConnectionInfo *info =
        MHD_get_connection_info(connection, MHD_CONNECTION_INFO_REQUEST_HEADER_SIZE);
    return info == NULL ? 0 : info->header_size;
}

// Takes a new client in: 1, or 0 when the daemon could not take it, or -1 and errno when there is none. A macro hides
// accept4 from Swift; the address goes from one call to the other.
int accept4(int, struct sockaddr *, socklen_t *, int);
static inline int microhttpd_accept(struct MHD_Daemon *daemon, int listener) {
    struct sockaddr_storage address;
    socklen_t size = sizeof address;
    int socket = accept4(listener, (struct sockaddr *)&address, &size, SOCK_NONBLOCK | SOCK_CLOEXEC);
    if (socket < 0) return -1;
    return MHD_add_connection(daemon, socket, (struct sockaddr *)&address, size) == MHD_YES;
}

// Hands a connected socket to the daemon, which owns it from there.
static inline bool microhttpd_add(struct MHD_Daemon *daemon, int socket) {
    struct sockaddr_storage address;
    socklen_t size = sizeof address;
    if (getpeername(socket, (struct sockaddr *)&address, &size) != 0) {
        // The client has gone: the daemon finds out by itself.
        memset(&address, 0, sizeof address);
        address.ss_family = AF_INET;
        size = sizeof(struct sockaddr_in);
    }
    return MHD_add_connection(daemon, socket, (struct sockaddr *)&address, size) == MHD_YES;
}

// How many bytes have been read from a TCP socket since it was connected, -1 when the system cannot tell. The kernel
// counts what has arrived in `tcpi_bytes_received` of linux/tcp.h's `struct tcp_info`, at offset 128; that header and
// the C library's netinet/tcp.h, whose structure ends before it, cannot both be included.
//
// What is unread is asked first. Bytes that arrive between the two questions then count as read: the result is too
// large at worst, and the connection is closed behind its answer, after which the client repeats what it has sent. The
// other way round the result is too small by those bytes, and may hide exactly as many that libmicrohttpd has read
// beyond the request: a pipelined request would be lost and never answered.
static inline int64_t microhttpd_bytes_read(int socket) {
    unsigned char info[136];
    socklen_t size = sizeof info;
    enum { TCP_INFO_OPTION = 11, OFFSET = 128 };
    uint64_t received;
    int unread;
    if (ioctl(socket, FIONREAD, &unread) != 0) return -1;
    if (getsockopt(socket, IPPROTO_TCP, TCP_INFO_OPTION, info, &size) != 0 || size < sizeof info) return -1;
    memcpy(&received, info + OFFSET, sizeof received);
    return (int64_t)received - unread;
}

// A stream's pieces are sent as they come (TCP_NODELAY), the kernel keeps little of them for a client that does not
// read, and one that has vanished without a word is noticed.
static inline void microhttpd_prepare_stream(int socket) {
    enum { TCP_NODELAY_OPTION = 1 };
    int yes = 1, bytes = 64 << 10;
    setsockopt(socket, IPPROTO_TCP, TCP_NODELAY_OPTION, &yes, sizeof yes);
    setsockopt(socket, SOL_SOCKET, SO_SNDBUF, &bytes, sizeof bytes);
    setsockopt(socket, SOL_SOCKET, SO_KEEPALIVE, &yes, sizeof yes);
}

// Reads and throws away what a client has sent behind its last request.
static inline void microhttpd_discard_input(int socket) {
    char bytes[4096];
    for (int round = 0; round < 16 && recv(socket, bytes, sizeof bytes, MSG_DONTWAIT) > 0; round++) {}
}
