"""`Host` is checked: a page of another site cannot reach the server through a name that it points here."""

import pytest
from harness.actions import add
from harness.expectations import expect, expect_equal
from harness.wire import converse, head, judge_document, judge_one_answer

COUNTER = "/v1/state/counter"
OTHERS = [
    "evil.example",
    "evil.example:{port}",
    "127.0.0.1.evil.example",
    "127.0.0.1:{port}.evil.example",
    "localhost.evil.example:{port}",
    "evil.example@127.0.0.1",
    "127.0.0.1, evil.example",
    "127.0.0.1 evil.example",
    "127.0.0.1/evil.example",
    "192.0.2.1:{port}",
    "[2001:db8::1]:{port}",
]


@pytest.mark.parametrize("host", OTHERS)
def test_a_name_that_the_server_does_not_listen_on_is_refused(server, host):
    answer = judge_one_answer(converse(server.port, head("GET", COUNTER, host=host.format(port=server.port))))
    judge_document(answer, {400, 403, 421})


def test_an_action_for_another_name_is_not_committed(server):
    body = add(1)
    fields = ("Content-Type: application/json", f"Content-Length: {len(body)}")
    with server.client() as client:
        before = client.get("/v1").version
        received = converse(server.port, head("POST", "/v1/actions", *fields, host="evil.example") + body)
        judge_document(judge_one_answer(received, "POST"), {400, 403, 421})
        expect_equal(client.get("/v1").version, before, "the version")


def test_the_name_in_an_absolute_target_counts_and_not_the_field(server):
    """RFC 9112, section 3.2.2."""
    here = f"127.0.0.1:{server.port}"
    received = converse(server.port, head("GET", f"http://evil.example{COUNTER}", host=here))
    judge_document(judge_one_answer(received), {400, 403, 421})
    received = converse(server.port, head("GET", f"http://{here}{COUNTER}", host=here))
    expect_equal(judge_one_answer(received).status, 200, "the status for the server's own name")


@pytest.mark.parametrize("host", ["127.0.0.1:{port}", "127.0.0.1", "localhost:{port}", "localhost", "LocalHost:{port}"])
def test_a_name_of_the_listened_address_passes(server, host):
    """Both names of loopback, with the port and without it, in capitals as well."""
    received = converse(server.port, head("GET", COUNTER, host=host.format(port=server.port)))
    expect_equal(judge_one_answer(received).status, 200, "the status")


def test_allowed_hosts_pass_beside_the_listened_address_and_others_do_not(workspace):
    allowed = workspace.known(allowed_hosts="state.example,other.example:8080")
    expect(allowed, "the server has no setting allowed_hosts")
    server = workspace.server(data="none", access="open", **allowed)
    for host, status in (
        ("state.example", 200),
        ("state.example:8080", 200),
        ("STATE.example", 200),
        ("other.example:8080", 200),
        (f"127.0.0.1:{server.port}", 200),
        ("sub.state.example", 421),
        ("state.example.evil.example", 421),
        ("evil.example", 421),
    ):
        answer = judge_one_answer(converse(server.port, head("GET", COUNTER, host=host)))
        expect((answer.status == 200) == (status == 200), f"the answer for {host}:", answer)


def test_on_a_wildcard_address_any_name_passes_until_allowed_hosts_is_set(workspace):
    server = workspace.server(data="none", address="0.0.0.0", access="open")
    for host in ("state.example", "127.0.0.1", "anything"):
        received = converse(server.port, head("GET", COUNTER, host=host))
        expect_equal(judge_one_answer(received).status, 200, f"the status for {host}")


def test_on_a_wildcard_address_only_allowed_hosts_pass_where_they_are_set(workspace):
    allowed = workspace.known(allowed_hosts="state.example")
    expect(allowed, "the server has no setting allowed_hosts")
    server = workspace.server(data="none", address="0.0.0.0", access="open", **allowed)
    expect_equal(judge_one_answer(converse(server.port, head("GET", COUNTER, host="state.example"))).status, 200, "own")
    judge_document(judge_one_answer(converse(server.port, head("GET", COUNTER, host="evil.example"))), {400, 403, 421})
