#pragma once

#include <stddef.h>
#include <sys/types.h>

// What a thread does in place of the socket calls that libraries make on it.
//
// This target defines `recv`, `send` and `sendmsg` for the whole program, so that libmicrohttpd's calls come here. They
// behave as those of the C library on every thread that has not called `socket_calls_observe`.
struct SocketCalls {
    void *context;
    // Bytes are asked for. Returns how many it has put into `bytes`, 0 at the end of the input, or the negative number of
    // an error, such as -EAGAIN where there are none yet.
    ssize_t (*receive)(void *context, int socket, void *bytes, size_t count);
    // A message of so many bytes is about to be sent, which is not: returns how many bytes count as sent, or the
    // negative number of an error, such as -EAGAIN for a socket without room. SOCKET_CALLS_FOREIGN has the message sent.
    ssize_t (*send)(void *context, int socket, size_t count);
};

// The result for a socket that the thread does not serve; no error has this number.
enum { SOCKET_CALLS_FOREIGN = -65536 };

// Replaces the socket calls of the current thread by `calls`, which have to outlive it; NULL ends that.
void socket_calls_observe(const struct SocketCalls *calls);
