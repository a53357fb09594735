"""The state stream of a model: a slice of an entity adapter is told entity by entity."""

import pathlib
import random

from harness.actions import action
from harness.expectations import expect, expect_equal

MODEL = """
const adapter = createEntityAdapter();
const things = createSlice({
  name: 'things', initialState: adapter.getInitialState({ filter: 'all' }),
  reducers: {
    add: adapter.addOne, many: adapter.addMany, change: adapter.updateOne, remove: { payload: { type: 'string' }, reducer: adapter.removeOne }, clear: adapter.removeAll, all: adapter.setAll,
    filter: { payload: { type: 'string' }, reducer(state, { payload }) { state.filter = payload; state[payload] = { n: 1 }; } },
    odd(state) { delete state.entities['1']; },
    swap(state) { return { ...adapter.getInitialState(), other: 1 }; },
  },
});
const plain = createSlice({ name: 'plain', initialState: { list: [] }, reducers: { push(state, { payload }) { state.list.push(payload); } } });
"""


class Follower:
    """The state as the messages of the state stream make it."""

    def __init__(self, server):
        self.server, self.offset, self.values, self.sizes = server, "-1", {}, []

    def read(self):
        """Takes all messages up to the newest version; returns how many bytes they had."""
        size = 0
        while True:
            with self.server.client() as client:
                answer = client.get(f"/v1/streams/state?offset={self.offset}")
            expect_equal(answer.status, 200, "the status")
            size += len(answer.body)
            for message in answer.json:
                if "type" not in message:
                    continue
                place = message["type"], message["key"]
                known = place in self.values
                operation = message["headers"].get("operation")
                if operation == "delete":
                    expect(known, "a removed entity was not there", message)
                    del self.values[place]
                else:
                    expect_equal(operation, "update" if known else "insert", f"the operation of {place}")
                    self.values[place] = message["value"]
            self.offset = answer.fields["stream-next-offset"]
            if "stream-up-to-date" in answer.fields:
                return size

    def things(self):
        """The slice, as its messages make it."""
        links = {key: value["after"] for (kind, key), value in self.values.items() if kind == "things.ids"}
        followers, ids = {after: key for key, after in links.items()}, []
        while len(ids) < len(links):
            ids.append(followers[ids[-1] if ids else None])
        state = {key: value for (kind, key), value in self.values.items() if kind == "things"}
        entities = {key: value for (kind, key), value in self.values.items() if kind == "things.entities"}
        return state | {"ids": ids, "entities": entities}


def state_of(server):
    with server.client() as client:
        state = client.get("/v1/state/things").json
    return state | {"ids": [str(each) for each in state["ids"]]}


def test_a_table_of_a_model_is_told_entity_by_entity(workspace):
    path = pathlib.Path(workspace.path("model.js"))
    path.write_text(MODEL)
    server = workspace.server(model=path, model_milliseconds_max=1000)
    types = server.client().get("/v1/streams").json["streams"][1]["types"]
    expect_equal({each["type"] for each in types}, {"things", "things.entities", "things.ids", "plain", "."}, "the types")
    chance = random.Random(f"{workspace.seed}/state stream")
    early, late = Follower(server), Follower(server)
    early.read()
    known = []
    with server.client() as client:
        for number in range(300):
            kind = chance.choice(["add", "add", "add", "change", "change", "remove", "filter", "push"] + ["clear", "all", "swap"] * (number % 20 == 0))
            if kind == "add":
                known.append(str(number))
                client.commit(action("things/add", {"id": known[-1], "title": "x"}))
            elif kind == "change" and known:
                client.commit(action("things/change", {"id": chance.choice(known), "changes": {"title": f"y{number}"}}))
            elif kind == "remove" and known:
                client.commit(b'{"type":"things/remove","payload":"%s"}' % known.pop(chance.randrange(len(known))).encode())
            elif kind == "filter":
                client.commit(b'{"type":"things/filter","payload":"f%d"}' % chance.randrange(5))
            elif kind == "push":
                client.commit(action("plain/push", {"n": number}))
            elif kind == "all":
                known = [f"{number}a", f"{number}b"]
                client.commit(action("things/all", {"one": {"id": known[0]}, "two": {"id": known[1]}}))
            elif kind in ("clear", "swap"):
                known = []
                client.commit(action(f"things/{kind}", {}))
            if number % 30 == 0:
                early.read()
                expect_equal(early.things(), state_of(server), f"the follower's state after {number} actions")
        early.read()
        late.read()
        for follower in (early, late):
            expect_equal(follower.things(), state_of(server), "the state of a follower")
            expect_equal(follower.values["plain", "list"], client.get("/v1/state/plain/list").json, "the other slice")
        # An ID whose entity is gone, which only a reducer of one's own makes.
        client.commit(action("things/all", {"one": {"id": "1"}, "two": {"id": "2"}}))
        client.commit(action("things/odd", {}))
        odd = Follower(server)
        odd.read()
        expect_equal(odd.things(), {**state_of(server)}, "a state with an ID without an entity")
        # One of 5,000 costs what it is.
        client.commit(action("things/many", {f"k{each}": {"id": f"k{each}", "title": "x" * 50} for each in range(5000)}))
        early.read()
        client.commit(action("things/change", {"id": "k77", "changes": {"title": "z"}}))
        size = early.read()
        expect(size < 500, "the bytes of one changed entity", size)
        expect_equal(early.things(), state_of(server), "the last state")
    server.restart()
    again = Follower(server)
    again.read()
    expect_equal(again.things(), state_of(server), "the state after a restart")
