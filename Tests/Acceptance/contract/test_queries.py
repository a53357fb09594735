"""Queries on the members of a value: what a client asks for, compared with what Python says of the same members."""

import json
import random
import urllib.parse

from harness.actions import action
from harness.expectations import expect, expect_equal

OPERATORS = {
    "==": lambda a, b: a == b,
    "<": lambda a, b: a < b,
    ">=": lambda a, b: a >= b,
}


def target(place, **parameters):
    return f"/v1/state{place}?" + urllib.parse.urlencode(parameters)


def members(chance, count):
    """Members with an owner, a due day that may be missing, and tags."""
    made = {}
    for number in range(count):
        member = {"owner": chance.choice(["ann", "bob", "café"]), "tags": chance.sample(["a", "b", "c"], chance.randint(0, 3))}
        if chance.random() < 0.8:
            member["due"] = chance.choice([chance.randint(-5, 5), chance.random()])
        made[f"t{number}"] = member
    return made


def condition(chance):
    """A filter, and what it means."""
    kind = chance.randrange(4)
    if kind == 0:
        owner = chance.choice(["ann", "bob", "café", "eve"])
        return f"@.owner == '{owner}'", lambda member: member["owner"] == owner
    if kind == 1:
        operator, bound = chance.choice(list(OPERATORS)), chance.randint(-3, 3)
        return f"@.due {operator} {bound}", lambda member: "due" in member and OPERATORS[operator](member["due"], bound)
    if kind == 2:
        tag = chance.choice("abc")
        return f"@.tags[?@ == '{tag}']", lambda member: tag in member["tags"]
    (left, holds_left), (right, holds_right) = condition(chance), condition(chance)
    if chance.random() < 0.5:
        return f"({left}) && !({right})", lambda member: holds_left(member) and not holds_right(member)
    return f"({left}) || ({right})", lambda member: holds_left(member) or holds_right(member)


def test_random_queries_have_the_members_that_python_finds(workspace):
    chance = random.Random(workspace.seed)
    with workspace.server(domain="document", data="none").client() as client:
        made = members(chance, 300)
        client.commit(action("document/set", {"path": "/tasks", "value": made}))
        # The members' own order is that of a read without a query.
        made = client.get("/v1/state/tasks").json
        for _ in range(200):
            text, holds = condition(chance)
            found = [(key, member) for key, member in made.items() if holds(member)]
            is_descending = chance.random() < 0.5
            found.sort(key=lambda pair: pair[1].get("due", 0), reverse=is_descending)
            found.sort(key=lambda pair: "due" not in pair[1])
            offset, limit = chance.randint(0, 40), chance.randint(0, 40)
            asked = target(
                "/tasks", filter=text, sort="-/due" if is_descending else "/due", offset=offset, limit=limit, count="true"
            )
            answer = client.get(asked)
            expect_equal(answer.status, 200, asked)
            expect_equal(answer.json["count"], len(found), f"the count of {asked}")
            window = found[offset : offset + limit]
            expect_equal(
                [member["value"].get("due") for member in answer.json["members"]],
                [member.get("due") for _, member in window],
                asked,
            )
            expect(all(holds(member["value"]) for member in answer.json["members"]), asked)
            again = client.get(asked, If_None_Match=answer.fields["etag"])
            expect_equal(again.status, 304, "the same query")


def test_pages_behind_each_other_have_every_member_once_while_others_come_and_go(workspace):
    chance = random.Random(workspace.seed)
    with workspace.server(domain="document", data="none").client() as client:
        made = members(chance, 60)
        client.commit(action("document/set", {"path": "/tasks", "value": made}))
        stays, gone, found, after = set(made), set(), [], {}
        while True:
            page = client.get(target("/tasks", sort="/owner,-/due", limit=7, **after)).json
            found += [member["key"] for member in page["members"]]
            if "next" not in page:
                break
            after = {"after": page["next"]}
            # The last member of a page goes, and one comes that is sorted before all.
            gone.add(found[-1])
            client.commit(action("document/remove", {"path": f"/tasks/{found[-1]}"}))
            client.commit(action("document/set", {"path": f"/tasks/new{len(gone)}", "value": {"owner": "aaron", "tags": []}}))
        expect_equal(sorted(found), sorted(stays), "the members on all pages")
        answer = client.get(target("/tasks", sort="/owner", **after))
        expect_equal((answer.status, answer.json["parameter"]), (400, "after"), "the next of another order")
        answer = client.get(target("/tasks", filter="@.owner == 'ann'", explain="true")).json["explain"]
        expect_equal(answer["members"], 60, "the members that were looked at")
        answer = client.get(target("/tasks", explain="true", wait=1))
        expect_equal(answer.status, 400, "an explanation that waits")


def test_a_fork_and_a_past_version_are_asked_as_the_present_is(workspace):
    with workspace.server(domain="document", data="none").client() as client:
        cursor = client.commit(action("document/set", {"path": "/tasks", "value": {"a": {"n": 1}, "b": {"n": 2}}}))["cursor"]
        client.commit(action("document/set", {"path": "/tasks/c", "value": {"n": 3}}))
        asked = {"filter": "@.n > 1", "fields": "/n"}
        now = client.get(target("/tasks", **asked)).json["members"]
        expect_equal([member["key"] for member in now], ["b", "c"], "the present")
        past = client.get(target("/tasks", version=1, **asked)).json["members"]
        expect_equal([member["key"] for member in past], ["b"], "the past")
        body = json.dumps({"insert": [{"after": cursor, "action": {"type": "document/remove", "payload": {"path": "/tasks/b"}}}]})
        fork = client.request("POST", "/v1/forks", body.encode(), {"Content-Type": "application/json"}).json["name"]
        forked = client.get(f"/v1/forks/{fork}/state/tasks?" + urllib.parse.urlencode(asked)).json["members"]
        expect_equal([member["key"] for member in forked], ["c"], "the fork")


def test_a_query_that_costs_much_is_refused_and_holds_nobody_up(workspace):
    chain = {}
    for _ in range(55):
        chain = {"a": chain}
    with workspace.server(domain="document", data="none").client() as client:
        client.commit(action("document/set", {"path": "/chain", "value": [chain]}))
        answer = client.get(target("/chain", filter="@..[?@..[?@..[?@..[?@..[?@..[?@..[?@.b]]]]]]]"))
        expect_equal((answer.status, answer.json["code"]), (422, "query-too-costly"), "the answer")
        expect_equal(client.get(target("/chain", filter="@..b")).json, {"members": []}, "a cheaper one")
        expect_equal(client.get(target("/chain", filter="match(@.a, '(a+)+$')")).json, {"members": []}, "a pattern")
