"""A films server that answers as a test wants."""

import json
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

from harness.messages import HOST

SWAPI = json.dumps(
    {
        "count": 1,
        "next": None,
        "results": [{"title": "A New Hope", "episode_id": 4, "director": "George Lucas", "producer": "left aside"}],
    }
).encode()
SECRET = b"not to be repeated by the server"


class Stub:
    """A films server on a free port that gives the answers of a list and counts the requests."""

    def __init__(self, workspace):
        stub = self
        self.count, self.answers, self.paths = 0, [], set()
        self.is_over = threading.Event()

        class Handler(BaseHTTPRequestHandler):
            def do_GET(self):
                stub.paths.add(self.path)
                answer = stub.answers[min(stub.count, len(stub.answers) - 1)]
                stub.count += 1
                try:
                    answer(self)
                except OSError:
                    pass  # the client has closed the connection

            def tell(self, status, body, **fields):
                self.send_response(status)
                for name, value in fields.items():
                    self.send_header(name, value)
                self.send_header("Content-Length", str(len(body)))
                self.end_headers()
                self.wfile.write(body)

            def log_message(self, *_):
                pass

        self.server = ThreadingHTTPServer((HOST, 0), Handler)
        self.server.daemon_threads = True
        threading.Thread(target=self.server.serve_forever, daemon=True).start()
        self.address = f"http://{HOST}:{self.server.server_port}"
        workspace.at_close.append(self.close)

    def will(self, *answers):
        """Sets the answers to the next requests; the last one repeats."""
        self.count, self.answers = 0, answers

    def close(self):
        self.is_over.set()
        self.server.shutdown()
        self.server.server_close()

    # Answers

    def good(self, handler):
        handler.tell(200, SWAPI)

    def array(self, handler):
        handler.tell(200, json.dumps(json.loads(SWAPI)["results"]).encode())

    def films(self, films):
        """The answer of a server with these films."""
        return lambda handler: handler.tell(200, json.dumps(films).encode())

    def slow(self, handler):
        self.is_over.wait(0.5)
        handler.tell(200, SWAPI)

    def fail(self, handler):
        handler.tell(500, SECRET)

    def missing(self, handler):
        handler.tell(404, SECRET)

    def elsewhere(self, handler):
        handler.tell(302, b"", Location=f"{self.address}/elsewhere")

    def rubbish(self, handler):
        handler.tell(200, SECRET)

    def other_shape(self, handler):
        handler.tell(200, json.dumps({"results": [{"title": SECRET.decode(), "episode_id": "four"}]}).encode())

    def unfit(self, handler):
        handler.tell(200, json.dumps([{"title": ""}]).encode())

    def huge(self, handler):
        handler.tell(200, b"[" + b" " * (1 << 21) + b"]")

    def endless(self, handler):
        handler.send_response(200)
        handler.end_headers()
        while not self.is_over.wait(0.1):
            handler.wfile.write(b" ")

    def cut_off(self, handler):
        handler.send_response(200)
        handler.send_header("Content-Length", "1000")
        handler.end_headers()
        handler.wfile.write(b"[")
        handler.close_connection = True

    def hang(self, handler):
        self.is_over.wait(60)
