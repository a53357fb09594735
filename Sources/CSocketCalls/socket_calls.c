#define _GNU_SOURCE
#include "socket_calls.h"

#include <errno.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

static _Thread_local const struct SocketCalls *observer;

void socket_calls_observe(const struct SocketCalls *calls) { observer = calls; }

// Returns a result as the C library does.
static ssize_t returned(ssize_t result) {
    if (result >= 0) return result;
    errno = (int)-result;
    return -1;
}

ssize_t recv(int socket, void *bytes, size_t count, int flags) {
    const struct SocketCalls *calls = observer;
    if (calls == NULL || (flags & MSG_PEEK) != 0) return recvfrom(socket, bytes, count, flags, NULL, NULL);
    return returned(calls->receive(calls->context, socket, bytes, count));
}

ssize_t send(int socket, const void *bytes, size_t count, int flags) {
    const struct SocketCalls *calls = observer;
    ssize_t result = calls == NULL ? SOCKET_CALLS_FOREIGN : calls->send(calls->context, socket, count);
    return result == SOCKET_CALLS_FOREIGN ? sendto(socket, bytes, count, flags, NULL, 0) : returned(result);
}

ssize_t sendmsg(int socket, const struct msghdr *message, int flags) {
    const struct SocketCalls *calls = observer;
    size_t count = 0;
    for (size_t index = 0; index < message->msg_iovlen; index++) count += message->msg_iov[index].iov_len;
    ssize_t result = calls == NULL ? SOCKET_CALLS_FOREIGN : calls->send(calls->context, socket, count);
    return result == SOCKET_CALLS_FOREIGN ? syscall(SYS_sendmsg, socket, message, flags) : returned(result);
}
