"""A client that may read /counter and dispatch counter/* learns nothing else, by any route.

Two servers differ in nothing but what the client may not see. Each request of a table, which is made from the OpenAPI
documents and every way to name something, gets the same answer from both; and the same as one that names what is nowhere.
"""

import itertools
import json
import random
import re
import statistics
import time

import pytest

from harness.client import Client
from harness.expectations import Failure, expect
from harness.films_server import Stub
from harness.forms import of_a_night
from harness.messages import encode_request
from harness.tokens import await_token, bearer, make_token

MARK = "topsecret"
POINTERS = [
    "",
    "/tasks",
    "/tasks/ids",
    "/tasks/entities",
    "/tasks/entities/1",
    "/tasks/entities/1/title",
    "/films/films/0",
    "/session/user",
    "/navigation/route/0",
]
ADD = {"type": "counter/add", "payload": {"amount": 1}}
HIDDEN = [
    {"type": "tasks/add", "payload": {"id": 1, "title": f"{MARK}-title"}, "id": "secret-id"},
    {"type": "session/login", "payload": {"user": f"{MARK}-user"}},
    {"type": "navigation/push", "payload": {"segment": f"{MARK}-segment"}},
    # The films server has a marked film, which a follow-up brings.
    {"type": "films/load"},
]
# A commit that changes what the client may see, and something else.
MIXED = [ADD, {"type": "tasks/add", "payload": {"id": 2, "title": f"{MARK}-title"}, "id": "secret-too"}]
FILMS = [{"title": f"{MARK}-film", "director": "d", "episode_id": 1}]
EVENTS, LINES = "text/event-stream", "application/x-ndjson"


class World:
    """A server with some hidden actions, a client that may do everything, and one that may see the counter."""

    def __init__(self, workspace, hidden):
        self.workspace = workspace
        self.data = workspace.path(f"data{workspace.count()}")
        self.root = make_token(workspace, self.data, "root", "--all")
        grant = ["--read", "/counter", "--read", "actions:counter/*", "--dispatch", "counter/*"]
        self.limited = make_token(workspace, self.data, "ci", *grant)
        stub = Stub(workspace)
        stub.will(stub.films(FILMS))
        self.server = workspace.server(data=self.data, films_base_url=stub.address)
        with self.server.client() as client:
            for action in [ADD, *hidden, ADD]:
                client.commit(json.dumps(action).encode(), Prefer="wait=20", **bearer(self.root))
            client.commit(json.dumps(ADD).encode(), **bearer(self.limited))
        self.connection = self.server.client()

    def ask(self, cell, seconds=0.1):
        """The answer to a cell as text, without what differs from run to run; of a stream, what comes before so long a pause."""
        method, target, body, fields = cell
        epoch = self.epoch()
        target = target.replace("EPOCH", epoch)
        fields = {name: value.replace("EPOCH", epoch) for name, value in fields.items()} | {"X-Request-Id": "x"}
        if fields.get("Accept") in (EVENTS, LINES):
            return self.normal(self.stream(method, target, fields, seconds))
        body = body.encode() if body is not None else None
        answer = self.connection.request(method, target, body, fields | bearer(self.limited))
        lines = [f"{name}: {value}" for name, value in answer.fields.items() if name.lower() != "date"]
        return self.normal("\n".join([str(answer.status), *lines, answer.body.decode()]))

    def stream(self, method, target, fields, seconds):
        with Client(self.server.port, timeout=seconds) as client:
            client.send(encode_request(method, target, None, fields | bearer(self.limited)))
            try:
                while True:
                    data = client.socket.recv(1 << 16)
                    if not data:
                        break
                    client.buffer += data
                    # Only a stream goes on behind what has come.
                    if b"\r\n\r\n" in client.buffer and not client.buffer.startswith(b"HTTP/1.1 200"):
                        break
            except TimeoutError:
                pass
            text = client.buffer.decode()
        return re.sub(r"Date: [^\r]*", "", text)

    def epoch(self):
        return self.connection.get("/v1", **bearer(self.root)).json["epoch"]

    def normal(self, text):
        text = text.replace(self.epoch(), "EPOCH")
        text = re.sub(r"\d{4}-\d\d-\d\dT[\d:.]+Z", "TIME", text)
        return re.sub(r"retry: \d+", "retry", text)


def reads(documents):
    """Every GET and HEAD of the whole description, with every way to name something that the client may not see."""
    for path in documents["/v1"]["paths"]:
        if "{second}" in path or not path.startswith("/v1"):
            # A part of a part is below, by its pointer; a probe has no part in the state.
            continue
        if "get" not in documents["/v1"]["paths"][path]:
            continue
        names = parameters_of(documents["/v1"], path)
        places = [path.replace("{fork}", "none").replace("{page}", "Guides/Page.md")]
        if "{pointer}" in path:
            places = [path.replace("/{pointer}", pointer) for pointer in POINTERS]
        if "{id}" in path:
            known = ("secret-id", "secret-too", "EPOCH.2", "EPOCH.3", "EPOCH.7", "EPOCH.99")
            places = [path.replace("{id}", name) for name in known]
        for place in places:
            yield from variants(place, names)
    for store, document in documents.items():
        if store != "/v1":
            for path in document["paths"]:
                if "{second}" in path:
                    continue
                names = parameters_of(document, path)
                yield from variants(path.replace("/{pointer}", "/ids").replace("{id}", "secret-id"), names)


def parameters_of(document, path):
    """The names of the parameters of a GET."""
    known = document["components"]["parameters"]
    references = document["paths"][path]["get"]["parameters"]
    return [known[reference["$ref"].rpartition("/")[2]]["name"] for reference in references]


def variants(place, names):
    """A path by itself, with each of its parameters, and as a stream."""
    values = {
        "version": ["0", "2", "3"],
        "until": [json.dumps(f"{MARK}-title") + "&wait=0.01", "[1]&wait=0.01"],
        "at-least": ["EPOCH.3"],
        "as": ["keyed", "keyed&since=EPOCH.1", "keyed&since=aaaaaaaaaaaaaaaa.1"],
        "wait": ["0.01"],
        "pretty": ["true"],
    }
    if "since" in names and "limit" in names:
        values = {
            "since": ["oldest", "now", "EPOCH.1", "EPOCH.3", "aaaaaaaaaaaaaaaa.1&on-lost=snapshot", "oldest&as=keyed"],
            "since=oldest&path": POINTERS,
            "since=oldest&types": [action["type"] for action in HIDDEN] + ["films/set", "counter/add"],
            "since=oldest&by": ["root", "ci"],
            "since=oldest&limit": ["1", "2"],
        }
    for method in ("GET", "HEAD"):
        yield method, place, None, {}
        for name, list_of_values in values.items():
            if name.split("&")[0].split("=")[0] in names:
                for value in list_of_values:
                    yield method, f"{place}?{name}={value}", None, {}
    if "wait" in names:
        yield "GET", place + "?wait=0.01", None, {"If-None-Match": '"aaaaaaaaaaaaaaaaaaaaaaaaaa"'}
        query = "?since=oldest" if "limit" in names else ""
        yield "GET", place + query, None, {"Accept": EVENTS}
    if "limit" in names:
        for query in ("oldest&path=/tasks", "oldest&path=", "oldest&by=root", "aaaaaaaaaaaaaaaa.1"):
            yield "GET", f"{place}?since={query}", None, {"Accept": EVENTS}
        yield "GET", f"{place}?since=oldest", None, {"Accept": LINES}


def posts(documents):
    """Every POST: actions that the client may not dispatch, and preconditions on what it may not see."""
    json_fields, line_fields = {"Content-Type": "application/json"}, {"Content-Type": LINES}
    types = [action["type"] for action in documents["actions"] if not action["type"].startswith("counter/")]
    forms = [("", lambda action: json.dumps(action), json_fields), ("?dry-run=true", json.dumps, json_fields)]
    forms += [("", lambda action: json.dumps([ADD, action]), json_fields)]
    forms += [("", lambda action: json.dumps(ADD) + "\n" + json.dumps(action), line_fields)]
    payloads = {action["type"]: action.get("payload", {}) for action in HIDDEN}
    for kind in types:
        for query, form, fields in forms:
            yield "POST", "/v1/actions" + query, form({"type": kind, "payload": payloads.get(kind, {})}), fields
        store = kind.split("/")[0]
        yield "POST", f"/v1/stores/{store}/actions", json.dumps({"type": kind, "payload": {}}), json_fields
    values = [[1], f"{MARK}-title", None, {}]
    for pointer, value in itertools.product(POINTERS, values):
        action = ADD | {"expect": [{"path": pointer, "value": value}]}
        for query, form, fields in forms:
            yield "POST", "/v1/actions" + query, form(action), fields
    for pointer, tag in itertools.product(POINTERS, ("*", '"aaaaaaaaaaaaaaaaaaaaaaaaaa"')):
        for query in ("", "&dry-run=true"):
            yield "POST", f"/v1/actions?path={pointer}{query}", json.dumps(ADD), json_fields | {"If-Match": tag}
    for preference in ("return=representation", "return=minimal", "wait=1"):
        yield "POST", "/v1/actions", json.dumps(ADD), json_fields | {"Prefer": preference}
    yield "POST", "/v1/actions", json.dumps(ADD), json_fields | {"Idempotency-Key": "taken"}


@pytest.fixture
def worlds(workspace):
    # A load of films makes two commits.
    nothing = {"type": "navigation/set", "payload": {"route": []}}
    bare = [nothing] * (len(HIDDEN) + 1)
    return World(workspace, [*HIDDEN, MIXED]), World(workspace, [*bare, [ADD, nothing]])


def table(world):
    """The cells, made from what a client that may do everything is told."""
    root = bearer(world.root)
    documents = {"/v1": world.connection.get("/v1/openapi.json", **root).json}
    for store in world.connection.get("/v1/stores", **root).json["stores"]:
        documents[store["href"]] = world.connection.get(store["href"] + "/openapi.json", **root).json
    actions = world.connection.get("/v1/actions", **root).json["actions"]
    return list(reads(documents)) + list(posts({"actions": actions}))


def ask_two(questions, same):
    """The answers to two questions; to streams that are not the same, those that come with patience: on a busy machine a
    stream can pause before its first event."""
    answers = [world.ask(cell) for world, cell in questions]
    if not same(*answers) and questions[0][1][3].get("Accept") in (EVENTS, LINES):
        answers = [world.ask(cell, seconds=3) for world, cell in questions]
    return answers


def test_what_a_client_may_not_see_changes_no_answer_and_is_in_none(worlds, figures):
    secret, bare = worlds
    for world in worlds:
        world.connection.commit(json.dumps(ADD).encode(), **bearer(world.root), Idempotency_Key="taken")
    cells = table(secret)
    expect(len(cells) > 500, f"the table has {len(cells)} cells only")
    seen = set()
    for cell in cells:
        answers = ask_two([(world, cell) for world in worlds], same=lambda one, other: one == other)
        expect(answers[0] == answers[1], f"{cell} tells the worlds apart:\n{answers[0]}\n--\n{answers[1]}")
        told = MARK in answers[0] and MARK not in (cell[1] + str(cell[2]))
        expect(not told, f"{cell} tells a secret:\n{answers[0]}")
        seen.add(answers[0][:3])
    expect({"200", "404", "412", "422"} <= seen, f"the table has the answers {seen} only")
    figures(f"{len(cells)} cells")


def test_what_a_client_may_not_see_answers_as_what_is_nowhere(worlds, figures):
    secret, _ = worlds
    names = ["tasks", "session", "navigation", "films", "canvas", "secret-id", "count"]
    compared = 0
    for cell in table(secret):
        for name in names:
            # The letters of a name that is nowhere, and of the same length.
            other = name[:-1] + "q"
            words = re.compile(rf"\b{name}\b")
            renamed = tuple(words.sub(other, part) if isinstance(part, str) else part for part in cell)
            if renamed == cell:
                continue
            compared += 1

            def same(hidden, nowhere):
                return strip(words.sub(other, hidden)) == strip(nowhere)

            hidden, nowhere = ask_two([(secret, cell), (secret, renamed)], same)
            expect(same(hidden, nowhere), f"{cell} tells that {name} is there:\n{hidden}\n--\n{nowhere}")
    expect(compared > 300, f"only {compared} cells name something")
    figures(f"{compared} cells")


def strip(text):
    """The answer without what the client's own commits between two requests change."""
    text = re.sub(r"EPOCH\.\d+", "EPOCH", text)
    return re.sub(r'"(version|value)":\d+|[^\n]*ETag[^\n]*|(?i:[^\n]*Content-Length[^\n]*)', "", text)


CELLS_TIMED = {
    "a part of the state": ("GET", "/v1/state/tasks/entities/1", None, {}),
    "a view": ("GET", "/v1/views/count", None, {}),
    "a derived store": ("GET", "/v1/stores/tasks/state/ids", None, {}),
    "an ID": ("GET", "/v1/actions/secret-id", None, {}),
    "a precondition": (
        "POST",
        "/v1/actions?dry-run=true",
        json.dumps(ADD | {"expect": [{"path": "/tasks/ids", "value": [1]}]}),
        {"Content-Type": "application/json"},
    ),
}


@pytest.mark.long_form(only=True)
@pytest.mark.parametrize("name", CELLS_TIMED)
def test_what_a_client_may_not_see_answers_in_the_time_of_what_is_nowhere(worlds, figures, name):
    secret, _ = worlds
    method, target, body, fields = CELLS_TIMED[name]

    def renamed(text, end):
        return text and re.sub(r"(task|coun|secret-i)[sdt]\b", rf"\g<1>{end}", text)

    times = {"hidden": [], "nowhere": [], "nowhere else": []}
    cells = {"hidden": (target, body), "nowhere": (renamed(target, "q"), renamed(body, "q"))}
    cells["nowhere else"] = (renamed(target, "w"), renamed(body, "w"))
    order = random.Random(1)
    fields = fields | bearer(secret.limited)
    for _ in range(of_a_night(10_000)):
        for kind in order.sample(list(times), 3):
            target, body = cells[kind]
            data = encode_request(method, target, body and body.encode(), fields)
            begun = time.perf_counter_ns()
            secret.connection.send(data)
            secret.connection.receive(method)
            times[kind].append(time.perf_counter_ns() - begun)
    # A busy machine has two usual times, and the median can be either; the lower quarter is the machine at its best.
    quarters = {kind: statistics.quantiles(values)[0] / 1000 for kind, values in times.items()}
    noise = abs(quarters["nowhere"] - quarters["nowhere else"])
    difference = abs(quarters["hidden"] - quarters["nowhere"])
    figures(", ".join(f"{kind} {quarter:.2f} us" for kind, quarter in quarters.items()))
    # What a client can measure of one request is a thousand times as much.
    expect(difference <= max(0.5, 3 * noise), f"the time tells: {quarters}")


def test_a_subject_is_no_name_for_what_it_has_done_in_secret(worlds):
    """A client that may see the actions of others, of one type, finds no others by their subject."""
    secret, _ = worlds
    token = make_token_for(secret, "--read", "actions:counter/*", "--others")
    with secret.server.client() as client:
        page = client.get("/v1/changes?since=oldest&by=root", **bearer(token)).json
        types = [[action["type"] for action in aslist(change["action"])] for change in page["changes"]]
        expect(types == [["counter/add"]] * 3, f"{page}")
        token = make_token_for(secret, "--read", "/counter", "--others")
        page = client.get("/v1/changes?since=oldest&by=root", **bearer(token)).json
        expect(page["changes"] == [], f"{page}")


def aslist(action):
    """The actions of a commit, whether it has one or an array."""
    return action if isinstance(action, list) else [action]


def make_token_for(world, *options):
    """A token that the world's server knows."""
    token = make_token(world.workspace, world.data, "other", *options)
    await_token(world.server, token)
    return token


def test_the_table_finds_a_leak(worlds):
    """The comparison fails for a client that may see more."""
    secret, bare = worlds
    for world in worlds:
        world.limited = world.root
    with pytest.raises(Failure):
        for cell in table(secret)[:50]:
            answers = [world.ask(cell) for world in worlds]
            expect(answers[0] == answers[1], "told apart")
