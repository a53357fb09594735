"""The proxies of config/proxies, started on loopback without root, and clients that reach the server through them."""

import collections
import os
import pathlib
import pwd
import socket
import ssl
import subprocess

from harness.chunks import ChunkReader
from harness.client import Client, ConnectionLost
from harness.expectations import Failure, expect, expect_equal, passes, shorten, wait_until
from harness.messages import HOST, encode_request
from harness.streams import EVENTS, EventReader, LineReader, StreamClient
from harness.tools import CONFIG, find

# The name in the shipped files.
NAME = "storekeeper.example.com"


def make_certificate(directory):
    """A certificate for NAME that signs itself, its key, and both in one file, as HAProxy wants them."""
    certificate, key, both = (os.path.join(directory, name) for name in ("fullchain.pem", "key.pem", "all.pem"))
    subprocess.run(
        ["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes"]
        + ["-days", "1", "-subj", f"/CN={NAME}", "-addext", f"subjectAltName=DNS:{NAME}"]
        + ["-keyout", key, "-out", certificate],
        check=True,
        capture_output=True,
    )
    with open(both, "w") as file:
        file.write(pathlib.Path(certificate).read_text() + pathlib.Path(key).read_text())
    return certificate


# A proxy's file, its command, and the texts of the file that belong to a place: each by what takes it here.
Kind = collections.namedtuple("Kind", "file command places")

KINDS = {
    "nginx": Kind(
        "nginx.conf",
        ["nginx", "-g", "daemon off;", "-e", "stderr", "-c", "{file}"],
        {
            "listen 443": "listen 127.0.0.1:{port}",
            "127.0.0.1:8080": "127.0.0.1:{server}",
            "/etc/ssl/storekeeper": "{directory}",
            "/run/nginx.pid": "{directory}/nginx.pid",
            "/var/log/nginx": "{directory}",
            "/var/cache/nginx": "{directory}",
            # The directory of the cache is one of a test, where no other user may enter.
            "user www-data;": "user {user};",
            # The directories that nginx makes at its start belong to root.
            "server_tokens off;": "".join(
                f"{name}_temp_path {{directory}}/{name};"
                for name in ("client_body", "proxy", "fastcgi", "uwsgi", "scgi")
            )
            + "server_tokens off;",
        },
    ),
    "haproxy": Kind(
        "haproxy.cfg",
        ["haproxy", "-db", "-f", "{file}"],
        {
            "bind :443": "bind 127.0.0.1:{port}",
            "127.0.0.1:8080": "127.0.0.1:{server}",
            "/etc/ssl/storekeeper": "{directory}",
            "/dev/log": "{directory}/log",
            "user haproxy": "user {user}",
            "group haproxy": "gid {group}",
        },
    ),
    "caddy": Kind(
        "Caddyfile",
        ["caddy", "run", "--adapter", "caddyfile", "--config", "{file}"],
        {
            NAME + ":443 {{": NAME + ":{port} {{\n\tbind 127.0.0.1",
            "127.0.0.1:8080": "127.0.0.1:{server}",
            "/etc/ssl/storekeeper": "{directory}",
        },
    ),
}


class Proxy:
    """A proxy process on a free port, with the shipped file; only its places and those of `changes` are others."""

    def __init__(self, workspace, kind, server_port, changes=None):
        self.workspace, self.kind, self.server_port = workspace, KINDS[kind], server_port
        self.name, self.changes = kind, changes or {}

    def start(self):
        # Another process may take the free port before the proxy does.
        for _ in range(3):
            self.directory = self.workspace.path(f"{self.name}{self.workspace.count()}")
            os.mkdir(self.directory)
            self.certificate = make_certificate(self.directory)
            with socket.create_server((HOST, 0)) as free:
                self.port = free.getsockname()[1]
            if self._launch():
                return self
        raise Failure(f"{self.name} did not start:", self.log_text())

    def _launch(self):
        values = {
            "port": self.port,
            "server": self.server_port,
            "directory": self.directory,
            "file": os.path.join(self.directory, self.kind.file),
            "user": pwd.getpwuid(os.geteuid()).pw_name,
            "group": os.getegid(),
        }
        text = (CONFIG / "proxies" / self.kind.file).read_text()
        places = {before.format(**values): after.format(**values) for before, after in self.kind.places.items()}
        for before, after in (places | self.changes).items():
            expect(before in text, f"{self.kind.file} has no {before!r}")
            text = text.replace(before, after)
        with open(values["file"], "w") as file:
            file.write(text)
        self.log = os.path.join(self.directory, "output")
        # Caddy has directories of its own, and a port for its administration.
        environment = {"XDG_DATA_HOME": self.directory, "XDG_CONFIG_HOME": self.directory, "HOME": self.directory}
        environment["CADDY_ADMIN"] = f"unix/{self.directory}/admin"
        with open(self.log, "wb") as log:
            self.process = subprocess.Popen(
                [find(self.name)] + [part.format(**values) for part in self.kind.command[1:]],
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                env=os.environ | environment,
            )
        self.workspace.workers.append(self)
        return passes(wait_until, self.listens, f"{self.name} listens", past=OSError)

    def listens(self):
        expect(self.process.poll() is None, f"{self.name} ended")
        socket.create_connection((HOST, self.port), 1).close()
        return True

    def end(self):
        """Ends the proxy and, as a killed nginx would not, the processes that it has started."""
        if self.process.poll() is None:
            self.process.terminate()
            self.process.wait(10)

    def log_text(self):
        with open(self.log, errors="replace") as file:
            return shorten(file.read()[-2000:], 2000)

    def connect(self, timeout=20, source=HOST):
        """A connection over TLS from this address; the certificate has been verified."""
        context = ssl.create_default_context(cafile=self.certificate)
        try:
            connection = socket.create_connection((HOST, self.port), timeout, (source, 0))
            connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            return context.wrap_socket(connection, server_hostname=NAME)
        except OSError as error:
            raise ConnectionLost(f"cannot connect: {error}") from error

    def client(self, timeout=20, source=HOST):
        return ProxiedClient(self.connect(timeout, source))

    def stream(self, target, form=EVENTS, seconds=20):
        """A stream whose head has come within the time."""
        return ProxiedStream(self.connect(seconds), target, form).begin()

    def curl(self, target, *arguments):
        """The command of a curl that reaches the target through the proxy."""
        return [
            *("curl", "--silent", "--show-error", "--cacert", self.certificate),
            *("--resolve", f"{NAME}:{self.port}:{HOST}", *arguments, f"https://{NAME}:{self.port}{target}"),
        ]


class ProxiedClient(Client):
    """A client on a connection over TLS."""

    def __init__(self, connection):
        self.socket = connection
        self.buffer = bytearray()

    def request(self, method, target, body=None, fields=None):
        self.send(encode_request(method, target, body, fields, host=NAME))
        return self.receive(method)


class ProxiedStream(StreamClient):
    """A stream over TLS."""

    def __init__(self, connection, target, form):
        ProxiedClient.__init__(self, connection)
        self.form = form
        self.reader = EventReader() if form == EVENTS else LineReader()
        self.chunks = ChunkReader(rb"[0-9A-Fa-f]+")
        self.events = collections.deque()
        self.has_ended = False
        self.send(encode_request("GET", target, fields={"Accept": form}, host=NAME))

    def begin(self):
        while b"\r\n\r\n" not in self.buffer:
            self._receive(self.buffer)
        head, _, rest = bytes(self.buffer).partition(b"\r\n\r\n")
        lines = head.decode().lower().split("\r\n")
        expect(lines[0].startswith("http/1.1 200"), "a stream was answered", head)
        for field in ("transfer-encoding: chunked", f"content-type: {self.form}", "cache-control: no-store"):
            expect_equal(lines.count(field), 1, f"how often the head of a stream has {field}: {head}")
        self.buffer.clear()
        self.take(rest)
        return self
