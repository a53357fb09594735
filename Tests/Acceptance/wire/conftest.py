"""One server for the checks of a file: they send single requests, most of which have to be refused."""

import pytest
from harness.workspace import Workspace


@pytest.fixture(scope="module")
def server(pytestconfig):
    workspace = Workspace(pytestconfig.storekeeper, pytestconfig.seed)
    yield workspace.server(data="none", idle_timeout_seconds=20)
    workspace.close()
