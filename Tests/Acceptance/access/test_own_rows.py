"""Rows of one's own: views of the subject, and pointers with {subject}, in answers, caches, waits and streams."""

import gzip
import json
import pathlib
import random
import re
import time
import urllib.parse

import pytest

from harness.actions import action
from harness.expectations import expect, expect_equal
from harness.issuer import Key, jwt, write_keys
from harness.messages import encode_request
from harness.server import codes, start_refusal
from harness.streams import StreamClient
from harness.tokens import bearer, make_token

MODEL = pathlib.Path(__file__).parent / "rows.js"
# Swift takes the last two for equal, and they are two subjects.
SUBJECTS = ["ann", "ben", "a/b~c", "ren\u00e9", "rene\u0301"]
GRANT = ["--read", "view:mine", "--read", "view:count", "--read", "/inbox/{subject}", "--dispatch", "rows/*"]


def escaped(subject):
    return urllib.parse.quote(subject.replace("~", "~0").replace("/", "~1"), safe="")


class World:
    """A server with the model, and a token for each subject and for the one who may do everything."""

    def __init__(self, workspace, subjects=SUBJECTS, grant=GRANT):
        data = workspace.path(f"data{workspace.count()}")
        self.root = make_token(workspace, data, "root", "--all")
        self.tokens = {subject: make_token(workspace, data, subject, *grant) for subject in subjects}
        self.server = workspace.server(model=MODEL, data=data)
        self.client = self.server.client()

    def put(self, identifier, owner, text="x"):
        return self.client.commit(action("rows/put", {"id": identifier, "owner": owner, "text": text}), **bearer(self.root))

    def get(self, subject, target="/v1/views/mine", **fields):
        return self.client.get(target, **bearer(self.tokens[subject]), **fields)


def test_each_subject_has_its_rows_in_answers_waits_and_streams(workspace):
    chance = random.Random(workspace.seed)
    world = World(workspace)
    rows = {}
    streams = {
        subject: StreamClient(world.server.port, f"/v1/views/mine?access_token={token}").begin()
        for subject, token in world.tokens.items()
    }

    def own(subject):
        return {key: {"owner": owner, "text": text} for key, (owner, text) in rows.items() if owner == subject}

    waits = {}
    for number in range(60):
        for subject in chance.sample(SUBJECTS, 2):
            if subject in waits:
                continue
            tag = world.get(subject).fields["etag"]
            waits[subject] = world.server.client()
            fields = bearer(world.tokens[subject]) | {"If-None-Match": tag}
            waits[subject].send(encode_request("GET", "/v1/views/mine?wait=20", fields=fields))
        owner = chance.choice(SUBJECTS)
        key = chance.choice([key for key, row in rows.items() if row[0] == owner] or [f"r{number}"])
        rows[key] = (owner, f"text {number}")
        world.put(key, *rows[key])
        if owner in waits:
            expect_equal(waits.pop(owner).receive().json, own(owner), f"what {owner} waited for")
        for subject in SUBJECTS:
            answer = world.get(subject, chance.choice(["/v1/views/mine", "/v1/views/mine?pretty"]))
            expect_equal(answer.json, own(subject), f"the rows of {subject}")
            expect_equal(world.get(subject, If_None_Match=answer.fields["etag"]).status, 304, "with its own tag")
            count = world.get(subject, f"/v1/views/count?text=text%20{number}").json
            expect_equal(count, int(subject == owner), f"the count of {subject}")
    for subject, stream in streams.items():
        events = stream.until(lambda event: event.json == own(subject))
        for event in events:
            expect(all(row["owner"] == subject for row in event.json.values()), subject, event)
    for subject, client in waits.items():
        client.socket.settimeout(0.1)
        with pytest.raises(TimeoutError):
            client.socket.recv(1)
        expect(client.buffer == b"", f"the wait of {subject} ended for rows of others")


def test_a_tag_or_a_kept_answer_of_one_subject_is_of_no_use_to_another(workspace):
    world = World(workspace, ["ann", "ben"])
    world.put("1", "ann", "secret " * 400)
    tag = world.get("ann").fields["etag"]
    # The same bytes but for the token, on one connection, again and again, also for what the transport keeps.
    for target in ("/v1/views/mine", "/v1/views/mine?pretty", "/v1/views/mine?filter=@.text"):
        for fields in ({}, {"Accept-Encoding": "gzip"}, {"If-None-Match": tag}, {"If-None-Match": "*"}):
            for _ in range(3):
                ann, ben = world.get("ann", target, **fields), world.get("ben", target, **fields)
                expect(ann.body != ben.body or ann.status == 304, target, fields, ben)
                expect(b"secret" not in ben.body and len(ben.body) < 50, target, fields, ben)
    expect_equal(world.get("ben", If_None_Match=tag).status, 200, "the tag of another")
    heads = {world.client.request("HEAD", "/v1/views/mine", None, bearer(token)).fields["content-length"] for token in world.tokens.values()}
    expect_equal(len(heads), 2, "the lengths in the heads")


def test_a_pointer_with_the_subject_is_one_token_of_the_state(workspace):
    world = World(workspace)
    for subject in [*SUBJECTS, "a", "b~c"]:
        world.client.commit(action("inbox/send", {"to": subject, "text": f"to {subject}"}), **bearer(world.root))
    for subject in SUBJECTS:
        for other in [*SUBJECTS, "a"]:
            answer = world.get(subject, f"/v1/state/inbox/{escaped(other)}")
            wanted = (200, [f"to {other}"]) if other == subject else (404, None)
            expect_equal((answer.status, answer.json if answer.status == 200 else None), wanted, f"{other} for {subject}")
        expect_equal(world.get(subject, "/v1/state/inbox").status, 404, "all of it")
        types = world.get(subject, "/v1/client.d.ts").body.decode()
        for other in SUBJECTS:
            if other not in subject and subject not in other:
                expect(json.dumps(other, ensure_ascii=False) + ":" not in types, f"the types of {subject} name {other}")


TARGETS = [
    "/v1", "/v1/views", "/v1/views/mine", "/v1/views/mine?pretty", "/v1/views/mine?count=true&filter=@.text",
    "/v1/views/mine?version=6", "/v1/views/mine?wait=0.1", "/v1/views/count?text=x", "/v1/views/count?text=hidden",
    "/v1/views/count", "/v1/views/by?owner=ben", "/v1/state", "/v1/state/rows", "/v1/state/rows/b1", "/v1/state/inbox",
    "/v1/state/inbox/ann", "/v1/state/inbox/ben", "/v1/state/inbox/ann?filter=@", "/v1/changes?since=oldest",
    "/v1/changes?since=oldest&path=/inbox/ann", "/v1/changes?since=oldest&path=/inbox/ben", "/v1/changes?since=oldest&by=root",
    "/v1/changes?since=oldest&types=rows/put", "/v1/stores", "/v1/stores/rows/state", "/v1/actions", "/v1/client.d.ts",
    "/v1/openapi.json", "/v1/streams/state?offset=-1", "/v1/operations", "/v1/me", "/v1/forks",
]


def test_two_servers_that_differ_in_hidden_rows_answer_the_same_bytes_and_tags(workspace):
    worlds = [World(workspace, ["ann", "ben"]) for _ in range(2)]
    hidden = [("hidden", "b1"), ("other text, and a longer one", "b2")]
    for world, (text, key) in zip(worlds, hidden):
        world.put("1", "ann")
        world.put(key, "ben", text)
        for to, words in (("ann", "hello"), ("ben", text)):
            world.client.commit(action("inbox/send", {"to": to, "text": words}), **bearer(world.root))
        world.put(key, "ben", text + text)
        world.put("2", "ann", "x")

    def normal(world, answer):
        epoch = world.client.get("/v1", **bearer(world.root)).json["epoch"]
        # How long an epoch is in a compressed answer depends on its letters.
        is_compressed = "content-encoding" in answer.fields
        left_out = {"date"} | ({"content-length"} if is_compressed else set())
        lines = [f"{name}: {value}" for name, value in sorted(answer.fields.items()) if name not in left_out]
        body = gzip.decompress(answer.body) if is_compressed else answer.body
        text = "\n".join([str(answer.status), *lines, body.decode()]).replace(epoch, "EPOCH")
        return re.sub(r"\d\d\d\d-\d\d-\d\dT[\d:.]+Z", "TIME", text)

    tag = worlds[0].get("ann").fields["etag"]
    for target in TARGETS:
        for fields in ({}, {"If-None-Match": tag}, {"Accept-Encoding": "gzip"}):
            one, other = (normal(world, world.get("ann", target, X_Request_Id="x", **fields)) for world in worlds)
            expect_equal(one, other, f"the answers to {target} with {fields}")
    streams = [StreamClient(world.server.port, f"/v1/views/mine?access_token={world.tokens['ann']}").begin() for world in worlds]
    firsts = [stream.next() for stream in streams]
    expect_equal(firsts[0].data, firsts[1].data, "the first events")
    for world, (text, key) in zip(worlds, hidden):
        world.put(key, "ben", text)
    for stream in streams:
        expect_equal(stream.watch(1), [], "events for rows of another")


def random_request(chance, subject):
    """A query for the rows of a subject, or its inbox, and the fields of its head."""
    asked = {}
    if chance.random() < 0.7:
        asked["filter"] = chance.choice(["@.text > 't3'", "@.owner == 'ann'", "@.text != 't1' || @.none", "length(@.text) < 4"])
    if chance.random() < 0.5:
        asked["sort"] = chance.choice(["/text", "-/text"])
    if chance.random() < 0.5:
        asked["limit"] = chance.choice([0, 1, 5])
    if chance.random() < 0.5:
        asked["count"] = "true"
    if chance.random() < 0.3:
        asked["fields"] = "/text"
    if chance.random() < 0.3:
        asked["pretty"] = "true"
    place = chance.choice(["/v1/views/mine", "/v1/views/mine", f"/v1/state/inbox/{subject}"])
    if place.startswith("/v1/state"):
        asked = {name: value for name, value in asked.items() if name in ("count", "limit", "pretty")}
    fields = {"Accept-Encoding": "gzip"} if chance.random() < 0.3 else {}
    return f"{place}?{urllib.parse.urlencode(asked)}", fields


def test_watched_queries_of_a_subject_are_the_same_whatever_others_have(workspace):
    """Two servers with the same rows of ann, and other ones of ben: her waits end at the same commits with the same bytes."""
    chance = random.Random(workspace.seed)
    worlds = [World(workspace, ["ann", "ben"]) for _ in range(2)]
    for world in worlds:
        for to in ("ann", "ben"):
            world.client.commit(action("inbox/send", {"to": to, "text": "t0"}), **bearer(world.root))
    # Each has a connection and the tag of its last answer in each world; ben's are there to be mixed up with hers.
    waits = [(subject, *random_request(chance, subject)) for subject in ["ann"] * 12 + ["ben"] * 6]
    ended = 0

    def begin(world, number):
        subject, target, fields = waits[number]
        now = world.get(subject, target, **fields)
        client = world.server.client()
        head = bearer(world.tokens[subject]) | fields | {"If-None-Match": now.fields["etag"], "X-Request-Id": "x"}
        client.send(encode_request("GET", f"{target}&wait=50", fields=head))
        return client, now.fields["etag"]

    open_waits = [[begin(world, number) for number in range(len(waits))] for world in worlds]
    for step in range(80):
        owner, kind = chance.choice(["ann", "ben"]), chance.choice(["rows", "rows", "inbox"])
        key, text = f"{owner}{chance.randrange(8)}", f"t{chance.randrange(9)}"
        for world, hidden in zip(worlds, ("one", "another, longer one")):
            said = text if owner == "ann" else f"{text} {hidden}"
            if kind == "rows":
                world.put(key, owner, said)
            else:
                world.client.commit(action("inbox/send", {"to": owner, "text": said}), **bearer(world.root))
        for number, (subject, target, fields) in enumerate(waits):
            answers = []
            for index, world in enumerate(worlds):
                client, tag = open_waits[index][number]
                now = world.get(subject, target, **fields)
                if now.fields["etag"] == tag:
                    answers.append(None)
                    continue
                answer = client.receive()
                expect_equal((answer.status, answer.body), (200, now.body), f"step {step}: the wait of {subject} for {target}")
                expect_equal(answer.fields["etag"], now.fields["etag"], "the tag")
                answers.append((answer.fields["etag"], answer.body))
                client.close()
                open_waits[index][number] = begin(world, number)
            if subject == "ann":
                expect_equal(answers[0], answers[1], f"step {step}: {target} in two worlds")
                ended += answers[0] is not None
                expect(owner == "ann" or answers[0] is None, f"step {step}: a commit of ben ended {target} of ann")
    expect(ended > 40, f"only {ended} waits of ann have ended")
    for world, opened in zip(worlds, open_waits):
        for client, _ in opened:
            client.socket.settimeout(0.02)
            with pytest.raises(TimeoutError):
                client.socket.recv(1)


def test_an_owner_may_and_another_gets_the_answer_of_what_is_not_there(workspace):
    world = World(workspace, ["ann", "ben"])
    world.client.commit(action("rows/put", {"id": "1", "text": "a"}), **bearer(world.tokens["ann"]))
    refusals = []
    for key in ("1", "2"):
        answer = world.client.post(action("rows/drop", {"id": key}), **bearer(world.tokens["ben"]))
        refusals.append((codes(answer), answer.json["detail"]))
    expect_equal(refusals, [((409, "rows.unknown"), "there is no such row of yours")] * 2, "the refusals")
    world.client.commit(action("rows/drop", {"id": "1"}), **bearer(world.tokens["ann"]))


@pytest.mark.parametrize("missing", ["jwt_keys", "jwt_issuer", "jwt_audience"])
def test_a_grant_for_every_token_needs_an_issuer_and_an_audience(workspace, missing):
    settings = {"jwt_keys": "keys.json", "jwt_issuer": "https://id.example", "jwt_audience": "tasks"}
    del settings[missing]
    start_refusal(workspace, "none", missing, jwt_grant='{"read":["view:mine"]}', **settings)


@pytest.mark.parametrize("grant", ["all", '{"read":"*"}', '{"read":["x"]}', '{"reed":["/x"]}', "{}x"])
def test_a_grant_that_is_none_is_refused(workspace, grant):
    start_refusal(workspace, "none", "jwt_grant", jwt_grant=grant, jwt_keys="k", jwt_issuer="i", jwt_audience="a")


def test_tokens_of_an_identity_provider_work_as_they_are(workspace):
    if jwt is None:
        pytest.skip("PyJWT and cryptography are not installed")
    key = Key("RS256", "k1")
    path = write_keys(workspace.path("keys.json"), key)
    server = workspace.server(
        model=MODEL, jwt_keys=path, jwt_issuer="https://id.example", jwt_audience="tasks",
        jwt_grant=json.dumps({"read": ["view:mine", "/inbox/{subject}"], "dispatch": ["rows/*"]}),
    )
    def token(subject, **others):
        claims = {"iss": "https://id.example", "aud": ["tasks", "other"], "sub": subject, "exp": time.time() + 600}
        return key.sign(claims | {"email": "x@id.example", "scope": "openid"} | others)

    with server.client() as client:
        for subject in ("auth0|ann", "auth0|ben"):
            client.commit(action("rows/put", {"id": subject, "text": "mine"}), **bearer(token(subject)))
        for subject in ("auth0|ann", "auth0|ben"):
            mine = client.get("/v1/views/mine", **bearer(token(subject))).json
            expect_equal(mine, {subject: {"owner": subject, "text": "mine"}}, f"the rows of {subject}")
            expect_equal(client.get("/v1/state/rows", **bearer(token(subject))).status, 404, "all rows")
        everything = token("root", storekeeper={"read": ["*"], "dispatch": ["*"], "others": True})
        expect_equal(len(client.get("/v1/state/rows", **bearer(everything)).json), 2, "a token with its own grant")
        for wrong in ({"aud": "other"}, {"iss": "https://else.example"}, {"exp": 1}, {"storekeeper": "all"}, {"sub": ""}):
            answer = client.get("/v1/views/mine", **bearer(token("ann", **wrong)))
            expect_equal(answer.status, 401, f"a token with {wrong}")
