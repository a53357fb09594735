"""Clients that post actions at random and remember what the server acknowledged."""

import random

from harness.actions import action, add
from harness.client import Client, ConnectionLost, connect
from harness.expectations import expect


def write_actions(port, name, count, seed):
    """Posts actions of many kinds; returns what each version was, as acknowledged."""
    chance = random.Random(f"{seed}/{name}")
    acknowledged = {}
    client = Client(port.value)
    known = []
    for number in range(count):
        kind = chance.random()
        if kind < 0.65:
            sent = ("counter/add", {"amount": chance.randint(1, 9)})
        elif kind < 0.75:
            sent = ("counter/add", {"amount": 0})  # a commit that changes nothing
        elif kind < 0.9 or not known:
            known.append(name * 100_000 + number)
            sent = ("tasks/add", {"id": known[-1], "title": f'title {number} ~ / " \u00e4'})
        elif kind < 0.95:
            sent = ("tasks/rename", {"id": chance.choice(known), "title": f"renamed {number}"})
        elif kind < 0.98:
            sent = ("tasks/favourite", {"id": chance.choice(known)})
        else:
            sent = ("tasks/remove", {"id": known.pop(chance.randrange(len(known)))})
        receipt = client.commit(action(*sent, id=f"w{name}-{number}"))
        expect(receipt["version"] not in acknowledged, f"version {receipt['version']} was acknowledged twice")
        acknowledged[receipt["version"]] = (receipt["id"], *sent)
    return acknowledged


def write_through_kills(port, name, is_keyed, finished, acknowledged, seed):
    """Posts numbered actions until `finished`, through every loss of the server.

    Without a key, an action whose answer was lost is given up; with one, it is sent again until it is answered.
    """
    chance = random.Random(f"{seed}/{name}")
    receipts, sent, lost, replayed = {}, {}, 0, 0
    client = None
    number = 0
    while not finished.is_set():
        identifier = f"{name}-{number}"
        sent[identifier] = chance.randint(1, 9)
        fields = {"Idempotency_Key": f'"{identifier}"'} if is_keyed else {}
        body = add(sent[identifier], id=identifier)
        while True:
            client = client or connect(lambda: port.value, timeout=20)
            try:
                answer = client.post(body, **fields)
            except ConnectionLost:
                client = None
                lost += 1
                if is_keyed:
                    continue
                break
            expect(answer.status == 200, "a writer was answered", answer)
            replayed += "idempotency-replayed" in answer.fields
            receipts[identifier] = answer.json["version"]
            acknowledged.value = max(acknowledged.value, receipts[identifier])
            break
        number += 1
    return receipts, sent, lost, replayed
