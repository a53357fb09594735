"""Idempotency keys."""

import threading

from harness.actions import add
from harness.expectations import expect_equal


def test_one_idempotency_key_from_20_clients_and_again_after_a_restart_is_one_commit(workspace):
    server = workspace.server()
    receipts = []
    for round_ in range(20):
        key = f'"key-{round_}"'
        answers = at_once(server, 20, add(1), key)
        expect_equal({answer.status for answer in answers}, {200}, "the statuses")
        expect_equal(len({answer.json["version"] for answer in answers}), 1, "the number of versions of one key")
        expect_equal(len({answer.body for answer in answers}), 1, "the number of different answers to one key")
        fresh = [answer for answer in answers if answer.fields.get("idempotency-replayed") != "true"]
        expect_equal(len(fresh), 1, "answers that are not marked as replayed")
        receipts.append((key, answers[0].json))
    expect_equal([receipt["version"] for _, receipt in receipts], list(range(1, 21)), "the versions of 20 keys")
    for end in (server.kill, server.stop):
        end()
        server.start()
        for key, receipt in receipts:
            for answer in at_once(server, 20 if key == receipts[0][0] else 2, add(1), key):
                expect_equal(answer.json, receipt, f"the answer to {key} after a restart")
                expect_equal(answer.fields.get("idempotency-replayed"), "true", "Idempotency-Replayed")
        with server.client() as client:
            other = client.post(add(2), Idempotency_Key=receipts[0][0])
            expect_equal(
                (other.status, other.json["code"]), (422, "idempotency-key-reused"), "the same key, another body"
            )
            state = client.get("/v1/state/counter")
            expect_equal((state.version, state.json), (20, {"value": 20}), "the counter after all repetitions")
            bare = client.post(add(1), Idempotency_Key="key-0")
            expect_equal(bare.json, receipts[0][1], "the key without its quotes")


def at_once(server, count, body, key):
    """Posts the same from many connections at the same moment."""
    clients = [server.client() for _ in range(count)]
    answers = []
    barrier = threading.Barrier(count)

    def post(client):
        barrier.wait(10)
        answers.append(client.post(body, Idempotency_Key=key))

    threads = [threading.Thread(target=post, args=(client,), daemon=True) for client in clients]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(20)
    for client in clients:
        client.close()
    expect_equal(len(answers), count, "the number of answers")
    return answers
