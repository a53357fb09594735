"""The way back: an earlier state, or that of a fork, becomes the present one."""

import json
import random
import time

import jsonpatch
import pytest

from harness.actions import action, add
from harness.expectations import expect, expect_equal, remains, wait_until
from harness.journal import journal_output
from harness.schedules import milliseconds
from harness.tokens import bearer, make_token

MODEL = """import { createSlice, createEntityAdapter } from '@reduxjs/toolkit'
const adapter = createEntityAdapter()
export default createSlice({
  name: 'things', initialState: adapter.getInitialState({ last: 0 }),
  reducers: {
    put(state, { payload }) { adapter.setOne(state, payload); state.last = payload.id },
    drop(state, { payload }) { adapter.removeOne(state, payload.id) },
  },
})
"""


def restore(client, query="", fields=None, **payload):
    body = json.dumps({"type": "storekeeper/restore", "payload": payload}).encode()
    return client.request("POST", "/v1/actions" + query, body, {"Content-Type": "application/json", **(fields or {})})


def change_document(client, chance):
    name = f"/{chance.choice('abc')}/{chance.choice(['x', 'y', '~1'])}"
    client.post(action("document/merge", {"path": "", "value": {name[1]: {}}}))
    if chance.random() < 0.3:
        client.post(action("document/remove", {"path": name}))
    elif chance.random() < 0.3:
        client.post(action("document/add", {"path": "/list/-", "value": chance.random()}))
    else:
        client.commit(action("document/set", {"path": name, "value": [chance.randrange(9), {"k": None}]}))


def change_showcase(client, chance):
    number = chance.randrange(12)
    client.post(chance.choice([
        add(number), action("tasks/add", {"id": number, "title": str(chance.random())}),
        action("tasks/complete", {"id": number}), action("tasks/remove", {"id": number}),
    ]))


def change_model(client, chance):
    number = chance.randrange(12)
    client.post(
        action("things/drop", {"id": number}) if chance.random() < 0.3
        else action("things/put", {"id": number, "text": str(chance.random())})
    )


CHANGES = {"document": change_document, "showcase": change_showcase, "model": change_model}


@pytest.mark.parametrize("domain", list(CHANGES))
def test_any_version_comes_back_byte_by_byte_and_the_way_back_leads_back(workspace, domain):
    chance = random.Random(workspace.seed)
    settings = {"domain": domain}
    if domain == "model":
        settings = {"model": workspace.path("things.js")}
        with open(settings["model"], "w") as file:
            file.write(MODEL)
    server = workspace.server(**settings)
    with server.client() as client:
        states = {0: client.get("/v1/state").body}
        if domain == "document":
            client.commit(action("document/set", {"path": "/list", "value": []}))
        for _ in range(25):
            for _ in range(3):
                CHANGES[domain](client, chance)
            version = client.get("/v1").json["version"]
            states[version] = client.get("/v1/state").body
            wanted = chance.choice(list(states))
            shown = restore(client, "?dry-run", version=wanted).json
            answer = restore(client, version=wanted)
            expect_equal(answer.status, 200, f"the answer: {answer.body}")
            expect_equal(client.get("/v1/state").body, states[wanted], f"the state of {wanted} after {version}")
            made = client.get(f"/v1/changes?since={answer.json['cursor'].rpartition('.')[0]}.{version}").json["changes"][0]
            expect_equal(made["patch"], shown["patch"], "the patch that the dry run has shown")
            expect_equal(made["action"], {"type": "storekeeper/restore", "payload": {"version": wanted}}, "the action")
            expect_equal(restore(client, version=version).status, 200, "the way back from the way back")
            expect_equal(client.get("/v1/state").body, states[version], f"the state of {version} again")
        client.commit(action("document/set", {"path": "/z", "value": 1}) if domain == "document"
                      else add(1) if domain == "showcase" else action("things/put", {"id": 1, "text": "after"}))
        last = client.get("/v1/state").body
    server.restart()
    with server.client() as client:
        expect_equal(client.get("/v1/state").body, last, "the state after a kill")
    server.stop()
    more = ["--model", settings["model"]] if domain == "model" else []
    expect(b"verified" in journal_output(workspace, "verify", server.data, "--deep", *more), "what verify says")


class Follower:
    """A copy of the state by jsonpatch of PyPI."""

    def __init__(self, client):
        self.state, self.cursor = client.get("/v1/state").json, client.get("/v1").json["cursor"]

    def follow(self, client, version):
        """Takes the commits up to a version, and those behind it that come with them; the state of that version is right."""
        wanted = client.get(f"/v1/state?version={version}").json
        while int(self.cursor.rpartition(".")[2]) < version:
            for commit in client.get(f"/v1/changes?since={self.cursor}&limit=100").json["changes"]:
                self.state = jsonpatch.apply_patch(self.state, commit["patch"])
                self.cursor = commit["cursor"]
                if commit["version"] == version:
                    expect_equal(self.state, wanted, f"the state of a follower at {version}")


def change_with_times(client, chance):
    """Changes a document by any action, some of which set what expires, or come later."""
    place = lambda: "/" + "/".join(chance.choices(["a", "b", "~0~1", "ä", "0"], k=chance.choice([1, 1, 2])))
    value = lambda: chance.choice([chance.randrange(9), {}, {"a": {"b": 1.5}, "0": [1, "x"]}, [], [1, [2]], None, "ä\n"])
    ttl = lambda: {"ttl": chance.choice([0.2, 0.6, 5])} if chance.random() < 0.3 else {}
    kind, payload = chance.choice([
        lambda: ("set", {"path": place(), "value": value(), **ttl()}),
        lambda: ("set", {"path": place(), "value": value(), **ttl()}),
        lambda: ("add", {"path": place(), "value": value(), **ttl()}),
        lambda: ("remove", {"path": place()}),
        lambda: ("merge", {"path": "", "value": {"b": value(), chance.choice("ab"): None, "c": {"d": value()}}}),
        lambda: ("increment", {"path": place()}),
        lambda: ("patch", {"patch": [{"op": chance.choice(["move", "copy"]), "from": place(), "path": place()}]}),
    ])()
    later = {"after": chance.choice([0, 0.1, 0.5]), "name": chance.choice("xyz")} if chance.random() < 0.2 else None
    id = f"i{chance.getrandbits(60)}"
    answer = client.post(action(f"document/{kind}", payload, id=id, **({"schedule": later} if later else {})))
    expect(answer.status in (200, 404, 409, 422), f"{kind} was answered with", answer)
    return [id] if answer.status == 200 else []


@pytest.mark.rounds(25, long=400)
def test_versions_and_forks_come_back_amid_what_expires_and_is_scheduled(workspace, figures, rounds):
    chance = random.Random(workspace.seed)
    server = workspace.server(domain="document")
    client, ids, counts = server.client(), [], {"version": 0, "fork": 0, "the present has moved": 0}
    follower = Follower(client)
    at = lambda version: client.get(f"/v1/state?version={version}").body

    def restored(**payload):
        """The version of a restored state, and what it has to be."""
        if "version" in payload:
            answer, wanted = restore(client, **payload), at(payload["version"])
        else:
            wanted = client.get(f"/v1/forks/{payload['fork']}/state").body
            while (answer := restore(client, **payload)).status in (409, 412):
                counts["the present has moved"] += 1
                tag = client.get("/v1/state").fields["etag"]
                answer = restore(client, "?path=", {"If-Match": tag}, **payload)
                if answer.status == 200:
                    break
        expect_equal(answer.status, 200, f"the answer: {answer.body}")
        return answer.json["version"], wanted

    for number in range(rounds):
        for _ in range(chance.randrange(1, 12)):
            ids += change_with_times(client, chance)
        if chance.random() < 0.5:
            payload = {"version": chance.randint(0, client.get("/v1").json["version"])}
        else:
            body = json.dumps({"skip": chance.sample(ids[-30:], min(len(ids), 3))}).encode()
            made = client.request("POST", "/v1/forks", body, {"Content-Type": "application/json"})
            expect_equal(made.status, 201, f"the fork: {made.body}")
            payload = {"fork": made.json["name"]}
        version, wanted = restored(**payload)
        expect_equal(at(version), wanted, f"the state {version} of {payload}")
        follower.follow(client, version)
        counts[next(iter(payload))] += 1
        if chance.random() < 0.5:
            back, wanted = restored(version=version - 1)
            expect_equal(at(back), wanted, f"the state {back}, which leads back to {version - 1}")
            follower.follow(client, back)
        if "fork" in payload:
            client.request("DELETE", f"/v1/forks/{payload['fork']}")
        if number == rounds // 2:
            server.kill()
            client = server.start().client()
    wait_until(lambda: client.get("/v1/schedule").json["count"] == 0, "nothing is to come")
    version = client.get("/v1").json["version"]
    follower.follow(client, version)
    expect_equal(follower.state, client.get("/v1/state").json, "the state of the follower")
    server.stop()
    expect(b"verified" in journal_output(workspace, "verify", server.data, "--deep"), "what verify says")
    figures(f"{version} versions; restored: {counts}")


def test_a_restored_view_and_a_wait_have_the_earlier_value(workspace):
    with workspace.server().client() as client:
        client.commit(action("tasks/add", {"id": 1, "title": "milk"}))
        views = {link["name"]: client.get(link["href"]).body for link in client.get("/v1/views").json["views"]}
        tag = client.get("/v1/state/tasks").fields["etag"]
        client.commit(action("tasks/complete", {"id": 1}))
        changed = client.get("/v1/state/tasks").fields["etag"]
        expect_equal(restore(client, version=1).status, 200, "the answer")
        waited = client.request("GET", "/v1/state/tasks?wait=5", fields={"If-None-Match": changed})
        expect_equal((waited.status, waited.fields["etag"]), (200, tag), "a wait")
        for link in client.get("/v1/views").json["views"]:
            expect_equal(client.get(link["href"]).body, views[link["name"]], f"the view {link['name']}")


def test_a_fork_becomes_the_present_where_nothing_has_changed_or_the_client_has_looked(workspace):
    with workspace.server().client() as client:
        client.commit(add(5, id="five"))
        client.commit(add(7))
        body = json.dumps({"skip": ["five"]}).encode()
        made = client.request("POST", "/v1/forks", body, {"Content-Type": "application/json"}).json
        client.commit(add(1))
        refused = restore(client, fork=made["name"])
        expect_equal((refused.status, refused.json["code"]), (409, "fork-behind"), "a fork of an earlier version")
        tag = client.get("/v1/state").fields["etag"]
        answer = restore(client, "?path=", {"If-Match": tag}, fork=made["name"])
        expect_equal(answer.status, 200, f"by who has looked: {answer.body}")
        expect_equal(client.get("/v1/state/counter").json, {"value": 7}, "the counter")
        expect_equal(restore(client, "?path=", {"If-Match": tag}, fork=made["name"]).status, 412, "with an older tag")


def test_only_a_grant_that_names_it_restores(workspace):
    data = workspace.path("data")
    root = make_token(workspace, data, "root", "--all")
    named = make_token(workspace, data, "named", "--read", "*", "--others", "--dispatch", "storekeeper/restore")
    blind = make_token(workspace, data, "blind", "--read", "/counter", "--others", "--dispatch", "storekeeper/restore")
    wild = make_token(workspace, data, "wild", "--read", "*", "--others", "--dispatch", "*")
    with workspace.server(data=data).client() as client:
        client.request("POST", "/v1/actions", add(3), {"Content-Type": "application/json", **bearer(root)})
        for token, status in [(blind, 422), (wild, 422), (named, 200), (root, 200)]:
            answer = restore(client, fields=bearer(token), version=0)
            expect_equal(answer.status, status, f"the answer {answer.body}")
            types = {each["type"] for each in client.request("GET", "/v1/actions", fields=bearer(token)).json["actions"]}
            expect_equal("storekeeper/restore" in types, status == 200, "whether the catalogue has it")
        newest = client.request("GET", "/v1/changes?before=now&limit=1", fields=bearer(root)).json["changes"][0]
        expect_equal(newest["by"], "root", "who has restored")


def test_a_state_that_does_not_fit_any_more_is_refused_and_leaves_no_trace(workspace):
    path = workspace.path("schema.json")
    with open(path, "w") as file:
        json.dump({"type": "object"}, file)
    server = workspace.server(domain="document", schema=path)
    with server.client() as client:
        client.commit(action("document/set", {"path": "/age", "value": "old"}))
        client.commit(action("document/set", {"path": "/age", "value": 3}))
    server.stop()
    with open(path, "w") as file:
        json.dump({"type": "object", "properties": {"age": {"type": "integer"}}}, file)
    server.start()
    with server.client() as client:
        before = client.get("/v1").json["version"]
        refused = restore(client, version=1)
        expect_equal((refused.status, refused.json["code"]), (422, "restore-misfit"), refused.body)
        expect("/age" in refused.json["detail"], refused.json["detail"])
        expect_equal((client.get("/v1").json["version"], client.get("/v1/state/age").json), (before, 3), "what is there")


def places(client):
    """The places that expire, with the milliseconds that each still has, about."""
    now = time.time() * 1000
    return {each["place"]: milliseconds(each["due"]) - now for each in client.get("/v1/schedule").json["schedule"]}


def gone(client, path, seconds=10):
    answer = client.request("GET", f"/v1/state{path}?wait={seconds}", fields={"If-None-Match": "*"})
    return answer.status == 404


@pytest.mark.parametrize("restarts", [False, True])
def test_places_that_expire_come_back_with_their_full_time_and_others_stay(workspace, restarts):
    """Also elements and members whose names are numbers, and places whose value the restore does not change."""
    server = workspace.server(domain="document")
    with server.client() as client:
        client.commit(action("document/set", {"path": "", "value": {"a": 1, "locks": {}, "list": [{}, {}]}}))
        version = client.commit(action("document/set", {"path": "/same", "value": 1, "ttl": 3}))["version"]
        for path in ["/a", "/locks/5", "/list/1/x"]:
            client.commit(action("document/set", {"path": path, "value": 2, "ttl": 3}))
        leased = client.get("/v1").json["version"]
        leases = client.get("/v1/state").json
        client.commit(action("document/remove", {"path": "/list/0"}))
        expect(gone(client, "/locks/5"), "the leases end")
        if restarts:
            server.restart()
    with server.client() as client:
        expect_equal(restore(client, version=leased).status, 200, "the way back")
        left = places(client)
        expect_equal(set(left), {"/same", "/a", "/locks/5", "/list/1/x"}, "the places that expire again")
        expect(all(1500 < each <= 3100 for each in left.values()), "each has its three seconds:", left)
        expect_equal(client.get("/v1/state").json, leases, "the state")
        # A version in which one of them expires, and the others are there for good or not there at all.
        expect_equal(restore(client, version=version).status, 200, "the way back")
        expect_equal(set(places(client)), {"/same"}, "the place that expires in this version")
        expect(gone(client, "/same"), "it expires")
        state = client.get("/v1/state").json
        expect_equal(state, {"a": 1, "locks": {}, "list": [{}, {}]}, "the others stay")
        expect_equal(client.get("/v1/schedule").json["count"], 0, "what is still to come")
    server.stop()
    expect(b"verified" in journal_output(workspace, "verify", server.data, "--deep"), "what verify says")


def test_a_place_that_is_there_for_good_is_not_removed_by_a_newer_lease(workspace):
    with workspace.server(domain="document").client() as client:
        version = client.commit(action("document/set", {"path": "/p", "value": 1}))["version"]
        client.commit(action("document/set", {"path": "/p", "value": 1, "ttl": 0.7}))
        client.commit(action("document/set", {"path": "/other", "value": 1}))
        expect_equal(restore(client, version=version).status, 200, "the way back")
        expect_equal(client.get("/v1/schedule").json["count"], 0, "nothing expires")
        remains(lambda: client.get("/v1/state/p").json == 1, "the place is there", 1)


def test_a_lease_of_a_fork_comes_back_with_the_fork_and_no_fork_ends_it(workspace):
    with workspace.server(domain="document").client() as client:
        client.commit(action("document/set", {"path": "/lock", "value": "ann", "ttl": 2}))
        client.commit(action("document/set", {"path": "/free", "value": 1}, id="free"))
        client.commit(action("document/set", {"path": "/free", "value": 1, "ttl": 60}, id="leased"))
        body = json.dumps({"skip": ["leased"]}).encode()
        fork = client.request("POST", "/v1/forks", body, {"Content-Type": "application/json"}).json
        expect(gone(client, "/lock"), "the lease ends in the present")
        listed = client.get(f"{fork['href']}/schedule").json["schedule"]
        expect_equal([each["place"] for each in listed], ["/lock"], "what the fork has recorded")
        expect_equal(client.get(f"{fork['href']}/state/lock").json, "ann", "the fork does not dispatch it")
        made = client.post(action("document/set", {"path": "/in", "value": 1, "ttl": 30}), f"{fork['href']}/actions")
        expect_equal(made.status, 200, made.body)
        tag = client.get("/v1/state").fields["etag"]
        expect_equal(restore(client, "?path=", {"If-Match": tag}, fork=fork["name"]).status, 200, "the way back")
        left = places(client)
        expect_equal(set(left), {"/lock", "/in"}, "the places that expire")
        expect(1000 < left["/lock"] <= 2100, "the time of the lock:", left)
        expect(gone(client, "/lock"), "the lock ends again")


JOBS = """import { createSlice } from '@reduxjs/toolkit'
import { schedule, unschedule } from 'storekeeper'
const jobs = createSlice({ name: 'jobs', initialState: { open: { a: 1, b: 1 }, taken: {}, backs: 0 }, reducers: {
  take(state, { payload: { id } }) {
    delete state.open[id]; state.taken[id] = 1;
    schedule(jobs.actions.giveBack({ id }), { after: 2, name: id });
  },
  finish(state, { payload: { id } }) { delete state.taken[id]; unschedule(id); },
  giveBack(state, { payload: { id } }) { delete state.taken[id]; state.open[id] = 1; state.backs += 1; },
} })
"""


def test_what_a_model_has_scheduled_comes_back_and_what_clients_have_stays(workspace):
    path = workspace.path("jobs.js")
    with open(path, "w") as file:
        file.write(JOBS)
    with workspace.server(model=path).client() as client:
        version = client.commit(action("jobs/take", {"id": "a"}))["version"]
        client.commit(action("jobs/finish", {"id": "a"}))
        client.commit(action("jobs/take", {"id": "b"}))
        client.commit(action("jobs/finish", {"id": "zz"}, schedule={"after": 60, "name": "mine"}))
        expect_equal(restore(client, version=version).status, 200, "the way back")
        names = [each["name"] for each in client.get("/v1/schedule").json["schedule"]]
        expect_equal(names, ["a", "mine"], "what is scheduled")
        expect(client.get("/v1/state/jobs/open/a?wait=5&until-exists").status == 200, "the job goes back")
        backs = lambda: client.get("/v1/state/jobs/backs").json
        remains(lambda: backs() == 1, "the other job was not taken, and does not go back", 0.5)


@pytest.mark.parametrize("version, status", [("1.0", 200), ("1e0", 200), ("1.5", 422), ("-1.0", 422), ("1e300", 422), ('"1"', 422)])
def test_a_version_is_a_whole_number_however_it_is_spelled(workspace, version, status):
    with workspace.server(domain="document").client() as client:
        for value in [1, 2]:
            client.commit(action("document/set", {"path": "/a", "value": value}))
        body = '{"type":"storekeeper/restore","payload":{"version":%s}}' % version
        answer = client.post(body.encode())
        expect_equal(answer.status, status, f"the answer: {answer.body}")
        expect_equal(client.get("/v1/state/a").json, 1 if status == 200 else 2, "the state")


def test_a_state_is_restored_at_once(workspace):
    with workspace.server().client() as client:
        body = {"type": "storekeeper/restore", "payload": {"version": 0}, "schedule": {"after": 1}}
        answer = client.post(json.dumps(body).encode())
        expect_equal((answer.status, answer.json["errors"][0]["pointer"]), (422, "/schedule"), answer.body)
