"""One server and the proxies in front of it, for the checks of a file."""

import pytest
from harness.proxies import KINDS, NAME, Proxy
from harness.tools import need
from harness.workspace import Workspace


@pytest.fixture(scope="module")
def places(pytestconfig):
    """The directory, servers and proxies of a file; they end with it."""
    workspace = Workspace(pytestconfig.storekeeper, pytestconfig.seed)
    yield workspace
    workspace.close()


@pytest.fixture(scope="module")
def server(places):
    # What passes through a proxy is the same with a token; test_proxies.py has a server that asks for one.
    return places.server(data="none", allowed_hosts=NAME, access="open")


@pytest.fixture(scope="module", params=list(KINDS))
def kind(request):
    need(request.param)
    return request.param


@pytest.fixture(scope="module")
def proxy(kind, places, server):
    proxy = Proxy(places, kind, server.port).start()
    yield proxy
    proxy.end()
