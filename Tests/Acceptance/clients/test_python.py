"""client.py: values, waits, views, queries, refusals, tokens, other histories, and its ends."""

import os
import pathlib
import random
import socket
import subprocess
import sys
import time

import pytest

from harness.actions import action, add
from harness.expectations import expect, expect_equal, wait_until
from harness.javascript import ended, printed
from harness.programs import HERE, Program, free_port
from harness.pages import blocks
from harness.python import CLIENT, start
from harness.tokens import make_token, token_names
from harness.tools import need_module

MODEL = pathlib.Path(__file__).parent.parent / "access/rows.js"


def named(lines):
    return {name: rest[0] for name, *rest in lines if rest}


def test_a_refusal_is_a_problem_with_its_code(workspace):
    server = workspace.server()
    lines = named(ended(start(workspace, server.port, """
def add(number, **options): return store.dispatch("tasks/add", {"id": number, "title": "a"}, **options)
mine = {"expect": [{"path": "/tasks/ids", "value": [1]}], "id": "mine", "key": "of the program"}
caught("taken", lambda: add(1))
caught("rejected", lambda: add(1))
caught("wrong", lambda: add("1"))
caught("unknown", lambda: store.dispatch("tasks/ad", {}))
caught("no payload", lambda: store.dispatch("session/succeed"))
caught("unexpected", lambda: add(2, expect=[{"path": "/tasks/ids", "value": [7]}]))
caught("expected", lambda: add(2, **mine))
caught("again", lambda: add(2, **mine))
caught("reused", lambda: add(3, key="of the program"))
caught("bad key", lambda: add(3, key="\\n"))
caught("not JSON", lambda: add(math.nan))
caught("bad pointer", lambda: store.state("/tasks/~2"))
caught("bad subscription", lambda: next(store.subscribe("/tasks/~2")))
caught("no path", lambda: store.state("tasks"))
caught("no type", lambda: next(store.changes(types=["tasks/ad"])))
caught("no cursor", lambda: next(store.changes(since="yester&day")))
caught("folded", lambda: store.request("/actions/%2e%2E/changes"))
caught("other", lambda: store.request("/actions/mine").json["version"])
caught("no address", lambda: connect("localhost:8080"))
""")))
    expect_equal(
        {name: (line["status"], line["code"]) for name, line in lines.items() if "code" in line},
        {
            "rejected": (409, "tasks.duplicate"), "wrong": (422, "invalid-action"), "unknown": (422, "unknown-action"),
            "unexpected": (412, "precondition-failed"), "reused": (422, "idempotency-key-reused"),
            "no payload": (409, "session.phase"), "bad pointer": (400, "bad-pointer"), "bad subscription": (400, "bad-pointer"),
            "no type": (400, "unknown-action"), "no cursor": (400, "bad-cursor"),
        },
        "the refusals",
    )
    expect_equal((lines["rejected"]["detail"], lines["rejected"]["errors"][0]["pointer"]), ("task 1 exists already", "/payload/id"), "a fault")
    wrong = {name for name, line in lines.items() if line.get("error") == "ValueError"}
    expect_equal(wrong, {"bad key", "not JSON", "no path", "folded", "no address"}, "what no server is asked")
    receipts = [lines[name]["value"] for name in ("taken", "expected", "again")]
    expect_equal([receipt["version"] for receipt in receipts], [1, 2, 2], "the versions")
    expect_equal((receipts[1]["id"], receipts[2], lines["other"]["value"]), ("mine", receipts[1], 2), "the receipt of a repeated key")


def test_values_at_every_path_and_what_is_not_there(workspace):
    hostile = ["</script>", "\u2028\u0000\ufeff", "\U0001f600", "__proto__", "\\\"\n", "x" * 1_000_000]
    server = workspace.server(domain="document")
    lines = named(ended(start(workspace, server.port, """
names = ["", ".", "..", "a/b", "a~b", "%2F", "?", "#", "ä", "0"]
for name in names:
    store.dispatch("document/set", {"path": "/" + name.replace("~", "~0").replace("/", "~1"), "value": {"name": name, "list": [2**70, 1.5]}})
show("names", [store.state("/" + name.replace("~", "~0").replace("/", "~1") + "/name") for name in names] == names)
show("list", [store.state("/0/list/0") == 2**70, store.state("//list/1"), store.state("//list/2"), store.state("//list/-", default="x")])
show("nothing", [store.state("/no"), store.state("/no", default=7), store.state("view:no"), store.state("/0/list/01")])
for text in given:
    store.dispatch("document/set", {"path": "/text", "value": text})
    assert store.state("/text") == text
show("subscribed", [next(store.subscribe("/./name")), next(store.subscribe("/no", default="x")), next(store.subscribe("/a~1b/name"))])
""", given=hostile)))
    expect_equal(lines, {"names": True, "list": [True, 1.5, None, "x"], "nothing": [None, 7, None, None], "subscribed": [".", "x", "a/b"]}, "values")


def test_a_subscription_has_each_value_that_stays_also_none_and_not_the_others(workspace):
    server = workspace.server(domain="document", listen_also=f"127.0.0.1:{(port := free_port())}")
    script = start(workspace, port, """
threads = [aside(lambda path=path: [show(path, value) for value in store.subscribe(path, default="nothing")]) for path in given]
""", given=["/a", "/a/b", "//c"])

    def last(path, value):
        wait_until(lambda: printed(script, path)[-1:] == [[value]], f"{path} is {value}", 20)

    def put(client, path, value):
        client.commit(action("document/set", {"path": path, "value": value}))

    with server.client() as client:
        last("/a/b", "nothing")
        for value in (1, True, 1.5, "1", None):
            put(client, "/a", {"b": value})
            last("/a/b", value)
        put(client, "/", {"c": 1, "d": 1})
        last("//c", 1)
        put(client, "/", {"c": 1, "d": 2})
        client.commit(action("document/remove", {"path": "/a"}))
        last("/a/b", "nothing")
    server.restart()
    with server.client() as client:
        put(client, "/a", {"b": 2})
        put(client, "/", {"c": 3})
        last("/a/b", 2)
        last("//c", 3)
    expect_equal(printed(script, "/a/b"), [[each] for each in ("nothing", 1, True, 1.5, "1", None, "nothing", 2)], "each value once")
    expect_equal(printed(script, "//c"), [["nothing"], [1], [3]], "each value inside once")
    script.process.terminate()


def test_a_wait_ends_with_the_value_or_with_its_time(workspace):
    server = workspace.server()
    script = start(workspace, server.port, """
threads = [aside(caught, name, work) for name, work in {
    "there": lambda: store.wait("/tasks/entities/1/title"), "equal": lambda: store.wait("/counter/value", until=5),
    "late": lambda: store.wait("/counter/value", until=77, seconds=1), "missing": lambda: store.wait("/tasks/entities/9", seconds=1),
    "now": lambda: store.wait("/counter/value", seconds=0), "never": lambda: store.wait("/tasks/entities/9", seconds=0),
    "text": lambda: store.wait("/session/phase", until="loggedOut"), "view": lambda: store.wait("view:tasks.open", until=[1]),
}.items()]
show("begun")
""")
    with server.client() as client:
        wait_until(lambda: printed(script, "text") and server.metric(client, "waiters") == 5, "the others wait")
        # The next commit changes it again.
        client.commit(b"[" + b",".join([add(2)] * 2) + b"]")
        client.commit(add(1))
        client.commit(add(1))
        client.commit(action("tasks/add", {"id": 1, "title": "milk"}))
    lines = named(ended(script))
    expect_equal(
        {name: line.get("value", line.get("error")) for name, line in lines.items()},
        {"there": "milk", "equal": 5, "late": "TimeoutError", "missing": "TimeoutError", "now": 0,
         "never": "TimeoutError", "text": "loggedOut", "view": [1]}, "the ends")


def test_views_and_queries_now_and_as_loops(workspace):
    chance = random.Random(workspace.seed)
    server = workspace.server(model=MODEL, data="none")
    script = start(workspace, server.port, """
live = {
    "by ann": store.view("by", {"owner": "ann", "first": None}), "by ben": store.view("by", {"first": 2, "owner": "b e&n"}),
    "texts": store.query("/rows", filter="@.owner == 'ann'", sort=["-/text"], fields="/text", count=True),
}
def follow(name):
    for value in live[name]: show(name, value)
for name in live: aside(follow, name)
caught("refused", lambda: store.view("by").value())
caught("bad query", lambda: next(iter(store.query("/rows", filter="@ ="))))
caught("odd", lambda: store.query("//a"))
caught("now", lambda: store.query("/rows/x", limit=3).value(default="nothing"))
""")
    rows = {}
    with server.client() as client:
        for number in range(20):
            key, row = f"r{number:02}", {"owner": chance.choice(["ann", "b e&n"]), "text": f"{chance.random()}"}
            rows[key] = row
            client.commit(action("rows/put", {"id": key, **row}))
    keys = {owner: [key for key in sorted(rows) if rows[key]["owner"] == owner] for owner in ("ann", "b e&n")}
    texts = sorted(((rows[key]["text"], key) for key in keys["ann"]), reverse=True)
    expected = {
        "by ann": keys["ann"], "by ben": keys["b e&n"][:2],
        "texts": {"members": [{"key": key, "value": {"text": text}} for text, key in texts], "count": len(texts)},
    }
    wait_until(lambda: {name: printed(script, name)[-1:] for name in expected} == {name: [[value]] for name, value in expected.items()}, "the last values")
    wait_until(lambda: printed(script, "now"), "the script is at its end")
    lines = named(script.printed())
    expect_equal((lines["refused"]["code"], lines["bad query"]["code"]), ("bad-parameter", "invalid-query"), "the refusals")
    expect_equal((lines["odd"], lines["now"]), ({"error": "ValueError"}, {"value": "nothing"}), "a query on nothing")


def test_a_revoked_token_ends_everything_with_a_problem(workspace):
    data = workspace.path("data")
    make_token(workspace, data, "all", "--all")
    token = make_token(workspace, data, "page", "--read", "/counter", "--dispatch", "counter/*")
    server = workspace.server(data=data)
    script = start(workspace, server.port, """
def drain(name, loop): caught(name, lambda: [show("item", name, item) for item in loop])
threads = [aside(drain, "changes", store.changes(since="oldest")), aside(drain, "values", store.subscribe("/counter/value"))]
mine = connect(url, token=lambda: token)
caught("hidden", lambda: [mine.state("/tasks"), mine.state("/counter/value")])
caught("own", lambda: store.dispatch("counter/add", {"amount": 1})["version"])
for thread in threads: thread.join()
caught("dispatch", lambda: store.dispatch("counter/add", {"amount": 1}))
caught("bad", lambda: connect(url, token="other").state("/counter"))
""", token)
    wait_until(lambda: len(printed(script, "item")) == 3, "the loops are there")
    command = [workspace.binary, "token", "revoke", token_names(data)["page"], "--data", data]
    subprocess.run(command, check=True, capture_output=True)
    lines = named(ended(script))
    expect_equal((lines["hidden"], lines["own"]), ({"value": [None, 0]}, {"value": 1}), "what the token may do")
    for name in ("changes", "values", "dispatch", "bad"):
        expect_equal((lines[name]["status"], lines[name]["code"]), (401, "unauthorized"), name)


def test_another_history_is_told_with_its_state(workspace):
    server = workspace.server(data="none", listen_also=f"127.0.0.1:{(port := free_port())}")
    script = start(workspace, port, """
aside(lambda: [show("value", value) for value in store.subscribe("/counter/value")])
for item in store.changes(since="oldest"): show("item", item)
""")
    with server.client() as client:
        client.commit(add(3))
    wait_until(lambda: printed(script, "item") and [3] in printed(script, "value"), "the commit is there")
    server.restart()
    wait_until(lambda: len(printed(script, "item")) == 2 and printed(script, "value")[-1] == [0], "the loops know", 20)
    with server.client() as client:
        before = client.get("/v1/state")
        client.commit(add(5))
    wait_until(lambda: len(printed(script, "item")) == 3 and printed(script, "value")[-1] == [5], "the next", 20)
    (first,), (reset,), (second,) = printed(script, "item")
    expect_equal(reset, {"reset": True, "reason": "cursor-lost", "state": before.json, "cursor": before.cursor}, "what is told")
    expect_equal((first["version"], second["version"]), (1, 1), "the versions")


def test_close_ends_loops_waits_and_requests_of_other_threads(workspace):
    server = workspace.server()
    script = start(workspace, server.port, """
threads = [
    aside(caught, "changes", lambda: list(store.changes())), aside(caught, "values", lambda: list(store.subscribe("/counter/value"))),
    aside(caught, "wait", lambda: store.wait("/nothing")),
]
show("begun")
time.sleep(given)
with store: pass
for thread in threads: thread.join(2)
show("over", [thread.is_alive() for thread in threads])
caught("state", lambda: store.state())
""", given=1)
    lines = named(ended(script))
    expect_equal((lines["changes"], lines["values"], lines["over"]), ({"value": []}, {"value": [0]}, [False] * 3), "the ends")
    expect_equal([lines[name]["code"] for name in ("wait", "state")], ["no-answer"] * 2, "the requests")
    with server.client() as client:
        wait_until(lambda: server.metric(client, "waiters") == 0, "nothing waits any more")


def test_a_limit_holds_where_a_server_says_nothing_and_a_wait_costs_no_requests(workspace):
    with socket.create_server(("127.0.0.1", 0)) as silent:
        begin = time.monotonic()
        lines = named(ended(start(workspace, silent.getsockname()[1], """
caught("dispatch", lambda: store.dispatch("counter/add", {"amount": 1}, seconds=0.5))
caught("state", lambda: store.state("/counter", seconds=0.5))
""")))
        expect(time.monotonic() - begin < 5, "the limits did not hold")
    expect_equal([(lines[name]["status"], lines[name]["code"]) for name in ("dispatch", "state")], [(0, "no-answer")] * 2, "the limits")
    server = workspace.server()
    script = start(workspace, server.port, """
requests, send = [], store._send
store._send = lambda *given: [requests.append(given), send(*given)][1]
for work in (store.changes(), store.subscribe("/counter"), store.subscribe("/nothing")): aside(list, work)
time.sleep(2)
show("requests", len(requests))
store.close()
""")
    expect_equal(named(ended(script))["requests"], 6, "the requests of three loops that wait")


@pytest.mark.parametrize("status, field, least", [(503, "1", 1.0), (429, "1", 1.0), (502, None, 0.0), (409, "1", None)])
def test_a_busy_server_is_asked_again_when_it_says_so_with_the_same_key(workspace, status, field, least):
    server = workspace.server()
    lines = named(ended(start(workspace, server.port, """
import http.client, storekeeper
sent, send = [], store._send
def busy_first(method, path, headers, body, seconds):
    sent.append([time.monotonic(), headers["Idempotency-Key"]])
    if len(sent) > 1: return send(method, path, headers, body, seconds)
    headers = http.client.HTTPMessage()
    if given[1]: headers["Retry-After"] = given[1]
    return storekeeper.Answer(given[0], headers, b"<html>")
store._send = busy_first
caught("dispatch", lambda: store.dispatch("counter/add", {"amount": 1})["version"])
show("sent", [[time for time, _ in sent], len({key for _, key in sent})])
""", given=[status, field])))
    times, keys = lines["sent"]
    if least is None:
        expect_equal((lines["dispatch"]["code"], len(times)), ("status-409", 1), "a refusal")
        return
    expect_equal((lines["dispatch"], len(times), keys), ({"value": 1}, 2, 1), "the attempts, and their keys")
    expect(least <= times[1] - times[0] < least + 2, f"the second attempt came after {times[1] - times[0]} s")


ANSWERS = """
import http.client, storekeeper
sent = []
def answers(answer):
    def send(method, path, headers, body, seconds):
        sent.append((headers, seconds))
        status, text = answer(headers, body)
        return storekeeper.Answer(status, http.client.HTTPMessage(), text.encode())
    storekeeper.Store._send = lambda _, *request: send(*request)
"""


@pytest.mark.parametrize("tokens, code, sent", [("ab", None, "ab"), ("aa", "unauthorized", "aa"), ("acb", "unauthorized", "ac")])
def test_a_function_is_asked_once_more_for_a_token_that_is_refused(workspace, tokens, code, sent):
    lines = named(ended(start(workspace, 1, ANSWERS + """
answers(lambda headers, _: (200, '"seen"') if headers["Authorization"] == "Bearer b" else (401, '{"code":"unauthorized"}'))
left = list(given)
mine = connect(url, token=lambda: left.pop(0))
caught("state", mine.state)
show("sent", "".join(headers["Authorization"][-1] for headers, _ in sent))
""", given=tokens)))
    expect_equal((lines["state"].get("code"), lines["state"].get("value")), (code, None if code else "seen"), "the end")
    expect_equal(lines["sent"], sent, "the tokens that were sent")


def test_an_error_of_the_token_function_is_raised(workspace):
    lines = named(ended(start(workspace, 1, """
mine = connect(url, token=lambda: open("missing").read())
caught("state", mine.state)
caught("dispatch", lambda: mine.dispatch("counter/reset"))
caught("changes", lambda: next(mine.changes()))
caught("subscribe", lambda: next(mine.subscribe("/counter")))
""")))
    expect_equal(set(lines), {"state", "dispatch", "changes", "subscribe"}, "the uses")
    expect_equal([line["error"] for line in lines.values()], ["FileNotFoundError"] * 4, "the errors")


@pytest.mark.parametrize("text", ["<html>", "", "{"])
def test_an_answer_that_is_not_JSON_is_of_a_proxy(workspace, text):
    lines = named(ended(start(workspace, 1, ANSWERS + """
answers(lambda *_: (200, given if len(sent) == 1 else '{"cursor":"a.7","version":7,"id":"a.7","changed":true}'))
caught("dispatch", lambda: store.dispatch("counter/reset")["version"])
show("keys", [len(sent), len({headers["Idempotency-Key"] for headers, _ in sent})])
answers(lambda *_: (200, given))
caught("once", lambda: store.state(seconds=0))
if not given: caught("HEAD", lambda: store.request("/state", method="HEAD").status)
""", given=text)))
    expect_equal((lines["dispatch"], lines["keys"]), ({"value": 7}, [2, 1]), "the second attempt")
    expect_equal(lines["once"]["code"], "no-answer", "one attempt")
    if not text:
        expect_equal(lines["HEAD"], {"value": 200}, "an answer without content")


def test_a_long_body_has_its_time_to_be_sent(workspace):
    lines = named(ended(start(workspace, 1, ANSWERS + """
answers(lambda *_: (200, "{}"))
for megabytes in (0, 4): store.request("/actions", method="POST", body=bytes(megabytes << 20), seconds=1000)
show("limits", [round(seconds) for _, seconds in sent])
""")))
    expect_equal(lines["limits"], [20, 84], "the limits")


def test_a_problem_is_the_same_in_another_process(workspace):
    lines = named(ended(start(workspace, 1, """
import pickle
problem = Problem(409, {"code": "tasks.duplicate", "detail": "there", "errors": [{"pointer": "/a"}]}, 2.5)
again = pickle.loads(pickle.dumps(problem))
show("same", [vars(again) == vars(problem), str(again), again.retry_after])
""")))
    expect_equal(lines["same"], [True, "tasks.duplicate: there", 2.5], "the copy")


FORK = """
import http.server, os
held, released = threading.Event(), threading.Event()
class Handler(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    def do_GET(self):
        self.answer(json.dumps(self.client_address[1]))
    def answer(self, text):
        self.send_response(200)
        self.send_header("Content-Length", str(len(text)))
        self.end_headers()
        self.wfile.write(text.encode())
    def do_POST(self):
        self.rfile.read(int(self.headers["Content-Length"]))
        if not held.is_set():
            held.set()
            released.wait()
        self.answer('{"committed":false,"changed":false}')
    def log_message(self, *_): pass
server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
server.daemon_threads = True
aside(server.serve_forever)
store = connect(f"http://127.0.0.1:{server.server_address[1]}")
other = aside(lambda: show("dispatched", store.dispatch("held")))
held.wait()
before = store.state()
child = os.fork()
if child == 0:
    show("child", [store.state() != before, "changed" in store.dispatch("free")])
    store.close()
    os._exit(0)
os.waitpid(child, 0)
show("parent", store.state() == before)
released.set()
other.join()
server.shutdown()
"""


def test_a_fork_has_connections_and_a_queue_of_its_own(workspace):
    lines = named(ended(start(workspace, 1, FORK)))
    expect_equal(lines["child"], [True, True], "a new connection, and an action that waits for no thread of the parent")
    expect_equal((lines["parent"], "dispatched" in lines), (True, True), "the connections of the parent are as before")


LOSES_THE_FIRST_ANSWER = """
send, keys = store._send, []
def lose_first(method, path, headers, body, seconds):
    answer = send(method, path, headers, body, seconds)
    if method != "POST": return answer
    keys.append(headers["Idempotency-Key"])
    if len(keys) == 1: raise ConnectionResetError("the answer is lost")
    return answer
store._send = lose_first
"""


def test_an_array_is_one_commit_once_with_a_schedule_or_none_at_all(workspace):
    """The recipe of the guide Time: a job is taken, and goes back by itself."""
    server = workspace.server(domain="document")
    lines = named(ended(start(workspace, server.port, LOSES_THE_FIRST_ANSWER + """
def move(job, begin, end, **members):
    patch = [{"op": "move", "from": f"/{begin}/{job}", "path": f"/{end}/{job}"}]
    return {"type": "document/patch", "payload": {"patch": patch}, **members}
def take(job, **options):
    back = move(job, "taken", "jobs", schedule={"after": given, "name": job})
    return store.dispatch_all([move(job, "jobs", "taken"), back], **options)
caught("set", lambda: store.dispatch_all([
    {"type": "document/set", "payload": {"path": "/jobs", "value": {"mail-7": {}, "mail-8": {}}}, "id": "begin"},
    {"type": "document/set", "payload": {"path": "/taken", "value": {}}},
    {"type": "document/increment", "payload": {"path": "/count"}},
]))
show("keys", [len(keys), len(set(keys))])
show("set once", store.state())
caught("taken", lambda: sorted(take("mail-7", key="mine")))
show("is taken", store.state("/taken"))
caught("again", lambda: take("mail-7", key="mine")["version"])
caught("gone", lambda: take("mail-7"))
caught("unexpected", lambda: store.dispatch_all([
    {"type": "document/increment", "payload": {"path": "/count"}},
    {"type": "document/set", "payload": {"path": "/a", "value": 1}, "expect": [{"path": "/count", "value": 7}]},
]))
caught("wrong", lambda: store.dispatch_all(({"type": "document/increment", "payload": {}}, {"type": "document/set"})))
caught("empty", lambda: store.dispatch_all([]))
show("back", store.wait("/jobs/mail-7", seconds=20))
show("at the end", store.state())
""", given=0.7)))
    expect_equal(lines["set"]["value"]["version"], 1, "the version of an array whose first answer is lost")
    expect_equal((lines["keys"], lines["set once"]["count"]), ([2, 1], 1), "the attempts with the same key commit once")
    expect_equal(lines["taken"], {"value": ["changed", "cursor", "id", "scheduled", "version"]}, "the receipt")
    expect_equal((lines["is taken"], lines["again"]), ({"mail-7": {}}, {"value": 2}), "the job is taken, once")
    expect_equal(
        {name: (line["status"], line["code"]) for name, line in lines.items() if "code" in line},
        {"gone": (409, "document.no-place"), "unexpected": (412, "precondition-failed"), "wrong": (422, "invalid-action"),
         "empty": (422, "empty-batch")}, "the refusals")
    expect_equal(lines["wrong"]["errors"][0]["pointer"], "/0/payload/path", "the place of a fault")
    expect_equal(
        (lines["back"], lines["at the end"]), ({}, {"count": 1, "jobs": {"mail-7": {}, "mail-8": {}}, "taken": {}}),
        "the job is back, and nothing of a refused array is there")


def test_a_snapshot_is_where_the_changes_go_on(workspace):
    server = workspace.server(domain="document")
    lines = named(ended(start(workspace, server.port, """
def put(path, value): return store.dispatch("document/set", {"path": path, "value": value})
nothing = store.snapshot("/a")
show("nothing", nothing)
show("other nothing", [store.snapshot("/a", default=7).value, store.snapshot("view:no").value, store.snapshot("//b").value])
for number in range(3): put("/a", {"": number})
value, cursor = store.snapshot("/a")
show("there", [value, store.snapshot("/a/").value, cursor == store.snapshot().cursor == put("/b", 1)["cursor"][:-1] + "3"])
put("/a", 4)
def next_of(cursor): return [item["patch"][0]["value"] for _, item in zip(range(1), store.changes(since=cursor, path="/a"))]
show("next", next_of(nothing.cursor) + next_of(cursor))
show("state", store.state("/a"))
""")))
    value, cursor = lines["nothing"]
    expect((value, cursor[-2:]) == (None, ".0"), f"a place without a value is {value} at {cursor}")
    expect_equal(lines["other nothing"], [7, None, None], "further places without a value")
    expect_equal(lines["there"], [{"": 2}, 2, True], "the value, a value inside, and the cursor")
    expect_equal((lines["next"], lines["state"]), ([{"": 0}, 4], 4), "what follows the snapshots")


def test_the_help_lists_the_members_of_what_the_calls_return(workspace):
    lines = named(ended(start(workspace, 1, """
import pydoc
import storekeeper
for kind in (storekeeper.Receipt, storekeeper.Commit, storekeeper.Reset, storekeeper.Snapshot):
    text = pydoc.render_doc(kind, renderer=pydoc.plaintext).split("Method resolution order")[0]
    show(kind.__name__, [name for name in kind.__annotations__ if name not in text])
""")))
    expect_equal(lines, {"Receipt": [], "Commit": [], "Reset": [], "Snapshot": []}, "the members that the first lines do not name")


def test_it_is_typed_served_and_what_the_guide_says(workspace):
    server = workspace.server()
    with server.client() as client:
        answer = client.get("/v1/client.py")
        expect_equal((answer.body, answer.fields["content-type"]), (CLIENT.read_bytes(), "text/x-python; charset=utf-8"), "the file")
        expect_equal(client.get("/v1/client.py", **{"If-None-Match": answer.fields["etag"]}).status, 304, "the file again")
        client.commit(add(1))
    (_, text), _ = blocks("Guides/Clients.md", "python")
    directory = workspace.path("program")
    os.mkdir(directory)
    pathlib.Path(directory, "storekeeper.py").write_bytes(answer.body)
    expect(HERE in text, f"the program asks no server at {HERE}")
    pathlib.Path(directory, "main.py").write_text(text.replace(HERE, f"127.0.0.1:{server.port}"))
    program = Program(workspace, [sys.executable, "main.py"], directory)
    wait_until(lambda: program.process.poll() is not None, "the program has ended")
    said = pathlib.Path(program.output).read_text()
    expect_equal(program.process.returncode, 0, "the exit code, with " + program.errors())
    for line in ("counter {'value': 1}", "now [] and []", "commit 1 {'type': 'counter/add'", "commit 2 {'id': 'order-8'"):
        expect(line in said, f"the program does not print {line!r}:", said)
    need_module("mypy")
    check = [sys.executable, "-m", "mypy", "--strict", "--python-version", "3.9", "storekeeper.py", "main.py"]
    done = subprocess.run(check, cwd=directory, capture_output=True, text=True)
    expect_equal(done.returncode, 0, done.stdout)
