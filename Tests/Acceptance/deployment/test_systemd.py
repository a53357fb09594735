"""The unit of config/systemd: systemd itself reads and rates it."""

import pathlib

from harness.expectations import expect, expect_equal
from harness.tools import CONFIG, need, run

# In tenths, of 100: what is left are the network and the addresses, which a server needs.
EXPOSURE_MAX = 14


def write_unit(workspace, change=lambda text: text):
    """A copy of the unit that starts the binary of this test; systemd looks at the program, too."""
    text = (CONFIG / "systemd/storekeeper.service").read_text()
    expect_equal(text.count("ExecStart=/usr/bin/storekeeper "), 1, "the program of the unit")
    unit = pathlib.Path(workspace.path("storekeeper.service"))
    unit.write_text(change(text.replace("/usr/bin/storekeeper", workspace.binary)))
    return unit


def test_systemd_understands_each_line_of_the_unit(workspace):
    need("systemd-analyze")

    expect_equal(run("systemd-analyze", "verify", "--man=no", write_unit(workspace)), (0, ""), "what systemd says")


def test_a_misspelt_line_is_found(workspace):
    need("systemd-analyze")
    unit = write_unit(workspace, lambda text: text.replace("ProtectHome=", "ProtectHomes="))

    _, said = run("systemd-analyze", "verify", "--man=no", unit)

    expect("ProtectHomes" in said, said)


def test_the_service_is_exposed_as_little_as_a_server_can_be(workspace, figures):
    need("systemd-analyze")
    arguments = ("security", "--offline=true", f"--threshold={EXPOSURE_MAX}")

    code, said = run("systemd-analyze", *arguments, write_unit(workspace))
    open_code, _ = run(
        "systemd-analyze", *arguments, write_unit(workspace, lambda text: text.replace("ProtectSystem=strict", ""))
    )

    expect_equal(code, 0, f"the exit code of systemd-analyze security: {said[-300:]}")
    expect(open_code != 0, "a unit without ProtectSystem passes as well")
    figures(said.strip().splitlines()[-1])
