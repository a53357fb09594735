"""Very many scheduled actions, half of which are replaced or taken back, through kills of the server."""


import pytest

from harness.expectations import expect
from harness.forms import of_a_night
from harness.journal import journal_output
from harness.many_schedules import change_through_kills, judge_many, lateness
from harness.programs import free_port
from harness.schedules import DOCUMENT


@pytest.mark.long_form
def test_each_of_many_is_committed_once_and_in_order_through_kill_9(workspace, figures, pytestconfig):
    is_long = pytestconfig.getoption("--long")
    count, kills, lead, window, ahead = (of_a_night(100_000), 20, max(15, of_a_night(75)), 60, 5) if is_long else (800, 4, 1.5, 3, 0.5)
    server = workspace.server(**DOCUMENT)
    server.stop()
    server.fixed_port = free_port()
    server.start()

    kill = lambda down: server.restart(down=down)
    told = change_through_kills(workspace, [server.port], kill, count, kills, lead, window, ahead)

    with server.client() as client:
        fired = judge_many(client, told)
    server.stop()
    verified = journal_output(
        workspace, "verify", workspace.journal_of(server.data), "--deep", "--domain", "document")
    expect(b"verified" in verified, "what verify says:", verified)
    figures(f"{told}; late: {lateness(fired)}; late in the quiet end: {lateness(fired, told.quiet)}")
