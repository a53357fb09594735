"""Films that are fetched from another server: what comes of a server that is slow, fails, answers rubbish or hangs."""

import json
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

from harness import HOST, action, expect, expect_equal
from recording import succeed

SWAPI = json.dumps({
    "count": 1, "next": None,
    "results": [{"title": "A New Hope", "episode_id": 4, "director": "George Lucas", "producer": "left aside"}]}).encode()
HOPE = {"title": "A New Hope", "director": "George Lucas", "episode": 4}
SECRET = b"not to be told to anybody"


class Stub:
    """A films server on a free port that answers as it is told and counts how often it is asked."""

    def __init__(self, bench):
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
                    pass  # whoever asked is gone

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
        bench.at_close.append(self.close)

    def will(self, *answers):
        """From now on it answers so, the last again and again."""
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


def load(client):
    """Loads to the end; returns the slice afterwards."""
    answer = client.post(action("films/load"), Prefer="wait=20")
    expect_equal((answer.status, answer.json.get("settled")), (200, True), f"status and settled of {answer}")
    expect_equal(len(answer.json["caused"]), 1, f"commits caused in {answer}")
    expect_equal(answer.json["caused"][0]["cause"], answer.json["id"], "the cause of what was caused")
    films = client.get("/v1/state/films").json
    wanted = {"finished": "films/set", "failed": "films/fail"}
    expect_equal(answer.json["caused"][0]["types"], [wanted.get(films["phase"])], f"what was caused for {films}")
    return films


def fetched_films(bench):
    """A load of films ends whatever the films server does, within its time, and tells nothing that was answered."""
    stub = Stub(bench)
    server = bench.server(films_base_url=stub.address + "/", films_timeout_seconds=1, films_retries=2)
    cases = [
        ([stub.good], 1, None), ([stub.array], 1, None), ([stub.slow], 1, None),
        ([stub.fail, stub.cut_off, stub.good], 3, None), ([stub.hang, stub.good], 2, None),
        ([stub.fail], 3, "status 500"), ([stub.missing], 1, "status 404"), ([stub.elsewhere], 1, "status 302"),
        ([stub.rubbish], 1, "a list of films"), ([stub.other_shape], 1, "a list of films"), ([stub.unfit], 1, "do not fit"),
        ([stub.huge], 1, "more than 1048576 bytes"), ([stub.hang], 3, "within 1.0 seconds"),
        ([stub.endless], 3, "within 1.0 seconds"), ([stub.cut_off], 3, "connection")]
    with server.client() as client:
        for answers, count, reason in cases:
            name = answers[0].__name__
            stub.will(*answers)
            films = load(client)
            expect_equal(stub.count, count, f"requests ({name})")
            expect_equal(films["films"], [HOPE], f"films ({name})")
            if reason is None:
                expect_equal((films["phase"], films.get("reason")), ("finished", None), f"phase and reason ({name})")
            else:
                expect(films["phase"] == "failed" and reason in films["reason"], f"{name} does not say {reason!r}:", films)
                expect("not to be told" not in films["reason"], "the answer is quoted:", films)
        expect_equal(stub.paths, {"/films"}, "paths asked for")
        stub.close()
        films = load(client)
        expect(films["phase"] == "failed" and "connection" in films["reason"], "nobody listens:", films)
    expect(SECRET.decode() not in server.log_text(), "the answer is in the log:", server.log_text())
    server.stop()


def fetched_once(bench):
    """What a history has fetched is not fetched again: not after kill -9, not by a replay, not by a verification."""
    stub = Stub(bench)
    stub.will(stub.good, stub.hang)
    server = bench.server(films_base_url=stub.address, films_timeout_seconds=60, films_retries=0)
    with server.client() as client:
        load(client)
        before = client.get("/v1/state/films").json
    server.kill()
    server.start()
    with server.client() as client:
        expect_equal(client.get("/v1/state/films").json, before, "films after kill -9")
        answer = client.post(action("films/load"), Prefer="wait=1")
        expect_equal((answer.status, answer.json.get("settled")), (202, False), f"status and settled of {answer}")
        expect_equal(client.get("/v1/state/films/phase").json, "loading", "phase while the films server hangs")
    server.kill()
    server.start()
    with server.client() as client:
        expect_equal(client.get("/v1/state/films/phase").json, "failed", "phase after kill -9 during a load")
        lines = succeed(bench, "export", server.data)
        state = client.get("/v1/state").body
    succeed(bench, "verify", server.data)
    data = bench.path("again")
    succeed(bench, "replay", data, text=lines)
    again = bench.server(data=data, films_base_url=stub.address)
    with again.client() as client:
        expect_equal(client.get("/v1/state").body, state, "the state after a replay")
    expect_equal(stub.count, 2, "requests for two loads")


def given_up(bench):
    """A load that is given up ends at once, and a server that stops does not wait for the films."""
    stub = Stub(bench)
    stub.will(stub.hang)
    server = bench.server(films_base_url=stub.address, films_timeout_seconds=60)
    with server.client() as client:
        client.commit(action("films/load"))
        client.commit(action("films/cancel"))
        expect_equal(client.get("/v1/state/films").json, {"phase": "idle", "films": []}, "films after a cancel")
        expect_equal(client.post(action("films/cancel")).status, 409, "status of another cancel")
        client.commit(action("films/load"))
    server.stop()
