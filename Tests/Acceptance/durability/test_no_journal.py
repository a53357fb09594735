"""A start that cannot succeed makes no journal."""

import os
import socket

from harness.expectations import expect, expect_equal
from harness.messages import HOST
from harness.server import Server, start_refusal


def test_an_address_that_cannot_be_bound_is_found_before_a_journal_is_made(workspace):
    with socket.socket() as taken:
        taken.bind((HOST, 0))
        taken.listen()
        for listen, says in [
            (f"{HOST}:{taken.getsockname()[1]}", "another process already does"),
            ("192.0.2.7:0", "cannot listen on 192.0.2.7"),
        ]:
            data = workspace.path("never")
            server = Server(workspace, data, {})
            server.arguments = ["--listen", listen]
            server.launch()
            expect_equal(server.wait(20), 1, f"the exit code for {listen}")
            expect(says in server.log_text(), server.log_text())
            expect(not os.path.exists(data), "there is a data directory after", listen)


def test_a_port_file_that_is_a_directory_is_refused_before_a_journal_is_made(workspace):
    data, directory = workspace.path("never"), workspace.path("ports")
    os.mkdir(directory)
    server = Server(workspace, data, {})
    server.arguments = ["--port-file", directory]
    server.launch()
    expect_equal(server.wait(20), 1, "the exit code")
    expect("is a directory; name a file" in server.log_text(), server.log_text())
    expect(not os.path.exists(data), "there is a data directory")
    expect_equal(os.listdir(directory), [], "what is in the directory")


def test_allowed_hosts_that_no_request_can_have_are_refused(workspace):
    for hosts in ["*", "http://state.example/", ",,", "state.example,"]:
        data = workspace.path("never")
        start_refusal(workspace, data, "allowed_hosts must be", allowed_hosts=hosts)
        expect(not os.path.exists(data), "there is a data directory after", hosts)
