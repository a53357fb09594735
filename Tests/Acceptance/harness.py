"""What every check needs: a server of its own, clients on raw sockets, workers in processes, and a way to fail."""

import json
import multiprocessing
import os
import shutil
import signal
import socket
import subprocess
import tempfile
import time
import traceback

processes = multiprocessing.get_context("fork")
HOST = "127.0.0.1"


class Failure(Exception):
    """A check has not found what its sentence says."""


def expect(condition, *evidence):
    if not condition:
        raise Failure(" ".join(str(part) for part in evidence))


def expect_equal(found, wanted, what):
    expect(found == wanted, f"{what}: expected {shorten(wanted)}, found {shorten(found)}")


def shorten(value, most=300):
    text = value if isinstance(value, str) else repr(value)
    return text if len(text) <= most else f"{text[:most]}... ({len(text)} characters)"


def wait_until(condition, what, seconds=10):
    """Asks again and again until there is an answer that counts as true, and returns it."""
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        found = condition()
        if found:
            return found
        time.sleep(0.01)
    raise Failure(f"not within {seconds} s: {what}")


# Clients


class ConnectionLost(Exception):
    """The connection ended before the answer was complete."""


class Answer:
    """An HTTP answer that came whole."""

    def __init__(self, status, fields, body):
        self.status, self.fields, self.body = status, fields, body

    @property
    def json(self):
        return json.loads(self.body)

    @property
    def cursor(self):
        return self.fields["state-cursor"]

    @property
    def version(self):
        return version_of(self.cursor)

    @property
    def closes(self):
        return self.fields.get("connection", "").lower() == "close"

    def __repr__(self):
        return f"{self.status} {self.fields} {shorten(self.body.decode(errors='replace'))}"


def version_of(cursor):
    return int(cursor.rpartition(".")[2])


def action(kind, payload=None, **others):
    body = {"type": kind, **others}
    if payload is not None:
        body["payload"] = payload
    return json.dumps(body, separators=(",", ":")).encode()


def add(amount, **others):
    return action("counter/add", {"amount": amount}, **others)


def encode_request(method, target, body=None, fields=None):
    lines = [f"{method} {target} HTTP/1.1", f"Host: {HOST}"]
    fields = dict(fields or {})
    if body is not None:
        fields.setdefault("Content-Type", "application/json")
        fields.setdefault("Content-Length", str(len(body)))
    lines += [f"{name}: {value}" for name, value in fields.items() if value is not None]
    return "\r\n".join(lines).encode() + b"\r\n\r\n" + (body or b"")


def parse_answer(buffer, method="GET"):
    """The first answer in the buffer and how many bytes it takes, or nothing while it is incomplete."""
    end = buffer.find(b"\r\n\r\n")
    if end < 0:
        return None
    lines = bytes(buffer[:end]).decode("latin-1").split("\r\n")
    status = int(lines[0].split(" ", 2)[1])
    fields = {}
    for line in lines[1:]:
        name, _, value = line.partition(":")
        fields[name.lower()] = value.strip()
    start = end + 4
    if method == "HEAD" or status in (204, 304) or status < 200:
        return Answer(status, fields, b""), start
    length = int(fields["content-length"])
    if len(buffer) < start + length:
        return None
    return Answer(status, fields, bytes(buffer[start : start + length])), start + length


class Client:
    """One kept-alive connection, one request after another."""

    def __init__(self, port, timeout=60):
        try:
            self.socket = socket.create_connection((HOST, port), timeout)
        except OSError as error:
            raise ConnectionLost(f"cannot connect: {error}") from error
        self.socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self.buffer = bytearray()

    def send(self, data):
        try:
            self.socket.sendall(data)
        except TimeoutError:
            raise
        except OSError as error:
            raise ConnectionLost(f"while sending: {error}") from error

    def receive(self, method="GET"):
        while True:
            parsed = parse_answer(self.buffer, method)
            if parsed:
                answer, count = parsed
                del self.buffer[:count]
                return answer
            try:
                data = self.socket.recv(1 << 18)
            except TimeoutError:
                raise Failure(f"no answer within {self.socket.gettimeout()} s") from None
            except OSError as error:
                raise ConnectionLost(f"while receiving: {error}") from error
            if not data:
                raise ConnectionLost(f"closed after {len(self.buffer)} bytes of an answer")
            self.buffer += data

    def request(self, method, target, body=None, fields=None):
        self.send(encode_request(method, target, body, fields))
        return self.receive(method)

    def get(self, target, **fields):
        return self.request("GET", target, fields={name.replace("_", "-"): value for name, value in fields.items()})

    def post(self, body, target="/v1/actions", **fields):
        return self.request("POST", target, body, {name.replace("_", "-"): value for name, value in fields.items()})

    def commit(self, body, **fields):
        """Posts an action that has to be taken, and returns the receipt."""
        answer = self.post(body, **fields)
        expect(answer.status == 200, "an action was not taken:", answer)
        return answer.json

    def close(self):
        self.socket.close()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()


# Servers


class Server:
    """A storekeeper process on a free port."""

    def __init__(self, bench, data, settings, prepare=None):
        self.bench, self.data, self.settings, self.prepare = bench, data, settings, prepare
        self.process = None
        self.port = 0
        self.starts = 0

    def launch(self):
        """Starts the process without waiting for it."""
        self.starts += 1
        name = f"server{self.bench.count()}"
        self.port_file = os.path.join(self.bench.directory, name + ".port")
        self.log = os.path.join(self.bench.directory, name + ".log")
        environment = {key: value for key, value in os.environ.items() if not key.startswith("STOREKEEPER_")}
        environment |= {f"STOREKEEPER_{key.upper()}": str(value) for key, value in self.settings.items()}
        with open(self.log, "wb") as log:
            self.process = subprocess.Popen(
                [self.bench.binary, "serve", "--listen", f"{HOST}:0", "--data", self.data]
                + ["--port-file", self.port_file],
                stdin=subprocess.DEVNULL, stdout=log, stderr=log, env=environment, preexec_fn=self.prepare)
        self.bench.started.append(self.process)
        return self

    def start(self, seconds=30):
        self.launch()
        end = time.monotonic() + seconds
        while not self.ready():
            expect(self.process.poll() is None, f"the server ended with {self.process.poll()}:", self.log_text())
            expect(time.monotonic() < end, f"the server was not ready within {seconds} s:", self.log_text())
            time.sleep(0.005)
        return self

    def ready(self):
        """Whether the server has said where it listens."""
        if not os.path.exists(self.port_file):
            return False
        with open(self.port_file) as file:
            self.port = int(file.read())
        return True

    @property
    def pid(self):
        return self.process.pid

    def client(self, timeout=60):
        return Client(self.port, timeout)

    def terminate(self):
        self.process.send_signal(signal.SIGTERM)

    def wait(self, seconds=20):
        """The exit code."""
        try:
            return self.process.wait(seconds)
        except subprocess.TimeoutExpired:
            raise Failure(f"the server still runs {seconds} s later: {self.log_text()}") from None

    def stop(self):
        """Ends the server in good order."""
        self.terminate()
        code = self.wait()
        expect(code == 0, f"SIGTERM ended the server with exit code {code}:", self.log_text())

    def kill(self):
        self.process.kill()
        self.process.wait()

    def log_text(self):
        with open(self.log, errors="replace") as file:
            return shorten(file.read()[-2000:], 2000)

    def cpu_seconds(self):
        """User and system time of the process so far, to the nanosecond: /proc counts in hundredths of a second."""
        # As clock_getcpuclockid(3) makes it of a process ID.
        return time.clock_gettime(~self.pid << 3 | 2)

    def metric(self, client, name):
        for line in client.get("/metrics").body.decode().splitlines():
            if line.startswith(f"storekeeper_{name} "):
                return float(line.split()[1])
        raise Failure(f"/metrics has no {name}")


class Bench:
    """The directory, servers and workers of one check; they end with it."""

    def __init__(self, binary, seed):
        self.binary, self.seed = binary, seed
        self.directory = tempfile.mkdtemp(prefix="storekeeper-acceptance-")
        self.started, self.workers = [], []
        self.at_close = []
        self.names = 0

    def count(self):
        self.names += 1
        return self.names

    def path(self, name):
        return os.path.join(self.directory, name)

    def server(self, data=None, prepare=None, **settings):
        """A running server; by default with a journal in a new directory."""
        return Server(self, data or self.path(f"data{self.count()}"), settings, prepare).start()

    def empty_state(self):
        """The state that a new history begins with."""
        server = self.server(data="none")
        with server.client() as client:
            state = client.get("/v1/state").json
        server.stop()
        return state

    def worker(self, function, *arguments):
        worker = Worker(function, arguments)
        self.workers.append(worker)
        return worker

    def close(self):
        for worker in self.workers:
            worker.end()
        for process in self.started:
            if process.poll() is None:
                process.kill()
                process.wait()
        for undo in reversed(self.at_close):
            undo()
        shutil.rmtree(self.directory, ignore_errors=True)


class Worker:
    """A function in a process of its own."""

    def __init__(self, function, arguments):
        self.name = function.__name__
        self.receiver, sender = processes.Pipe(duplex=False)
        self.process = processes.Process(target=self._run, args=(function, arguments, sender), daemon=True)
        self.process.start()
        sender.close()

    @staticmethod
    def _run(function, arguments, sender):
        signal.alarm(0)
        try:
            sender.send((True, function(*arguments)))
        except Failure as failure:
            sender.send((False, f"{failure}"))
        except BaseException:  # whatever it is, the check has to hear of it
            sender.send((False, traceback.format_exc(limit=-4)))

    def result(self, seconds=60):
        """What the function has returned."""
        expect(self.receiver.poll(seconds), f"{self.name} was not done within {seconds} s")
        try:
            is_good, value = self.receiver.recv()
        except EOFError:
            raise Failure(f"{self.name} ended without a result") from None
        expect(is_good, f"{self.name}: {value}")
        self.process.join(10)
        return value

    def end(self):
        if self.process.is_alive():
            self.process.kill()
            self.process.join()
