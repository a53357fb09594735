"""The Debian package that config/debian/build makes of the tested binary."""

import json
import os

import pytest
from harness.expectations import expect, expect_equal
from harness.tools import CONFIG, need, run

# What the binary of this build may need, by Debian's names; CI's binary has Swift's libraries beside it.
PACKAGES = {"libcurl4", "libjemalloc2", "libmicrohttpd12", "libsimdjson14", "libsqlite3-0", "libstdc++6"}


@pytest.fixture(scope="module")
def package(places):
    """The path of the package."""
    need("dpkg-shlibdeps", "dpkg-deb", "strip")
    code, said = run(
        *("bash", CONFIG / "debian/build", places.binary, places.directory, "--ignore-missing-info"),
        # A compressed package takes seconds more.
        env=os.environ | {"DPKG_DEB_COMPRESSOR_TYPE": "none"},
    )
    expect_equal(code, 0, said)
    return said.strip().splitlines()[-1]


def test_the_package_has_the_program_its_service_and_settings_that_an_operator_may_change(workspace, package):
    def field(name):
        return run("dpkg-deb", "--field", package, name)[1].strip()

    root = workspace.path("root")
    run("dpkg-deb", "--raw-extract", package, root)

    expect_equal(field("Version"), run(workspace.binary, "--version")[1].strip(), "the version")
    depends = {each.split()[0] for each in field("Depends").split(", ")}
    expect(PACKAGES <= depends, "the package depends on", depends)
    with open(f"{root}/DEBIAN/conffiles") as file:
        expect_equal(file.read(), "/etc/storekeeper/storekeeper.json\n", "the files of the operator")
    for name in ("storekeeper.service", "storekeeper.socket"):
        with open(f"{root}/lib/systemd/system/{name}") as file:
            expect_equal(file.read(), (CONFIG / "systemd" / name).read_text(), name)
    for script in ("postinst", "prerm", "postrm"):
        expect_equal(run("sh", "-n", f"{root}/DEBIAN/{script}"), (0, ""), f"what sh says of {script}")
        expect(os.access(f"{root}/DEBIAN/{script}", os.X_OK), f"{script} is no program")


def test_the_packaged_program_takes_the_packaged_settings(workspace, package):
    root = workspace.path("root")
    run("dpkg-deb", "--raw-extract", package, root)

    code, said = run(f"{root}/usr/bin/storekeeper", "check", "--config", f"{root}/etc/storekeeper/storekeeper.json")

    expect_equal(code, 0, said)
    with open(f"{root}/etc/storekeeper/storekeeper.json") as file:
        settings = json.load(file)
    shipped = json.loads((CONFIG / "storekeeper.json").read_text())
    expect_equal(settings, shipped | {"data": "/var/lib/storekeeper/data"}, "the settings")
