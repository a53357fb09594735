"""A server of a few lines that does one thing wrong while a hostile client is there, for the judge of sieges.

python3 fake_server.py PORT-FILE FAULT
"""

import os
import socket
import socketserver
import sys
import threading
import time

HOSTILE_HOST = "127.0.0.66"
BODY = b'{"value":0}'


class Handler(socketserver.BaseRequestHandler):
    def handle(self):
        server = self.server
        is_hostile = self.client_address[0] == HOSTILE_HOST
        self.request.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        if is_hostile:
            server.hostile += 1
            if server.fault == "grows" and not server.held:
                server.held = os.urandom(1 << 20) * 120
        try:
            while self.read_request():
                self.answer(is_hostile)
        except OSError:
            pass
        if is_hostile:
            server.hostile -= 1
            server.left = time.monotonic()

    def read_request(self):
        data = b""
        while b"\r\n\r\n" not in data:
            part = self.request.recv(1 << 16)
            if not part:
                return False
            data += part
        head, _, rest = data.partition(b"\r\n\r\n")
        for line in head.split(b"\r\n"):
            if line.lower().startswith(b"content-length:"):
                left = int(line.partition(b":")[2]) - len(rest)
                while left > 0:
                    left -= len(self.request.recv(left))
        self.is_post = data.startswith(b"POST")
        return True

    def answer(self, is_hostile):
        server = self.server
        if not is_hostile:
            if (
                server.fault == "stalls" and server.hostile
                or server.fault == "stalls commits" and server.hostile and self.is_post
                or server.fault == "recovers late" and server.left and time.monotonic() < server.left + 1.3
            ):
                time.sleep(0.25)
            if server.fault == "refuses" and server.hostile:
                self.request.sendall(b"HTTP/1.1 503 Service Unavailable\r\nContent-Length: 0\r\n\r\n")
                return
            if server.fault == "hangs up" and server.hostile:
                self.request.close()
                return
        head = b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n" % len(BODY)
        self.request.sendall(head + BODY)


class FakeServer(socketserver.ThreadingTCPServer):
    daemon_threads = True
    allow_reuse_address = True
    request_queue_size = 64


def main():
    server = FakeServer(("127.0.0.1", 0), Handler)
    server.fault, server.hostile, server.left, server.held = sys.argv[2], 0, 0.0, None
    with open(sys.argv[1] + ".new", "w") as file:
        file.write(str(server.server_address[1]))
    os.rename(sys.argv[1] + ".new", sys.argv[1])
    threading.Timer(60, lambda: os._exit(1)).start()
    server.serve_forever()


if __name__ == "__main__":
    main()
