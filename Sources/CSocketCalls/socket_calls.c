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
    ssize_t received = calls->asked(calls->context, socket, bytes, count);
    if (received < 0) errno = EAGAIN;
    if (received == 0) received = recvfrom(socket, bytes, count, flags, NULL, NULL);
    if (received <= 0) return received;
    return calls->received(calls->context, socket, bytes, (size_t)received) ? received : 0;
}

ssize_t send(int socket, const void *bytes, size_t count, int flags) {
    const struct SocketCalls *calls = observer;
    if (calls != NULL && calls->withheld(calls->context, socket, bytes, count)) return (ssize_t)count;
    return sendto(socket, bytes, count, flags, NULL, 0);
}

ssize_t sendmsg(int socket, const struct msghdr *message, int flags) {
    const struct SocketCalls *calls = observer;
    if (calls != NULL && message->msg_iovlen > 0 &&
        calls->withheld(calls->context, socket, message->msg_iov[0].iov_base, message->msg_iov[0].iov_len)) {
        size_t count = 0;
        for (size_t index = 0; index < message->msg_iovlen; index++) count += message->msg_iov[index].iov_len;
        return (ssize_t)count;
    }
    return syscall(SYS_sendmsg, socket, message, flags);
}
