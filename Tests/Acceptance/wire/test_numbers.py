"""Numbers as JavaScript writes them, and numbers that nothing can hold."""

import json

import pytest
from harness.actions import add
from harness.expectations import expect, expect_equal


def block(number, text):
    frame = '{"x":%s,"y":1,"width":1,"height":1}' % text
    return ('{"type":"canvas/addBlock","payload":{"id":%d,"frame":%s}}' % (number, frame)).encode()


# What `JSON.stringify` makes of 1e20, -1e20, 2**63, 2**64, the largest double, 1e21, 5e-324 and 0.1.
WRITTEN = [
    "100000000000000000000",
    "-100000000000000000000",
    "9223372036854776000",
    "18446744073709552000",
    "1.7976931348623157e+308",
    "1e+21",
    "5e-324",
    "0.1",
]


@pytest.mark.parametrize("text", WRITTEN)
def test_a_number_of_javascript_comes_out_of_a_state_as_the_same_number(server, text):
    number = WRITTEN.index(text)
    with server.client() as client:
        client.commit(block(number, text))
        found = client.get(f"/v1/state/canvas/blocks/{number}/frame/x")
    expect_equal(float(found.body), float(text), "the number that came out")


@pytest.mark.parametrize("text", WRITTEN)
def test_a_number_of_javascript_comes_out_of_meta_as_the_same_number(server, text):
    with server.client() as client:
        receipt = client.commit(b'{"type":"counter/add","payload":{"amount":0},"meta":{"n":%s}}' % text.encode())
        found = client.get("/v1/actions/" + receipt["id"]).body
    expect_equal(float(json.loads(found, parse_int=float)["action"]["meta"]["n"]), float(text), "what came out")


@pytest.mark.parametrize("text", ["-0", "-0.0", "-0e0"])
def test_minus_zero_comes_out_as_zero(server, text):
    """The contract says so: the two are equal, and JSON has no other use for the sign."""
    number = 100 + ["-0", "-0.0", "-0e0"].index(text)
    with server.client() as client:
        client.commit(block(number, text))
        found = client.get(f"/v1/state/canvas/blocks/{number}/frame/x").body
    expect_equal(found, b"0\n", f"what {text} came out as")


HUGE = {
    "1e400": "1e400",
    "-1e400": "-1e400",
    "1.8e308": "1.8e308",
    "400 digits": "1" + "0" * 400,
    "an exponent of 20 digits": "1e99999999999999999999",
}


@pytest.mark.parametrize("text", HUGE.values(), ids=HUGE)
@pytest.mark.parametrize("place", ["a state", "meta", "expect"])
def test_a_number_that_no_double_holds_is_refused_as_out_of_range_and_not_as_malformed(server, text, place):
    body = {
        "a state": block(1000, text),
        "meta": b'{"type":"counter/add","payload":{"amount":1},"meta":{"n":%s}}' % text.encode(),
        "expect": b'{"type":"counter/add","payload":{"amount":1},"expect":[{"path":"/counter/value","value":%s}]}'
        % text.encode(),
    }[place]
    with server.client() as client:
        before = client.get("/v1").version
        answer = client.post(body)
        expect(answer.status in (400, 422), "the status:", answer)
        problem = answer.json
        expect(problem["code"] != "malformed-json", "JSON that is well formed is called malformed:", problem)
        expect("range" in json.dumps(problem), "nothing about a range in", problem)
        expect("64 bits" not in json.dumps(problem), "a double is called an integer of 64 bits:", problem)
        expect_equal(client.get("/v1").version, before, "the version")


@pytest.mark.parametrize("text", ["100000000000000000000", "9223372036854775808", "1e400"])
def test_an_integer_of_the_domain_that_is_too_large_is_refused_as_out_of_range(server, text):
    with server.client() as client:
        answer = client.post(add(1).replace(b":1}", b":%s}" % text.encode()))
        expect(answer.status in (400, 422), "the status:", answer)
        problem = answer.json
        expect(problem["code"] != "malformed-json", "JSON that is well formed is called malformed:", problem)
        expect_equal([error["pointer"] for error in problem["errors"]], ["/payload/amount"], "the pointers")


@pytest.mark.parametrize("text", ["01", "+1", "1.", ".5", "1e", "0x1", "NaN", "Infinity", "-", "1_0", "--1"])
def test_a_number_that_is_no_json_is_malformed(server, text):
    with server.client() as client:
        answer = client.post(block(1, text))
    expect_equal((answer.status, answer.json["code"]), (400, "malformed-json"), "status and code")


def test_a_value_to_wait_for_may_be_a_number_as_javascript_writes_it(server):
    with server.client() as client:
        client.commit(block(2000, "100000000000000000000"))
        answer = client.get("/v1/state/canvas/blocks/2000/frame/x?wait=1&until=100000000000000000000")
        expect_equal(answer.status, 200, "the status of a wait for the value that is there")


EDGES = [
    "-9223372036854775808",
    "9223372036854775807",
    "9223372036854775808",
    "-9223372036854775809",
    "18446744073709551615",
    "9007199254740993.5",
    "1e-9223372036854775808",
    "1e-9223372036854775807",
    "-1e9223372036854775807",
    "0e9223372036854775807",
    "1e308",
    "4.9e-324",
]
TAKING_NUMBERS = {
    "wait": "/v1/changes?since=now&wait={}",
    "until": "/v1/state/counter?wait=0&until={}",
    "at-least": "/v1/state/counter?at-least=aaaaaaaaaaaaaaaa.{}",
    "since": "/v1/changes?since=aaaaaaaaaaaaaaaa.{}",
    "limit": "/v1/state?limit={}&offset={}",
    "debounce": "/v1/state/counter?wait=0&debounce={}",
    "filter": "/v1/state?filter=@.a%3E{}",
    "index": "/v1/state?filter=@[{}]",
    "slice": "/v1/state?filter=@[?@[{}:{}:{}]]",
    "version": "/v1/state/counter?version={}",
    "schedule": "/v1/schedule?limit={}",
    "commits": "/v1/changes?since=now&limit={}",
}
BODIES_WITH_NUMBERS = {
    "meta": '{{"type":"counter/add","payload":{{"amount":0}},"meta":{{"n":{}}}}}',
    "expect": '{{"type":"counter/add","payload":{{"amount":0}},"expect":[{{"path":"/counter/value","value":{}}}]}}',
    "payload": '{{"type":"counter/add","payload":{{"amount":{}}}}}',
    "after": '{{"type":"counter/add","payload":{{"amount":0}},"after":{}}}',
    "frame": '{{"type":"canvas/addBlock","payload":{{"id":3000,"frame":{{"x":{},"y":1,"width":1,"height":1}}}}}}',
}


@pytest.mark.parametrize("place", [*TAKING_NUMBERS, *BODIES_WITH_NUMBERS])
def test_a_number_at_the_end_of_its_type_is_answered_wherever_a_client_sends_one(server, place):
    """The least whole number has no absolute value, and a process that asks for it ends."""
    with server.client() as client:
        for number in EDGES:
            if place in TAKING_NUMBERS:
                answer = client.get(TAKING_NUMBERS[place].replace("{}", number))
            else:
                answer = client.post(BODIES_WITH_NUMBERS[place].format(number).encode())
            expect(answer.status < 500, number, "is answered with", answer)
