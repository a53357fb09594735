"""SIGHUP: a server takes another file of its model between two actions, or says that it takes a restart."""

import json
import pathlib

from harness.actions import action
from harness.expectations import expect, expect_equal, wait_until
from harness.models import ROOT
from harness.server import codes
from harness.streams import StreamClient
from harness.tokens import bearer, make_token
from harness.waits import begin, finish

COUNTER = ROOT / "config/models/counter.js"
SLICE = "export const {0} = createSlice({{ name: '{0}', initialState: {{ n: 0 }}, reducers: {{ add(s) {{ s.n += 1 }}, {1}(s) {{ s.n += 10 }} }} }});\n"


def hang_up(server, said):
    before = server.log_text().count(said)
    server.process.send_signal(1)
    wait_until(lambda: server.log_text().count(said) > before, said)


def needs_restart(server):
    hang_up(server, "restart the server to take it")
    expect(server.process.poll() is None, "the process has ended", server.log_text())


def test_sighup_takes_another_file_between_two_turns_or_refuses_it(workspace):
    path = pathlib.Path(workspace.path("model.js"))
    text = COUNTER.read_text()
    path.write_text(text)
    server = workspace.server(model=path)
    with server.client() as client:
        client.commit(action("counter/add", {"amount": 1}))
        path.write_text(text.replace("state.value = sum;", "state.value = sum + 100;"))
        hang_up(server, "model loaded again")
        client.commit(action("counter/add", {"amount": 1}))
        expect_equal(client.get("/v1/state/counter/value").json, 102, "what the new reducer makes")
        path.write_text(text.replace("state.value = sum;", "state.value = ;"))
        hang_up(server, "model not loaded again")
        client.commit(action("counter/add", {"amount": 1}))
        expect_equal(client.get("/v1/state/counter/value").json, 203, "what the reducer before makes")
        # Under load: every sum is that of one of the files.
        before = client.get("/v1").json["version"]
        for number in range(20):
            path.write_text(text.replace("state.value = sum;", f"state.value = sum + {number % 2};"))
            server.process.send_signal(1)
            for _ in range(50):
                client.commit(action("counter/add", {"amount": 2}))
        cursor = client.get("/v1").json["cursor"].partition(".")[0]
        changes = client.get(f"/v1/changes?since={cursor}.{before}&limit=1000").json["changes"]
        values = [203] + [change["patch"][0]["value"] for change in changes]
        expect_equal(len(values), 1001, "the commits under load")
        # The first of them may still be of the file that adds 100.
        expect_equal({after - old for old, after in zip(values, values[1:])} - {102}, {2, 3}, "the steps")


def test_a_new_member_of_an_initial_state_is_told_until_a_version_adds_it(workspace):
    path = pathlib.Path(workspace.path("model.js"))
    path.write_text(SLICE.format("a", "old"))
    server = workspace.server(model=path)
    told = "state lacks members of initialState"
    with server.client() as client:
        client.commit(action("a/add", {}))
    wider = SLICE.format("a", "old").replace("{ n: 0 }", "{ n: 0, label: '', size: 1 }")
    path.write_text(wider)
    hang_up(server, "model loaded again")
    expect_equal(server.log_text().count(told), 1, "how often the reload says it")
    path.write_text(wider.replace("old", "new"))
    needs_restart(server)
    expect_equal(server.log_text().count(told), 1, "how often it is said with a file that is not taken")
    path.write_text(wider)
    server.stop()
    server.start()
    wait_until(lambda: told in server.log_text(), "the start says it")
    lines = [json.loads(line) for line in server.log_text().splitlines() if told in line]
    expect_equal(
        [(line["level"], line["members"]) for line in lines], [("warning", "/a/label, /a/size")], "a start's warning")
    server.stop()
    code = lines[0]["reason"].partition("to add them: ")[2]
    path.write_text(wider + code)
    server.start()
    expect_equal(server.log_text().count(told), 0, "how often it is said when the version has added it")
    with server.client() as client:
        expect_equal(client.get("/v1/state/a").json, {"label": "", "n": 1, "size": 1}, "the state")
    # The same again, with names that are no words of JavaScript, in two slices.
    server.stop()
    more = (wider + SLICE.format("b", "old")).replace("size: 1", "size: 1, '2a-\\\"': { m: [null] }").replace("{ n: 0 }", "{ n: 0, o: 1 }")
    path.write_text(wider + SLICE.format("b", "old") + code)
    server.start()
    server.stop()
    path.write_text(more + code)
    server.start()
    wait_until(lambda: told in server.log_text(), "the start says it")
    [reason] = [json.loads(line)["reason"] for line in server.log_text().splitlines() if told in line]
    server.stop()
    path.write_text(more + reason.partition("to add them: ")[2])
    server.start()
    with server.client() as client:
        expect_equal(
            client.get("/v1/state").json,
            {"_version": 3, "a": {"2a-\"": {"m": [None]}, "label": "", "n": 1, "size": 1}, "b": {"n": 0, "o": 1}}, "the state")


def test_a_file_that_declares_otherwise_takes_a_restart(workspace):
    path = pathlib.Path(workspace.path("model.js"))
    path.write_text(SLICE.format("a", "old"))
    server = workspace.server(model=path)
    with server.client() as client:
        client.commit(action("a/add", {}))
        path.write_text(SLICE.format("a", "old") + SLICE.format("b", "old"))
        needs_restart(server)
        expect_equal(codes(client.post(action("b/add", {}))), (422, "unknown-action"), "an action of the new file")
        expect_equal(client.post(action("a/old", {})).status, 200, "one of the old file")
    server.stop()
    server.start()
    with server.client() as client:
        expect_equal(client.get("/v1/state").json, {"a": {"n": 11}, "b": {"n": 0}}, "the state with the new slice")
        client.commit(action("b/add", {}))
        path.write_text(SLICE.format("b", "old"))
        hang_up(server, "model not loaded again")
        expect("at /a" in server.log_text(), "the part that the file does not have", server.log_text())
        text = SLICE.format("a", "old") + SLICE.format("b", "old") + "export const version = 2;\n"
        path.write_text(text)
        hang_up(server, "model not loaded again")
        path.write_text(text + "export const migrate = () => { throw new Error('not today'); };\n")
        hang_up(server, "not today")
        client.commit(action("b/add", {}))
        path.write_text(text + "export const migrate = (state, from) => { state.a.n += 100 * from; };\n")
        needs_restart(server)
    server.stop()
    server.start()
    with server.client() as client:
        expect_equal(client.get("/v1/state").json, {"_version": 2, "a": {"n": 111}, "b": {"n": 2}}, "the migrated state")
    server.stop()


def test_a_schema_that_fits_the_document_takes_a_restart(workspace):
    schema = pathlib.Path(workspace.path("schema.json"))
    schema.write_text('{"type": "object", "properties": {"n": {"type": "integer"}}}')
    server = workspace.server(domain="document", schema=schema)
    for most, fits in ((9, True), (3, False), (20, True)):
        with server.client() as client:
            client.commit(action("document/set", {"path": "/n", "value": 5}))
        schema.write_text(json.dumps({"type": "object", "properties": {"n": {"type": "integer", "maximum": most}}}))
        if not fits:
            hang_up(server, "the document does not fit the schema")
            continue
        needs_restart(server)
        server.stop()
        server.start()
        with server.client() as client:
            expect_equal(client.get("/v1/state").json, {"n": 5}, "the document")
            answer = client.post(action("document/set", {"path": "/n", "value": most + 1}))
            expect_equal(answer.status, 422, "a document that does not fit")
    server.stop()


SECRETS = """
export const notes = createSlice({ name: 'notes', initialState: { rows: { a: { owner: 'ann' }, b: { owner: 'bob' } } }, reducers: {
  note(state, { payload }) { state.rows[payload.owner] = payload },
} })
const seen = (rows, owner) => Object.fromEntries(Object.entries(rows).filter(([, row]) => LEAKS || row.owner === owner))
view('plain', ({ notes }) => seen(notes.rows, 'ann'))
view('of', ({ notes }, { owner }) => seen(notes.rows, owner),
  { parameters: { type: 'object', properties: { owner: { type: 'string' } }, required: ['owner'] } })
view('mine', ({ notes }, parameters, { subject }) => seen(notes.rows, subject))
"""


def test_a_view_is_computed_anew_by_the_functions_of_a_file_that_is_loaded_again(workspace):
    path = pathlib.Path(workspace.path("model.js"))
    path.write_text(SECRETS.replace("LEAKS", "true"))
    data = workspace.path("data")
    server = workspace.server(model=path, data=data)
    with server.client() as client:
        client.commit(action("notes/note", {"owner": "ann"}))
    server.stop()
    secret = make_token(workspace, data, "ann", "--all")
    token = bearer(secret)
    server.start()
    with server.client() as client:
        forked = client.request("POST", "/v1/forks", b"{}", {"Content-Type": "application/json", **token}).json["href"]
        addresses = ["/v1/views/plain", "/v1/views/of?owner=ann", "/v1/views/mine", "/v1/views/of?owner=ann&sort=/owner"]
        addresses.append(f"{forked}/views/plain")
        before = {address: client.get(address, **token) for address in addresses}
        expect_equal({address for address, answer in before.items() if b"bob" in answer.body}, set(addresses), "the views that leak")
        tags = {address: {"If_None_Match": answer.fields["etag"], **token} for address, answer in before.items()}
        waits = [begin(server, f"{address}{'&' if '?' in address else '?'}wait=30", **tags[address]) for address in addresses]
        stream = StreamClient(server.port, f"/v1/views/mine?access_token={secret}").begin()
        event = stream.next()
        expect("bob" in event.data, "the stream begins with what leaks", event)
        wait_until(lambda: client.get("/v1/operations", **token).json["waitersCount"] == 4, "the waits are parked")
        path.write_text(SECRETS.replace("LEAKS", "false"))
        hang_up(server, "model loaded again")
        for wait, address in zip(waits, addresses):
            answer, _ = finish(wait)
            expect(b"bob" not in answer.body, f"the wait for {address}:", answer)
        expect(all("bob" not in event.data for event in stream.watch(5)) and stream.has_ended, "the stream goes on")
        for address in addresses:
            answer = client.get(address, **tags[address])
            expect(answer.status == 200 and b"bob" not in answer.body, f"{address} is of the functions before:", answer)
        again = StreamClient(server.port, f"/v1/views/mine?access_token={secret}", last_id=event.id).begin()
        expect("bob" not in again.next().data, "the stream that is resumed")
