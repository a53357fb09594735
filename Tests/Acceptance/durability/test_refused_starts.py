"""Starts that the server refuses."""

import resource
import signal
import subprocess

from harness.actions import add
from harness.expectations import expect, expect_equal
from harness.messages import HOST
from harness.server import shorten_line, start_refusal


def test_a_start_without_room_on_the_disk_ends_with_a_sentence_and_an_exit_code(workspace):

    def limited():
        signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
        resource.setrlimit(resource.RLIMIT_FSIZE, (4096, resource.RLIM_INFINITY))

    start_refusal(workspace, workspace.path("data"), "journal", prepare=limited)


def test_a_second_process_on_the_same_data_is_refused_and_the_first_goes_on(workspace, figures):
    server = workspace.server()
    with server.client() as client:
        client.commit(add(1))
        text = start_refusal(workspace, server.data, "another process")
        client.commit(add(1))
        expect_equal(client.get("/v1/state/counter").json, {"value": 2}, "the counter of the first")
    server.restart()  # the lock goes with the process, however it ends
    with server.client() as client:
        expect_equal(client.get("/v1/state/counter").json, {"value": 2}, "the counter after a kill")
    figures(shorten_line(text))


def test_a_bad_setting_a_busy_port_or_an_impossible_directory_ends_the_start_with_a_sentence_that_names_it(workspace):
    server = workspace.server(data="none")
    start_refusal(workspace, "none", "body_bytes_max", body_bytes_max="many")
    start_refusal(workspace, "none", "WAITERS_MAX", waiter_max=4)
    start_refusal(workspace, "/proc/nothing/here", "/proc/nothing/here")
    # As sysexits.h has them: 1 for what may pass, 64 for the command line, 78 for the settings.
    for arguments, says, code in (
        [["--listen", f"{HOST}:{server.port}"], str(server.port), 1],
        [["--listen", "nowhere"], "listen", 78],
        [["--domain", "nothing"], "showcase", 78],
        [["--config", "/nothing.json"], "/nothing.json", 78],
        [["--lisen", "nowhere"], "lisen", 64],
        [["--port", "8080"], "did you mean --listen 127.0.0.1:8080?", 64],
    ):
        run = subprocess.run(
            [workspace.binary, "serve", "--data", "none", *arguments], capture_output=True, timeout=20, text=True
        )
        said = run.stderr + run.stdout
        expect(run.returncode == code and says in said, f"{arguments}: exit code {run.returncode}:", said)
