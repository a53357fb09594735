"""Many busy connections, served by one thread."""

import selectors
import time

from harness.expectations import expect
from harness.messages import parse_answer


class Traffic:
    """Keeps many connections busy from one thread: each has one request under way, and sends the next when answered."""

    def __init__(self, server, count, request):
        self.request = request
        self.selector = selectors.EpollSelector()
        self.clients = [server.client() for _ in range(count)]
        self.answers = [0] * count
        self.slowest = [0.0] * count
        self.times = []
        self.sent = [0.0] * count
        self.posts = 0

    def run(self, seconds=None, count=None):
        """Runs for a time, or for a number of requests; all that were sent are answered."""
        begun, done, stall = 0, 0, 20
        end = time.monotonic() + (seconds if seconds is not None else 120)
        for index, client in enumerate(self.clients):
            self.selector.register(client.socket, selectors.EVENT_READ, index)
            self._send(index)
            begun += 1
        while done < begun:
            ready = self.selector.select(stall)
            waiting = begun - done
            expect(ready, f"{waiting} of {len(self.clients)} connections had no answer for {stall} s")
            for key, _ in ready:
                index = key.data
                client = self.clients[index]
                data = client.socket.recv(1 << 16)
                expect(data, "the server closed a busy connection")
                client.buffer += data
                parsed = parse_answer(client.buffer)
                if not parsed:
                    continue
                answer, size = parsed
                del client.buffer[:size]
                expect(answer.status == 200, "a busy connection was answered", answer)
                now = time.monotonic()
                taken = now - self.sent[index]
                self.times.append(taken)
                self.slowest[index] = max(self.slowest[index], taken)
                self.answers[index] += 1
                done += 1
                if begun < count if count is not None else now < end:
                    self._send(index)
                    begun += 1
        for client in self.clients:
            self.selector.unregister(client.socket)
        return done

    def _send(self, index):
        data = self.request(index, self.answers[index])
        self.posts += data.startswith(b"POST")
        self.sent[index] = time.monotonic()
        self.clients[index].send(data)

    def close(self):
        for client in self.clients:
            client.close()
        self.selector.close()
