"""A relay that cuts off answers in the middle of their bodies."""

import socket
import threading


class Cuts:
    """Forwards connections to a server, and ends the first `count` of those that carry an answer with a body.

    The client has the head of the answer and ten bytes of its body then.
    """

    def __init__(self, workspace, port, count):
        self.port, self.left = port, count
        self.lock = threading.Lock()
        self.listener = socket.create_server(("127.0.0.1", 0))
        workspace.at_close.append(self.listener.close)
        threading.Thread(target=self._accept, daemon=True).start()

    @property
    def address(self):
        return f"localhost:{self.listener.getsockname()[1]}"

    def _accept(self):
        while True:
            try:
                client, _ = self.listener.accept()
            except OSError:  # The test has ended.
                return
            try:
                server = socket.create_connection(("127.0.0.1", self.port))
            except OSError:
                client.close()
                continue
            threading.Thread(target=self._forward, args=(client, server, False), daemon=True).start()
            threading.Thread(target=self._forward, args=(server, client, True), daemon=True).start()

    def _forward(self, source, target, is_answer):
        try:
            while data := source.recv(1 << 16):
                end = self._cut(data) if is_answer else None
                target.sendall(data[:end])
                if end:
                    break
        except OSError:
            pass  # The other direction has closed both.
        for connection in (source, target):
            try:
                connection.shutdown(socket.SHUT_RDWR)
            except OSError:
                pass  # It is closed already.

    def _cut(self, data):
        """Where to end what has come of an answer that is to be cut off."""
        body = data.index(b"\r\n\r\n") + 4 if data.startswith(b"HTTP/") else 0
        with self.lock:
            if self.left == 0 or len(data) <= body + 10:
                return None
            self.left -= 1
        return body + 10
