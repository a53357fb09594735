"""A receiver of deliveries, a process that can be killed: it verifies each one and writes what it has taken to a file.

    hook_receiver.py SETTINGS

SETTINGS is a JSON file: port, file, secret, seed, the share of deliveries with each fault, and the actions that answer a
type of action, or the text of each answer. The receiver reads it again for each delivery.
"""

import json
import random
import select
import sys
import time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

from standardwebhooks import Webhook

settings_path = sys.argv[1]


def settings():
    with open(settings_path) as file:
        return json.load(file)


chance = random.Random(f"{settings()['seed']} {time.monotonic()}")
record = open(settings()["file"], "ab", buffering=0)


class Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def do_POST(self):
        now = settings()
        body = self.rfile.read(int(self.headers["Content-Length"]))
        try:
            Webhook(now["secret"]).verify(body, dict(self.headers))
        except Exception as error:
            record.write(json.dumps({"fault": f"{error!r}", "body": body.decode()}).encode() + b"\n")
            return self.tell(400)
        faults = now.get("faults", {})
        fault = chance.choices([None, *faults], [1 - sum(faults.values()), *faults.values()])[0]
        if fault == "status":
            return self.tell(500, b"not now", **now.get("status_fields", {}))
        if fault == "redirect":
            return self.tell(302, b"", Location=f"http://127.0.0.1:{now['port']}/elsewhere")
        if fault == "hang":
            select.select([self.connection], [], [], now.get("hang", 3))  # or until the sender gives up
            self.close_connection = True
            return None
        if fault == "huge":
            return self.huge()
        taken = {"id": self.headers["webhook-id"], "path": self.path, "body": body.decode()}
        if now.get("keeps_fields"):
            taken["fields"] = {name.lower(): value for name, value in self.headers.items()}
        record.write(json.dumps(taken).encode() + b"\n")
        # The sender does not learn that the delivery was taken.
        if fault == "lost":
            self.close_connection = True
            return None
        if now.get("status"):
            return self.tell(now["status"])
        if "answer" in now:
            return self.tell(200, now["answer"].encode())
        actions = self.actions(json.loads(body), now.get("answers", {}))
        return self.tell(200, json.dumps({"actions": actions}).encode()) if actions else self.tell(204)

    do_GET = do_POST

    def actions(self, commit, answers):
        action = commit.get("action")
        return answers.get(action["type"]) if isinstance(action, dict) else None

    def tell(self, status, body=b"", **fields):
        self.send_response(status)
        for name, value in fields.items():
            self.send_header(name, value)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def huge(self):
        self.send_response(200)
        self.send_header("Content-Length", str(1 << 30))
        self.end_headers()
        try:
            for _ in range(1 << 10):
                self.wfile.write(b" " * (1 << 20))
        except OSError:
            self.close_connection = True

    def log_message(self, *_):
        pass


ThreadingHTTPServer(("127.0.0.1", settings()["port"]), Handler).serve_forever()
