"""Clients that long-poll a value, and the judge of their answers."""

import time

from harness.client import ConnectionLost, connect
from harness.expectations import expect


class Poller:
    """Judges the answers to a long-poller: none that it has already, and no 304 before its time."""

    def __init__(self, path, wait):
        self.target = f"/v1/state{path}?wait={wait}"
        # The server shortens a wait by up to a sixteenth.
        self.earliest = wait * 15 / 16 - 0.05
        self.tag = None
        self.value = None
        self.version = -1
        self.changes = self.timeouts = 0

    def poll(self, client):
        start = time.monotonic()
        answer = client.get(self.target, **({"If_None_Match": self.tag} if self.tag else {}))
        self.take(answer, time.monotonic() - start)
        return answer

    def take(self, answer, seconds):
        if answer.status == 304:
            expect(seconds >= self.earliest, f"a poller was woken for nothing: 304 after {seconds:.3f} s")
            self.timeouts += 1
        else:
            expect(answer.status == 200, "a poller was answered", answer)
            tag = answer.fields["etag"]
            expect(tag != self.tag, f"a poller was woken for nothing: 200 with {tag}, which it has")
            value = answer.json
            expect(value != self.value, f"a poller was woken for nothing: another tag for the same {value}")
            self.tag, self.value = tag, value
            self.changes += 1
        expect(answer.version >= self.version, f"State-Cursor went back from {self.version} to {answer.version}")
        self.version = answer.version


def poll(port, path, finished, seconds):
    """Long-polls until `finished` is set and the value stays; returns the poller and the number of lost connections."""
    poller = Poller(path, wait=1)
    losses = 0
    client = None
    end = time.monotonic() + seconds
    while True:
        expect(time.monotonic() < end, f"a poller was not done within {seconds} s")
        was_finished = finished.is_set()
        client = client or connect(lambda: port.value)
        try:
            answer = poller.poll(client)
        except ConnectionLost:
            losses, client = losses + 1, None
            continue
        if answer.closes:
            client = None
        if was_finished and answer.status == 304:
            return poller, losses
