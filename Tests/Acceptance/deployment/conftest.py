"""One server and the proxies in front of it, for the checks of a file."""

import os

import pytest
from harness.proxies import KINDS, NAME, Proxy
from harness.workspace import Workspace


def need(is_there, what):
    """Skips the test on a machine without what it needs; CI has to install all of `packages.txt`."""
    if not is_there:
        (pytest.fail if os.environ.get("CI") else pytest.skip)(f"{what} is not installed")


@pytest.fixture(scope="module")
def places(pytestconfig):
    """The directory, servers and proxies of a file; they end with it."""
    workspace = Workspace(pytestconfig.storekeeper, pytestconfig.seed)
    yield workspace
    workspace.close()


@pytest.fixture(scope="module")
def server(places):
    return places.server(data="none", allowed_hosts=NAME)


@pytest.fixture(scope="module", params=list(KINDS))
def kind(request):
    need(Proxy.is_installed(request.param), request.param)
    return request.param


@pytest.fixture(scope="module")
def proxy(kind, places, server):
    proxy = Proxy(places, kind, server.port).start()
    yield proxy
    proxy.stop()
