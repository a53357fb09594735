#pragma once

// What Swift cannot import of libmicrohttpd 0.9.75, and nothing clever: wrappers of its C variadic functions, and the
// reading of a va_list. Beside it the two Linux headers of the event loop, which Swift's Glibc module leaves out.

#include <microhttpd.h>
#include <stdarg.h>
#include <stdio.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>

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
