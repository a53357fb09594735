#pragma once

// The parts of libmicrohttpd that Swift cannot import, or that are called for each field of a request: wrappers of its C
// variadic functions, a logger that reads a va_list, and the walk over the fields of a request. This header also includes the two
// Linux headers that the event loop needs and that Swift's Glibc module lacks, and wraps the socket calls whose constants
// or structures Swift cannot import.

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

// The receiver of libmicrohttpd's own messages: a function that takes a line of text, and its first argument.
struct MicroHTTPDLog {
    void (*write)(void *context, const char *line);
    void *context;
};

// The functions that libmicrohttpd calls back, all with `context` as their first argument.
struct MicroHTTPDCallbacks {
    void *context;
    MHD_AccessHandlerCallback handle;
    void *(*request_line)(void *context, const char *uri, struct MHD_Connection *connection);
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
        MHD_OPTION_URI_LOG_CALLBACK, callbacks->request_line, callbacks->context,
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

// MHD_get_connection_info is variadic. Returns the number of bytes from the method to the end of the empty line after
// the fields.
static inline size_t microhttpd_head_size(struct MHD_Connection *connection) {
    const union MHD_ConnectionInfo *info =
        MHD_get_connection_info(connection, MHD_CONNECTION_INFO_REQUEST_HEADER_SIZE);
    return info == NULL ? 0 : info->header_size;
}

// The fields whose values differ from request to request. What the head cache knows of a head does not depend on them.
enum MicroHTTPDOwnField {
    MICROHTTPD_IDEMPOTENCY_KEY, MICROHTTPD_IF_MATCH, MICROHTTPD_IF_NONE_MATCH, MICROHTTPD_LAST_EVENT_ID,
    MICROHTTPD_TRACEPARENT, MICROHTTPD_X_REQUEST_ID, MICROHTTPD_TRACESTATE, MICROHTTPD_CONTENT_LENGTH,
    MICROHTTPD_SHARED
};

// A value of such a field, in libmicrohttpd's memory, without white space around it.
struct MicroHTTPDOwnValue {
    enum MicroHTTPDOwnField field;
    const char *value;
    size_t count;
};

// The most fields in a head; each may be the request's own.
enum { MICROHTTPD_FIELDS_MAX = 100 };

// The head of a request: the lines that other requests have, too, as on the wire, and what it has of its own.
struct MicroHTTPDHead {
    char *bytes;
    size_t count, capacity;
    // How many bytes and fields the whole head has.
    size_t size, fields_count;
    struct MicroHTTPDOwnValue own[MICROHTTPD_FIELDS_MAX];
    size_t own_count;
    // The value of Content-Length, or -1 without it.
    int64_t length;
    // Where the next field has to begin in libmicrohttpd's memory; NULL where it does not matter.
    const char *next;
    bool is_refused;
};

static inline bool microhttpd_append(struct MicroHTTPDHead *head, const char *bytes, size_t count) {
    if (count > head->capacity - head->count) return false;
    memcpy(head->bytes + head->count, bytes, count);
    head->count += count;
    return true;
}

static inline enum MicroHTTPDOwnField microhttpd_own_field(const char *name, size_t count) {
    switch (count) {
    case 8: return strncasecmp(name, "if-match", count) == 0 ? MICROHTTPD_IF_MATCH : MICROHTTPD_SHARED;
    case 10: return strncasecmp(name, "tracestate", count) == 0 ? MICROHTTPD_TRACESTATE : MICROHTTPD_SHARED;
    case 11: return strncasecmp(name, "traceparent", count) == 0 ? MICROHTTPD_TRACEPARENT : MICROHTTPD_SHARED;
    case 12: return strncasecmp(name, "x-request-id", count) == 0 ? MICROHTTPD_X_REQUEST_ID : MICROHTTPD_SHARED;
    case 13:
        return strncasecmp(name, "if-none-match", count) == 0 ? MICROHTTPD_IF_NONE_MATCH
            : strncasecmp(name, "last-event-id", count) == 0 ? MICROHTTPD_LAST_EVENT_ID : MICROHTTPD_SHARED;
    case 14: return strncasecmp(name, "content-length", count) == 0 ? MICROHTTPD_CONTENT_LENGTH : MICROHTTPD_SHARED;
    case 15: return strncasecmp(name, "idempotency-key", count) == 0 ? MICROHTTPD_IDEMPOTENCY_KEY : MICROHTTPD_SHARED;
    default: return MICROHTTPD_SHARED;
    }
}

// Takes a value of a field of the request's own; returns false where it is none, or one for which the reader of heads has to
// refuse the request: such a line stays among the others.
static inline bool microhttpd_take_own(
    struct MicroHTTPDHead *head, enum MicroHTTPDOwnField field, const char *value, size_t count) {
    while (count > 0 && (*value == ' ' || *value == '\t')) ++value, --count;
    while (count > 0 && (value[count - 1] == ' ' || value[count - 1] == '\t')) --count;
    if (field == MICROHTTPD_SHARED) return false;
    if (field == MICROHTTPD_CONTENT_LENGTH) {
        int64_t length = 0;
        if (head->length >= 0 || count < 1 || count > 15) return false;
        for (size_t index = 0; index < count; ++index) {
            if (value[index] < '0' || value[index] > '9') return false;
            length = length * 10 + (value[index] - '0');
        }
        head->length = length;
        return true;
    }
    for (size_t index = 0; index < count; ++index) {
        unsigned char byte = (unsigned char)value[index];
        if ((byte < 0x20 && byte != '\t') || byte == 0x7F) return false;
    }
    // Nobody reads it.
    if (field == MICROHTTPD_TRACESTATE) return true;
    if (head->own_count == MICROHTTPD_FIELDS_MAX) return false;
    head->own[head->own_count++] = (struct MicroHTTPDOwnValue){field, value, count};
    return true;
}

static inline enum MHD_Result microhttpd_append_field(
    void *context, enum MHD_ValueKind kind, const char *name, size_t name_count, const char *value, size_t value_count) {
    struct MicroHTTPDHead *head = (struct MicroHTTPDHead *)context;
    (void)kind;
    head->is_refused = head->next != NULL && name != head->next;
    if (!head->is_refused && !microhttpd_take_own(head, microhttpd_own_field(name, name_count), value, value_count)) {
        head->is_refused = !microhttpd_append(head, name, name_count) || !microhttpd_append(head, ": ", 2)
            || !microhttpd_append(head, value, value_count) || !microhttpd_append(head, "\r\n", 2);
    }
    head->size += name_count + value_count + 4;
    ++head->fields_count;
    if (head->next != NULL) head->next = value + value_count + 2;
    return head->is_refused ? MHD_NO : MHD_YES;
}

// Reads the head of a request in one walk over the fields that libmicrohttpd has read. Its `bytes` and `capacity` are those
// of the memory for the lines, which are the key of the head cache. Returns false where they need more, or where the head is
// not well formed.
//
// Versions below 1.0 end lines at a bare line feed, cut values at a NUL, and add a folded line to the *name* of the
// field before. Each of these leaves a gap between two parts of the head, so `is_contiguous` has the addresses compared.
static inline bool microhttpd_head(
    struct MHD_Connection *connection, const char *method, const void *target, size_t target_count,
    const char *version, bool is_contiguous, struct MicroHTTPDHead *head) {
    size_t version_count = strlen(version);
    head->count = head->fields_count = head->own_count = 0;
    head->length = -1;
    head->next = is_contiguous ? version + version_count + 2 : NULL;
    head->is_refused = false;
    if (!microhttpd_append(head, method, strlen(method)) || !microhttpd_append(head, " ", 1)
        || !microhttpd_append(head, (const char *)target, target_count) || !microhttpd_append(head, " ", 1)
        || !microhttpd_append(head, version, version_count) || !microhttpd_append(head, "\r\n", 2)) return false;
    head->size = head->count + 2;
    MHD_get_connection_values_n(connection, MHD_HEADER_KIND, &microhttpd_append_field, head);
    if (head->is_refused) return false;
    if (is_contiguous && head->next + 2 != method + microhttpd_head_size(connection)) return false;
    return microhttpd_append(head, "\r\n", 2);
}

// Makes a response. libmicrohttpd copies the body, or reads it from `body` until it calls `release`, which it also does where
// this function fails. Returns NULL where it has no memory.
static inline struct MHD_Response *microhttpd_response(
    const void *body, size_t body_count, MHD_ContentReaderFreeCallback release, void *owner) {
    struct MHD_Response *response = release == NULL
        ? MHD_create_response_from_buffer(body_count, (void *)body, MHD_RESPMEM_MUST_COPY)
        : MHD_create_response_from_buffer_with_free_callback_cls(body_count, (void *)body, release, owner);
    if (response == NULL && release != NULL) release(owner);
    return response;
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

// Returns how many bytes have been read from a TCP socket since it was connected, or -1 when the system cannot tell.
// The kernel counts the bytes that have arrived in `tcpi_bytes_received` of linux/tcp.h's `struct tcp_info`, at offset
// 128; that header and the C library's netinet/tcp.h, whose structure ends before it, cannot both be included.
//
// The function asks for the unread bytes first. Bytes that arrive between the two calls then count as read: the result
// is too large at worst, the server closes the connection after the answer, and the client sends its next request
// again. In the other order the result would be too small by those bytes and could hide exactly as many bytes that
// libmicrohttpd has read beyond the request: a pipelined request would be lost and never answered.
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
    int bytes = 128 << 10;
    setsockopt(socket, IPPROTO_TCP, TCP_NOTSENT_LOWAT_OPTION, &bytes, sizeof bytes);
}

// Reads and discards up to 64 KiB that a client has sent after its last request.
static inline void microhttpd_discard_input(int socket) {
    char bytes[4096];
    for (int count = 0; count < 16 && recv(socket, bytes, sizeof bytes, MSG_DONTWAIT) > 0; count++) {}
}

// Returns the user ID of the process at the other end of a Unix socket as it connected, or -1. It is in C because
// struct ucred needs _GNU_SOURCE.
static inline int64_t microhttpd_peer_user(int socket) {
    struct { int32_t process; uint32_t user, group; } peer;
    socklen_t size = sizeof peer;
    return getsockopt(socket, SOL_SOCKET, SO_PEERCRED, &peer, &size) == 0 ? (int64_t)peer.user : -1;
}
