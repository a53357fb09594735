#define _GNU_SOURCE
#include "socket_calls.h"

#include <errno.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

static _Thread_local const struct SocketCalls *observer;

void socket_calls_observe(const struct SocketCalls *calls) { observer = calls; }

ssize_t recv(int socket, void *bytes, size_t count, int flags) {
    const struct SocketCalls *calls = observer;
    if (calls == NULL || (flags & MSG_PEEK) != 0) return recvfrom(socket, bytes, count, flags, NULL, NULL);
    ssize_t received = calls->receive(calls->context, socket, bytes, count);
    if (received >= 0) return received;
    errno = (int)-received;
    return -1;
}

// Returns whether a message is to be sent; otherwise `result` is what the caller is told.
static bool sends(int socket, const void *bytes, size_t count, size_t all, ssize_t *result) {
    const struct SocketCalls *calls = observer;
    if (calls == NULL) return true;
    switch (calls->sending(calls->context, socket, bytes, count, all)) {
    case SOCKET_CALLS_SEND: return true;
    case SOCKET_CALLS_WITHHOLD: *result = (ssize_t)all; return false;
    case SOCKET_CALLS_LATER: break;
    }
    *result = -1;
    errno = EAGAIN;
    return false;
}

ssize_t send(int socket, const void *bytes, size_t count, int flags) {
    ssize_t result;
    if (!sends(socket, bytes, count, count, &result)) return result;
    return sendto(socket, bytes, count, flags, NULL, 0);
}

ssize_t sendmsg(int socket, const struct msghdr *message, int flags) {
    if (observer != NULL && message->msg_iovlen > 0) {
        const struct iovec *parts = message->msg_iov;
        size_t all = 0;
        for (size_t index = 0; index < message->msg_iovlen; index++) all += parts[index].iov_len;
        ssize_t result;
        if (!sends(socket, parts[0].iov_base, parts[0].iov_len, all, &result)) return result;
    }
    return syscall(SYS_sendmsg, socket, message, flags);
}
