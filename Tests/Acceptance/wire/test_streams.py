"""Streams as the HTTP libraries of clients read them."""

import asyncio
import json
import re
import socket
import threading
import time

import pytest
from harness.actions import action, add, batch
from harness.expectations import expect, expect_equal
from harness.messages import HOST, encode_request
from harness.streams import EVENTS, LINES, open_stream
from harness.wire import converse, judge_document, judge_one_answer, parse_chunks, parse_head

TARGETS = {
    "commits as events": ("/v1/changes?since=now", EVENTS),
    "commits as lines": ("/v1/changes?since=now", LINES),
    "a value": ("/v1/state/counter", EVENTS),
}
# The longest line that aiohttp 3.14 reads.
LINE_BYTES_MAX = 512 << 10


class RawStream:
    """The bytes of a stream, as they came."""

    def __init__(self, port, target, form=EVENTS, version="HTTP/1.1", **fields):
        self.socket = socket.create_connection((HOST, port), 5)
        request = encode_request("GET", target, fields={"Accept": form} | fields)
        self.socket.sendall(request.replace(b"HTTP/1.1", version.encode(), 1))
        data = bytearray()
        while b"\r\n\r\n" not in data:
            part = self.socket.recv(1 << 18)
            expect(part, "the stream ended within its head:", bytes(data))
            data += part
        head, _, rest = bytes(data).partition(b"\r\n\r\n")
        self.status, self.fields = parse_head(head)
        self.data = bytearray(rest)

    @property
    def is_chunked(self):
        return self.fields.get("transfer-encoding", "").lower() == "chunked"

    def content(self):
        return parse_chunks(bytes(self.data))[0] if self.is_chunked else bytes(self.data)

    def read_until(self, condition, seconds=5):
        """Reads until the content meets the condition, and returns it."""
        end = time.monotonic() + seconds
        while not condition(self.content()):
            left = end - time.monotonic()
            expect(left > 0, f"not within {seconds} s:", self.content()[-300:])
            self.socket.settimeout(left)
            try:
                part = self.socket.recv(1 << 18)
            except TimeoutError:
                continue
            if not part:
                break
            self.data += part
        return self.content()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.socket.close()


@pytest.mark.parametrize("name", TARGETS)
def test_a_stream_of_http_1_1_is_chunked_and_each_event_comes_in_whole_chunks(server, name):
    """So a client knows an event as soon as it has come, and an end from a loss."""
    target, form = TARGETS[name]
    with server.client() as client, RawStream(server.port, target, form) as stream:
        expect_equal(stream.status, 200, "the status")
        expect(stream.is_chunked and "content-length" not in stream.fields, "no chunks:", stream.fields)
        if name == "a value":
            stream.read_until(lambda content: b"snapshot" in content)
        for _ in range(3):
            cursor = client.commit(add(1))["cursor"].encode()
            content = stream.read_until(lambda content: cursor in content)
            expect(content.endswith(b"\n"), "an event in parts:", content[-200:])


@pytest.mark.parametrize("name", TARGETS)
def test_a_stream_of_http_1_0_has_no_chunks_and_ends_with_its_connection(server, name):
    target, form = TARGETS[name]
    with server.client() as client, RawStream(server.port, target, form, "HTTP/1.0") as stream:
        expect_equal(stream.status, 200, "the status")
        expect("transfer-encoding" not in stream.fields, "chunks for HTTP/1.0:", stream.fields)
        cursor = client.commit(add(1))["cursor"].encode()
        stream.read_until(lambda content: cursor in content)


def test_a_stream_that_ends_ends_with_the_last_chunk(workspace):
    """A stream whose life is over, and one whose server stops."""
    server = workspace.server(data="none", stream_seconds_max=2, heartbeat_seconds=1)
    with RawStream(server.port, "/v1/changes?since=now") as stream:
        stream.socket.settimeout(5)
        while part := stream.socket.recv(1 << 16):
            stream.data += part
            if stream.data.endswith(b"0\r\n\r\n"):
                break
        expect(stream.is_chunked and parse_chunks(bytes(stream.data))[2], "no last chunk:", bytes(stream.data[-100:]))
    server = workspace.server(data="none")
    with RawStream(server.port, "/v1/changes?since=now") as stream:
        server.terminate()
        stream.socket.settimeout(5)
        while part := stream.socket.recv(1 << 16):
            stream.data += part
        expect(stream.is_chunked and parse_chunks(bytes(stream.data))[2], "no last chunk:", bytes(stream.data[-100:]))
        server.wait()


@pytest.mark.parametrize("name", ["commits as events", "a value"])
def test_a_stream_opens_at_once_with_an_event_that_has_an_id(server, name):
    """A client that loses the connection before anything happens comes back to where it was.

    The first block has an `id`, and data: some readers make an event of a block without.
    """
    target, form = TARGETS[name]
    with RawStream(server.port, target, form) as stream:
        content = stream.read_until(lambda content: b"\nid:" in content and content.endswith(b"\n\n"), 2)
        expect(re.search(r"^id: ?\S+", content.decode(), re.MULTILINE), "the beginning has no id:", content)


@pytest.mark.parametrize("target, last_id", [
    ("/v1/state/counter", None), ("/v1/state/nowhere", None), ("/v1/state/counter", "aaaaaaaaaaaaaaaa.1"), ("/v1/views/count", None),
    ("/v1/state/tasks/entities?filter=@.done%20==%20false", None), ("/v1/changes?since=now", None), ("/v1/changes?since=oldest", None),
    ("/v1/changes?since=now", "aaaaaaaaaaaaaaaa.1"), ("/v1/changes?since=oldest&types=tasks/add", None)])
def test_each_block_of_a_stream_has_data(server, target, last_id):
    with server.client() as client:
        client.commit(add(1))
        with RawStream(server.port, target, **({"Last-Event-ID": last_id} if last_id else {})) as stream:
            client.commit(add(1))
            content = stream.read_until(lambda content: content.endswith(b"\n\n") and b"data:" in content, 2)
    blocks = [block for block in content.split(b"\n\n") if block.replace(b":", b"").strip()]
    expect(blocks and blocks[0].startswith(b"retry: "), "the first block has no retry:", content)
    expect(all(b"\ndata:" in block for block in blocks), "a block has no data:", content)


def test_a_client_that_lost_its_connection_before_the_first_commit_misses_nothing(server):
    with server.client() as client:
        with RawStream(server.port, "/v1/changes?since=now") as stream:
            content = stream.read_until(lambda content: b"\nid:" in content and content.endswith(b"\n\n"), 2).decode()
        last_id = re.search(r"^id: ?(\S+)", content, re.MULTILINE)[1]
        cursor = client.commit(add(1))["cursor"].encode()
        with RawStream(server.port, "/v1/changes?since=now", **{"Last-Event-ID": last_id}) as stream:
            stream.read_until(lambda content: b"id: " + cursor in content, 2)


@pytest.mark.parametrize("target", ["/v1/changes?since=now&limit=5", "/v1/changes?since=oldest&limit=1"])
@pytest.mark.parametrize("form", [EVENTS, LINES], ids=["events", "lines"])
def test_limit_on_a_stream_is_refused(server, target, form):
    received = converse(server.port, encode_request("GET", target, fields={"Accept": form}), seconds=1)
    judge_document(judge_one_answer(received), {400})


def commit_later(server, count, pause):
    """Commits so many times, with pauses, in a thread; the times of the commits."""
    times = []

    def run():
        with server.client() as client:
            for _ in range(count):
                time.sleep(pause)
                times.append(time.monotonic())
                client.commit(add(1))

    thread = threading.Thread(target=run)
    thread.start()
    return thread, times


COUNT, PAUSE, PROMPT = 4, 0.4, 0.3


@pytest.mark.prompt
def test_requests_gets_each_event_as_it_happens(server):
    requests = pytest.importorskip("requests", reason="the library `requests` is not installed")
    with requests.get(
        f"http://{HOST}:{server.port}/v1/changes?since=now", headers={"Accept": EVENTS}, stream=True, timeout=3
    ) as answer:
        thread, times = commit_later(server, COUNT, PAUSE)
        delays = []
        try:
            for line in answer.iter_lines():
                if line.startswith(b"data:") and b'"version"' in line:
                    delays.append(time.monotonic() - times[len(delays)])
                    if len(delays) == COUNT:
                        break
        except requests.exceptions.ConnectionError:
            pass  # nothing came for 3 s
        thread.join()
    judge_delays(delays)


def judge_delays(delays):
    expect_equal(len(delays), COUNT, "the number of events that came")
    expect(max(delays) < PROMPT, "events came late, by so many seconds:", [round(delay, 2) for delay in delays])


@pytest.mark.prompt
def test_sseclient_gets_each_event_as_it_happens(server):
    requests = pytest.importorskip("requests", reason="the library `requests` is not installed")
    sseclient = pytest.importorskip("sseclient", reason="the library `sseclient-py` is not installed")
    with requests.get(
        f"http://{HOST}:{server.port}/v1/changes?since=now", headers={"Accept": EVENTS}, stream=True, timeout=3
    ) as answer:
        thread, times = commit_later(server, COUNT, PAUSE)
        delays = []
        try:
            for event in sseclient.SSEClient(answer).events():
                if event.event == "change":
                    delays.append(time.monotonic() - times[len(delays)])
                    if len(delays) == COUNT:
                        break
        except requests.exceptions.ConnectionError:
            pass  # nothing came for 3 s
        thread.join()
    judge_delays(delays)


@pytest.mark.prompt
def test_aiohttp_gets_each_event_as_it_happens(server):
    aiohttp = pytest.importorskip("aiohttp", reason="the library `aiohttp` is not installed")

    async def read():
        async with aiohttp.ClientSession() as session:
            target = f"http://{HOST}:{server.port}/v1/changes?since=now"
            async with session.get(target, headers={"Accept": EVENTS}) as answer:
                thread, times = commit_later(server, COUNT, PAUSE)
                delays = []
                async for line in answer.content:
                    if line.startswith(b"data:") and b'"version"' in line:
                        delays.append(time.monotonic() - times[len(delays)])
                        if len(delays) == COUNT:
                            break
                thread.join()
                return delays

    judge_delays(asyncio.run(asyncio.wait_for(read(), 10)))


def many_tasks(count, first=0):
    return batch(
        *[action("tasks/add", {"id": first + number, "title": "x" * 100}) for number in range(count)],
    )


LARGE = {"commits": "/v1/changes?since=now", "a value": "/v1/state/tasks"}


@pytest.mark.parametrize("name", LARGE)
def test_no_line_of_an_event_of_a_megabyte_is_longer_than_readers_take(workspace, name):
    """The event is split into `data:` lines between the tokens of its JSON; together they are the same JSON."""
    server = workspace.server(data="none")
    with server.client() as client, RawStream(server.port, LARGE[name]) as stream:
        cursor = client.commit(many_tasks(6000))["cursor"]
        ending = f"id: {cursor}\n".encode()
        content = stream.read_until(
            lambda content: ending in content and content.endswith(b"\n\n") and len(content) > 700_000, 10
        )
        block = next(block for block in content.split(b"\n\n") if ending in block + b"\n" and len(block) > 700_000)
        longest = max(len(line) for line in block.split(b"\n"))
        data = b"\n".join(
            line.removeprefix(b"data:").removeprefix(b" ") for line in block.split(b"\n") if line.startswith(b"data:")
        )
        document = json.loads(data)
        if name == "a value":
            expect_equal(document, client.get("/v1/state/tasks").json, "the value")
        else:
            expect_equal(document["cursor"], cursor, "the cursor of the commit")
    expect(longest <= LINE_BYTES_MAX, f"a line of {longest} bytes, in an event of {len(block)}")


@pytest.mark.parametrize("name", LARGE)
def test_aiohttp_reads_an_event_of_a_megabyte(workspace, name):
    aiohttp = pytest.importorskip("aiohttp", reason="the library `aiohttp` is not installed")
    server = workspace.server(data="none")

    async def read():
        async with aiohttp.ClientSession() as session:
            target = f"http://{HOST}:{server.port}{LARGE[name]}"
            async with session.get(target, headers={"Accept": EVENTS}) as answer:
                async with session.post(
                    f"http://{HOST}:{server.port}/v1/actions",
                    data=many_tasks(6000),
                    headers={"Content-Type": "application/json"},
                ) as posted:
                    cursor = (await posted.json())["cursor"].encode()
                found = is_there = 0
                async for line in answer.content:
                    is_there = is_there or cursor in line
                    found += len(line) * line.startswith(b"data:")
                    if line == b"\n" and is_there and found > 700_000:
                        return

    asyncio.run(asyncio.wait_for(read(), 15))


def test_an_event_source_puts_lines_of_data_together(workspace):
    """The reader of these tests does it as the HTML standard says, and finds every commit of large batches."""
    server = workspace.server(data="none")
    with server.client() as client:
        stream = open_stream(server, "/v1/changes?since=now")
        cursors = [client.commit(many_tasks(2000, first))["cursor"] for first in (0, 2000, 4000)]
        events = stream.until(lambda event: event.id == cursors[-1])
        found = [event.json["cursor"] for event in events if event.name == "change"]
        expect_equal(found, cursors, "the cursors of the commits")
        stream.close()
