"""A gateway before an etcd, in which a test holds requests or answers them in its place."""

import http.client
import http.server
import threading


class Gateway(http.server.ThreadingHTTPServer):
    """Passes requests on to the etcd on a port.

    `intercept` takes the path and the body of each: it returns after the test has held it, with None to pass it on, or with
    a status and the body of an answer.
    """

    daemon_threads = True

    def __init__(self, port, intercept=lambda path, body: None):
        self.target, self.intercept = port, intercept
        super().__init__(("127.0.0.1", 0), Passing)

    def __enter__(self):
        threading.Thread(target=self.serve_forever, daemon=True).start()
        return self

    def __exit__(self, *_):
        self.shutdown()
        self.server_close()


class Passing(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def log_message(self, *_):
        pass

    def do_POST(self):
        body = self.rfile.read(int(self.headers["Content-Length"]))
        answer = self.server.intercept(self.path, body)
        if answer:
            return self.answer(*answer)
        there = http.client.HTTPConnection("127.0.0.1", self.server.target)
        try:
            there.request("POST", self.path, body)
            passed = there.getresponse()
            if "watch" not in self.path:
                return self.answer(passed.status, passed.read())
        except (OSError, http.client.HTTPException):
            # The etcd is away, and the client sees a connection that ends.
            self.close_connection = True
            return
        self.send_response(passed.status)
        self.send_header("Transfer-Encoding", "chunked")
        self.end_headers()
        try:
            while part := passed.read1(1 << 16):
                self.wfile.write(b"%x\r\n%b\r\n" % (len(part), part))
        except (OSError, http.client.HTTPException):
            pass
        self.close_connection = True

    def answer(self, status, body):
        self.send_response(status)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)
