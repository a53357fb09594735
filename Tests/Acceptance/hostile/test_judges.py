"""The judge of sieges notices what it exists for."""

import subprocess
import sys

import pytest
from harness.expectations import Failure, expect, passes
from harness.hostile import fake_server
from harness.hostile.attacks import unread
from harness.messages import encode_request
from harness.quiet import Sample
from harness.server import Server
from harness.siege import MEBIBYTE, SECONDS_BOUND_SHORT, Outcome, judge_siege, siege


class Fake(Server):
    """A server that does one thing wrong while a hostile client is there."""

    def launch(self):
        self.port_file, self.log = self.workspace.path("fake.port"), self.workspace.path("fake.log")
        with open(self.log, "wb") as log:
            self.process = subprocess.Popen(
                [sys.executable, fake_server.__file__, self.port_file, self.settings["fault"]], stdout=log, stderr=log
            )
        self.workspace.started.append(self.process)
        return self


FAULTS = {
    "stalls": "99 of 100",
    "stalls commits": "POST: 99 of 100",
    "grows": "the server grew",
    "refuses": "were not served",
    "hangs up": "were not served",
    "recovers late": "after the end",
}


@pytest.mark.alone
@pytest.mark.parametrize("fault", FAULTS)
def test_a_server_is_noticed_that(workspace, fault):
    server = Fake(workspace, "none", {"fault": fault}).start()
    outcome = siege(workspace, server, unread(encode_request("GET", "/v1/state"), 4), 0.8)
    with pytest.raises(Failure, match=FAULTS[fault]):
        judge_siege(outcome)


@pytest.mark.alone
def test_a_server_that_does_nothing_wrong_passes(workspace, figures):
    server = Fake(workspace, "none", {"fault": "none"}).start()
    attack = unread(encode_request("GET", "/v1/state"), 4)
    outcome = siege(workspace, server, attack, 0.8, seconds_bound=SECONDS_BOUND_SHORT)
    if outcome.is_near_miss():  # a busy machine, as in the tests of the real server
        outcome = siege(workspace, server, attack, 0.8, seconds_bound=SECONDS_BOUND_SHORT)
    figures(judge_siege(outcome))


def test_each_fault_is_noticed_by_itself():
    """An outcome as it should be, and one for each thing that may be wrong with it, at the next value that is."""

    def outcome(slow=0.0, late=0.0, grown=0, status=200, count=200):
        before = [Sample("POST", 0.005 * number, 0.002, 200) for number in range(100)]
        during = [Sample("POST", 1 + number / count, 0.002, 200) for number in range(count)]
        for number in range(2):
            during[number] = during[number]._replace(seconds=0.002 + slow)
        during[-1] = during[-1]._replace(status=status)
        after = [Sample("POST", 2.2, 0.002 + late, 200)]
        memory = 50 * MEBIBYTE
        return Outcome(before + during + after, 1, 2, memory, memory + grown, 60 * MEBIBYTE, "nothing", {"POST": {200}})

    expect(passes(judge_siege, outcome()), "a good outcome does not pass:", outcome().faults())
    expect(passes(judge_siege, outcome(slow=0.09)), "times below the bound do not pass")
    expect(passes(judge_siege, outcome(slow=0.2, count=400)), "two slow answers of 400 do not pass")
    expect(passes(judge_siege, outcome(grown=80 * MEBIBYTE)), "memory at the bound does not pass")
    expect(passes(judge_siege, outcome(late=0.5)), "a recovery within a second does not pass")
    for name, bad in {
        "two slow answers of 200": outcome(slow=0.11),
        "memory above the bound": outcome(grown=80 * MEBIBYTE + 4096),
        "a refusal": outcome(status=503),
        "a lost answer": outcome(status="no answer"),
        "a late recovery": outcome(late=0.9),
    }.items():
        expect(not passes(judge_siege, bad), f"{name} went unnoticed")
