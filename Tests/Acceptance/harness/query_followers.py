"""Clients that follow random queries while members come, change, move and go; each result is compared with the past."""

import json
import random
import threading
import time
import urllib.parse

from harness.actions import action
from harness.client import ConnectionLost, connect
from harness.expectations import expect, expect_equal, paced
from harness.messages import version_of
from harness.streams import open_stream

PLACES = ["/tasks", "/list", "/deep/er/tasks"]


def random_filter(chance):
    kind = chance.randrange(6)
    if kind == 0:
        return f"@.owner == '{chance.choice(['ann', 'bob', 'café'])}'"
    if kind == 1:
        return f"@.due {chance.choice(['<', '>=', '!='])} {chance.randint(-3, 3)}"
    if kind == 2:
        return f"@.tags[?@ == '{chance.choice('abc')}']"
    if kind == 3:
        return "@.done == false"
    left, right = random_filter(chance), random_filter(chance)
    return f"({left}) && !({right})" if chance.random() < 0.5 else f"({left}) || ({right})"


def random_query(chance):
    asked = {}
    if chance.random() < 0.8:
        asked["filter"] = random_filter(chance)
    if chance.random() < 0.7:
        asked["sort"] = chance.choice(["/due", "-/due", "/owner,-/due", "/tags/0", "-/none"])
    if chance.random() < 0.7:
        asked["limit"] = chance.choice([0, 1, 3, 10, 50])
    if chance.random() < 0.3:
        asked["offset"] = chance.choice([1, 5, 40])
    if chance.random() < 0.2:
        asked["fields"] = chance.choice(["/due", "/owner,/tags"])
    if chance.random() < 0.4 or not asked:
        asked["count"] = "true"
    place = chance.choices(PLACES, weights=[6, 1, 2])[0]
    return f"/v1/state{place}?" + urllib.parse.urlencode(asked)


def member(chance):
    made = {"owner": chance.choice(["ann", "bob", "café"]), "done": chance.random() < 0.5}
    if chance.random() < 0.8:
        made["due"] = chance.choice([chance.randint(-5, 5), chance.random(), "soon", None])
    if chance.random() < 0.6:
        made["tags"] = chance.sample(["a", "b", "c"], chance.randint(0, 3))
    return made


class Model:
    """The keys that are there, so that most of the commits are ones that fit."""

    def __init__(self, chance, client):
        self.chance = chance
        self.keys = {place: {} for place in PLACES}
        self.fresh = 0
        for place in PLACES:
            self.replace(client, place)

    def replace(self, client, place):
        count = self.chance.randint(0, 60)
        members = {self.key(): member(self.chance) for _ in range(count)}
        value = list(members.values()) if place == "/list" else members
        if place == "/deep/er/tasks" and self.chance.random() < 0.5:
            client.commit(action("document/set", {"path": "/deep", "value": {"er": {"tasks": value}, "other": 1}}))
        else:
            client.commit(action("document/set", {"path": place, "value": value}))
        self.keys[place] = dict.fromkeys(range(count) if place == "/list" else members)

    def key(self):
        self.fresh += 1
        # Names that are numbers have their own order.
        return str(self.chance.randint(-20, 2000)) if self.chance.random() < 0.3 else f"t{self.fresh}"

    def some(self, place):
        keys = self.keys[place]
        return self.chance.choice(list(keys)) if keys else None

    def commit(self, client):
        """One commit, which is often of several actions."""
        if self.chance.random() < 0.01:
            return self.replace(client, self.chance.choice(PLACES))
        actions = [self.action() for _ in range(1 if self.chance.random() < 0.8 else self.chance.randint(2, 12))]
        client.commit(json.dumps(actions).encode())

    def action(self):
        chance = self.chance
        place = chance.choices(PLACES, weights=[6, 1, 2])[0]
        kind = chance.random()
        key = self.some(place)
        if place == "/list":
            if key is None or kind < 0.2:
                self.keys[place][len(self.keys[place])] = None
                return {"type": "document/add", "payload": {"path": "/list/-", "value": member(chance)}}
            if kind < 0.3:
                self.keys[place].popitem()
                return {"type": "document/remove", "payload": {"path": f"/list/{chance.randint(0, len(self.keys[place]))}"}}
        elif key is None or kind < 0.2:
            key = self.key()
            self.keys[place][key] = None
            return {"type": "document/set", "payload": {"path": f"{place}/{key}", "value": member(chance)}}
        elif kind < 0.35:
            del self.keys[place][key]
            return {"type": "document/remove", "payload": {"path": f"{place}/{key}"}}
        if kind < 0.6:
            return {"type": "document/set", "payload": {"path": f"{place}/{key}", "value": member(chance)}}
        name, value = chance.choice(
            [("done", chance.random() < 0.5), ("due", chance.randint(-5, 5)), ("owner", chance.choice(["ann", "bob"])), ("note", "n")]
        )
        return {"type": "document/set", "payload": {"path": f"{place}/{key}/{name}", "value": value}}


class Follower(threading.Thread):
    """A client that follows one query until a version is reached; `seen` has the bytes by version."""

    def __init__(self, server, target):
        super().__init__(daemon=True)
        self.server, self.target = server, target
        self.seen, self.newest, self.error = {}, None, None
        self.last = None
        self.final, self.is_over, self.losses = None, False, 0

    def run(self):
        try:
            while True:
                try:
                    return self.follow()
                except ConnectionLost:
                    if self.is_over:
                        return
                    # It goes on from what it has, at the server that comes next.
                    self.losses += 1
                    connect(lambda: self.server.port).close()
        except BaseException as error:  # the test raises it
            self.error = error

    def note(self, version, value):
        expect(self.newest is None or version >= self.newest, f"{self.target} went back to {version}")
        expect(value != self.last, f"{self.target} was woken for nothing at {version}")
        self.newest, self.last = version, value
        self.seen[version] = value


class Poller(Follower):
    tag = None

    def follow(self):
        with self.server.client() as client:
            while True:
                answer = client.get(self.target + "&wait=1", **({"If_None_Match": self.tag} if self.tag else {}))
                if answer.status == 304:
                    if self.final is not None and answer.version >= self.final:
                        return
                    continue
                expect_equal(answer.status, 200, self.target)
                self.tag = answer.fields["etag"]
                self.note(answer.version, answer.body.decode().strip())


class Streamer(Follower):
    last_id = None

    def follow(self):
        stream = open_stream(self.server, self.target, last_id=self.last_id)
        while not self.is_over:
            for event in stream.watch(0.5):
                self.last_id = event.id or self.last_id
                if event.name == "snapshot":
                    self.last = None  # A stream that begins anew can begin with what the client has.
                if event.name in ("snapshot", "change"):
                    self.note(event.version, event.data)
            if stream.has_ended:
                raise ConnectionLost("the stream has ended")


class KeyedFollower(Follower):
    """Keeps the keys of the answer by the lists of as=keyed; the members whose values it would fetch come from the past."""

    def __init__(self, server, target):
        super().__init__(server, target)
        self.keys, self.since, self.differences = [], None, []

    def follow(self):
        place = urllib.parse.urlsplit(self.target).path.removeprefix("/v1/state")
        with self.server.client() as client:
            while True:
                keys, since = self.keys, self.since
                answer = client.get(f"{self.target}&as=keyed&wait=1" + (f"&since={since}" if since else ""))
                expect_equal(answer.status, 200, self.target)
                lists = answer.json["collections"].get(place, {})
                before = keys
                if "initial" in lists:
                    # The client knows nothing, or what it knows is not in the server's memory any more.
                    expect_equal(set(lists), {"initial"}, "the lists of a beginning")
                    keys, since = lists["initial"], None
                else:
                    added, moved, removed = (lists.get(name, []) for name in ("added", "moved", "removed"))
                    expect(set(added).isdisjoint(keys) and set(moved + removed + lists.get("changed", [])) <= set(keys), lists)
                    expect_equal("order" in lists, bool(added or moved or removed), f"whether {lists} has the order")
                    keys = lists.get("order", keys)
                    expect_equal(set(keys), set(before) - set(removed) | set(added), "the keys in the order")
                    stay = [key for key in before if key not in moved + removed]
                    expect_equal([key for key in keys if key not in moved + added], stay, "the order of the others")
                self.differences.append((since, answer.json["next"], keys, set(lists.get("changed", [])), answer.json.get("count")))
                self.keys, self.since = keys, answer.json["next"]
                if self.final is not None and answer.version >= self.final:
                    return

    def judge(self, client):
        """Compares each difference with the answers of the past."""
        past = {}
        for since, cursor, keys, changed, count in self.differences:
            answer = client.get(f"{self.target}&version={version_of(cursor)}").json
            members = {member["key"]: member["value"] for member in answer["members"]}
            expect_equal(keys, list(members), f"the keys of {self.target} at {cursor}")
            expect_equal(count, answer.get("count"), f"the count of {self.target} at {cursor}")
            if since in past:
                other = {key for key, value in members.items() if key in past[since] and past[since][key] != value}
                if changed or list(past[since]) != list(members) or other:
                    expect_equal(changed, other, f"what has changed in {self.target} from {since} to {cursor}")
            past[cursor] = members
        return len(self.differences)


def follow_queries(workspace, servers, count, commits, pause=0.0, disturb=None):
    """Follows random queries over commits to the first server; the number of results, each of which is as the past says."""
    chance = random.Random(workspace.seed)
    followers = []
    with servers[0].client() as client:
        model = Model(chance, client)
        for number in range(count):
            target = random_query(chance)
            if chance.random() < 0.4 and (page := client.get(target).json.get("next")):
                target += "&" + urllib.parse.urlencode({"after": page})
            kinds = [Poller, Streamer, KeyedFollower]
            kinds = kinds if number % 3 == 0 else [chance.choice(kinds)]
            followers += [kind(chance.choice(servers), target) for kind in kinds]
    for follower in followers:
        follower.start()
    for part in range(4):
        with servers[0].client() as client:
            for _ in paced(range(commits // 4), lambda _: chance.random() * pause):
                model.commit(client)
        if disturb and part < 3:
            disturb(part)
    with servers[0].client() as client:
        cursor = client.get("/v1").json["cursor"]
        final = version_of(cursor)
        for server in servers[1:]:
            with server.client() as other:
                expect_equal(other.get(f"/v1/state?at-least={cursor}&wait=10").status, 200, "another server comes to the last version")
        time.sleep(0.3)
        for follower in followers:
            follower.final = final
        time.sleep(1)
        for follower in followers:
            follower.is_over = True
        for follower in followers:
            follower.join(20)
            expect(not follower.is_alive(), f"{follower.target} is not done")
            if follower.error:
                raise follower.error
        expect(not disturb or any(follower.losses for follower in followers), "no follower has lost its server")
        keyed = [follower for follower in followers if isinstance(follower, KeyedFollower)]
        count = sum(follower.judge(client) for follower in keyed)
        results = {}
        for follower in followers:
            if follower in keyed:
                continue
            for version, value in follower.seen.items():
                results.setdefault((version, follower.target), []).append(value)
            results.setdefault((final, follower.target), []).append(follower.last)
        for (version, target), values in sorted(results.items(), key=lambda pair: pair[0]):
            past = client.get(f"{target}&version={version}").body.decode().strip()
            for value in values:
                # The data of a long event may have line breaks between two tokens.
                expect_equal(value.replace("\n", ""), past, f"{target} at {version} of {final}")
    return len(results) + count
