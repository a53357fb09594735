"""Caps on waiters, on the mailbox and on connections."""

import json

from harness.actions import action, add, batch
from harness.expectations import expect, expect_equal, wait_until
from harness.messages import encode_request
from harness.refusals import Case, judge_problem


def test_a_waiter_over_the_cap_gets_503_or_429_and_the_others_wait_on(workspace):
    """503 where the server has too many waiters, 429 where the client has; actions are committed meanwhile."""
    for settings, status in (({"waiters_max": 4}, 503), ({"waiters_per_client_max": 4}, 429)):
        server = workspace.server(**settings)
        with server.client() as client:
            tag = client.get("/v1/state/counter").fields["etag"]
            targets = ["/v1/state/counter?wait=20", "/v1/changes?wait=20&since=" + client.get("/v1").json["cursor"]] * 2
            waiting = []
            for target in targets:
                waiting.append(server.client())
                waiting[-1].send(encode_request("GET", target, fields={"If-None-Match": tag}))
            wait_until(lambda: server.metric(client, "waiters") == 4, "4 waiters")
            for target in targets[:2]:
                refused = client.get(target, If_None_Match=tag)
                judge_problem(refused, Case("", b"", status, "too-many-waiters"))
                expect("retry-after" in refused.fields, "no Retry-After:", refused)
                expect_equal(client.get("/v1/state/counter").status, 200, "the next request on the connection")
            # A client that goes away makes room.
            waiting.pop().close()
            wait_until(lambda: server.metric(client, "waiters") == 3, "a waiter that went away is forgotten")
            waiting.append(server.client())
            waiting[-1].send(encode_request("GET", targets[0], fields={"If-None-Match": tag}))
            wait_until(lambda: server.metric(client, "waiters") == 4, "room for another")
            client.commit(add(1))
            for waiter in waiting:
                expect_equal(waiter.receive().status, 200, "the answer to a request that waited")


def test_an_action_that_finds_the_mailbox_full_gets_503_and_exactly_the_others_are_committed(workspace, figures):
    server = workspace.server(mailbox_actions_max=1)
    count = 64
    clients = [server.client() for _ in range(count)]
    committed = refused = 0
    for _ in range(20):
        for client in clients:
            client.send(encode_request("POST", "/v1/actions", add(1)))
        for client in clients:
            answer = client.receive()
            if answer.status == 200:
                committed += 1
                continue
            judge_problem(answer, Case("", b"", 503, "mailbox-full"))
            expect(
                "retry-after" in answer.fields and not answer.closes, "no Retry-After, or a closed connection:", answer
            )
            refused += 1
        if refused and committed:
            break
    expect(refused > 0, "NOT CHECKED: the mailbox was never full")
    counter = clients[0].get("/v1/state/counter")
    expect_equal((counter.version, counter.json["value"]), (committed, committed), "version and counter")
    figures(f"{committed} committed, {refused} refused")


def test_a_connection_over_the_cap_gets_503_and_the_others_are_served(workspace):
    server = workspace.server(connections_max=16, waiters_max=8)
    clients = [server.client() for _ in range(16)]
    for client in clients:
        expect_equal(client.get("/livez").status, 200, "a connection within the cap")
    extra = server.client(timeout=10)
    answer = extra.get("/v1/state/counter")
    judge_problem(answer, Case("", b"", 503, "too-many-connections"))
    expect("retry-after" in answer.fields and answer.closes, "no Retry-After and Connection: close:", answer)
    for client in clients:
        client.commit(add(1))
    for client in clients:
        client.close()
    wait_until(lambda: served(server), "room after the others have gone", 5)


def test_a_probe_over_the_cap_changes_no_answer_of_the_others(workspace):
    """The head of a probe once took the place of the last head that had come for the first time, with as many fields."""
    server = workspace.server(data="none", connections_max=16, waiters_max=8)
    clients = [server.client() for _ in range(16)]
    for client in clients:
        expect_equal(client.get("/livez").status, 200, "a connection within the cap")
    for number in range(6):
        # Each number makes heads of its own, which come three times, and a probe with so many fields more than its host.
        probe = {f"X_{index}": "1" for index in range(number)}
        for _ in range(3):
            state = clients[number].get("/v1/state", X_Request_ID=f"g{number}")
            expect(state.body.startswith(b"{"), "not the state:", state)
            ask_over_the_cap(server, probe)
        for _ in range(3):
            clients[number].commit(add(1), X_Request_ID=f"n{number}")
            ask_over_the_cap(server, probe)
    expect_equal(clients[0].get("/v1/state/counter").json["value"], 18, "the actions that were taken")
    for client in clients:
        client.close()


def ask_over_the_cap(server, fields):
    with server.client(timeout=5) as client:
        expect_equal(client.get("/livez", **fields).status, 200, "the status of a probe over the cap")


def served(server):
    with server.client(timeout=5) as client:
        return client.get("/livez").status == 200


def test_limits_of_work_are_settings_and_the_root_document_states_them(workspace):
    settings = {
        "bulk_faults_max": 3,
        "batch_milliseconds_max": 1,
        "slow_requests_max": 2,
        "slow_requests_per_client_max": 1,
    }
    server = workspace.server(data="none", **settings)
    with server.client() as client:
        limits = client.get("/v1").json["limits"]
        expect_equal({name: limits.get(name) for name in settings}, settings, "the limits of the settings")
        constants = {"head_bytes_max": 12 << 10, "head_fields_max": 100, "target_bytes_max": 8000}
        constants["target_parameters_max"] = 100
        expect_equal({name: limits.get(name) for name in constants}, constants, "the limits that are no settings")

        lines = [action("tasks/nothing")] * 3 + [add(1)]
        taken = client.request("POST", "/v1/actions", b"\n".join(lines), {"Content-Type": "application/x-ndjson"})
        codes = [json.loads(line).get("code") for line in taken.body.splitlines()]
        expect_equal(codes, ["unknown-action"] * 3 + [None], "the answers to three faulty lines and a good one")
        lines.insert(0, action("tasks/nothing"))
        refused = client.request("POST", "/v1/actions", b"\n".join(lines), {"Content-Type": "application/x-ndjson"})
        expect_equal((refused.status, refused.json["code"]), (422, "too-many-faults"), "with four faulty lines")

        long = client.post(batch(*[add(1)] * 10_000))
        expect_equal((long.status, long.json["code"]), (422, "transaction-too-long"), "an array of 10,000 actions")

        client.commit(action("tasks/add", {"id": 1, "title": "x" * 2_000_000}))
        client.commit(add(1))
        version = client.get("/v1").version - 1
    answers = ask_at_once(server, 20, f"/v1/state?version={version}")
    refused = [answer for answer in answers if answer.status != 200]
    expect(len(refused) < 20, "all slow requests were refused")
    expect_equal(
        {(answer.status, answer.json["code"]) for answer in refused}, {(429, "too-many-reads")}, "slow requests at once"
    )


def ask_at_once(server, count, target):
    """The answers to as many requests, each on a connection of its own."""
    clients = [server.client() for _ in range(count)]
    for client in clients:
        client.send(encode_request("GET", target))
    answers = [client.receive() for client in clients]
    for client in clients:
        client.close()
    return answers
