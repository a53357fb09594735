#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

// What is done with a message.
enum SocketCallsSending {
    // The message is sent.
    SOCKET_CALLS_SEND,
    // Nothing of it is sent, and the caller is told that all of it was.
    SOCKET_CALLS_WITHHOLD,
    // Nothing of it is sent, and the caller is told that the socket has no room (EAGAIN).
    SOCKET_CALLS_LATER
};

// What a thread wants to know of the socket calls that libraries make on it.
//
// This target defines `recv`, `send` and `sendmsg` for the whole program, so that libmicrohttpd's calls come here. They
// behave as those of the C library on every thread that has not called `socket_calls_observe`.
struct SocketCalls {
    void *context;
    // Bytes are asked for. Returns how many it has put into `bytes`, 0 at the end of the input, or the negative number of
    // an error, such as -EAGAIN where there are none yet.
    ssize_t (*receive)(void *context, int socket, void *bytes, size_t count);
    // A message is about to be sent, which has a first part and so many bytes in all.
    enum SocketCallsSending (*sending)(void *context, int socket, const void *bytes, size_t count, size_t all);
};

// Observes the socket calls of the current thread, which `calls` has to outlive; NULL ends that.
void socket_calls_observe(const struct SocketCalls *calls);
