"""Black-box acceptance of a storekeeper binary: each test starts its own servers and proves one sentence.

    python3 -m pytest Tests/Acceptance --storekeeper=.build/release/storekeeper [--long] [--journal=etcd] [-k WORDS]

STOREKEEPER_SEED repeats the random choices of a run. With `--journal=etcd` each data directory of a server is a history of
that name in an etcd of the run, and what `not_in_etcd.txt` names is skipped. Without further options the tests run one
after the other.

Most tests wait most of the time, and pytest-xdist can run several of those at once. Two marks say which tests another
one would disturb, or which would disturb another one:

- `alone`: it measures CPU time, memory or a share of slow answers, compares two speeds, or keeps the processors busy
  for seconds, as a siege does. No other test may run beside it.
- `prompt`: it has a bound of about a second, or less, for something that costs the machine little. Only others of its
  kind may run beside it.

.ci/run therefore runs all others with `-n 4`, and .ci/long runs `-m alone`, and then `-m prompt -n 3`. With `--dist
loadfile` the tests of a file run in one process, which keeps their servers.
"""

import os
import pathlib
import random
import signal

import pytest

from harness import missing
from harness.etcd import Etcds
from harness.expectations import Failure
from harness.forms import of_a_night
from harness.tools import takes_chunks
from harness.workspace import Workspace

# No test may hang: a test that takes longer than this has failed. The mark `seconds` gives a long form more.
SECONDS_MAX, LONG_SECONDS_MAX = 150, 900

ROOT = pathlib.Path(__file__).resolve().parents[2]


def pytest_addoption(parser):
    group = parser.getgroup("storekeeper")
    group.addoption(
        "--storekeeper", metavar="PATH", default=str(ROOT / ".build/release/storekeeper"), help="the binary to test"
    )
    group.addoption("--journal", choices=["sqlite", "etcd"], default="sqlite", help="where data directories' journals are")
    group.addoption("--inventory-server", metavar="PATH", help="the server of Tests/Adopter, whose reducer can trap")
    group.addoption("--long", action="store_true", help="the tests that have a long form, and no others, in that form")


def pytest_configure(config):
    if hasattr(config, "workerinput"):
        config.seed = config.workerinput["seed"]
    else:
        config.seed = int(os.environ.get("STOREKEEPER_SEED") or random.SystemRandom().randrange(1 << 32))
    binary = os.path.abspath(config.getoption("--storekeeper"))
    if not os.access(binary, os.X_OK) or os.path.isdir(binary):
        raise pytest.UsageError(f"--storekeeper: {binary} is not a program that can be run")
    config.storekeeper = binary


@pytest.hookimpl(optionalhook=True)
def pytest_configure_node(node):
    """Gives a process of pytest-xdist the seed of the run."""
    node.workerinput["seed"] = node.config.seed


def pytest_collection_modifyitems(session, config, items):
    folder = pathlib.Path(__file__).parent
    unknown = missing.mark(items, folder, missing.read(folder / "missing.txt"), config.getoption("--long"))
    unknown += missing.skip(items, folder, missing.read(folder / "not_in_etcd.txt"), config.getoption("--journal") == "etcd")
    if config.getoption("--long"):
        config.hook.pytest_deselected(items=[item for item in items if not has_long_form(item)])
        items[:] = filter(has_long_form, items)
    # A run of single tests does not collect the others.
    if unknown and not any("::" in argument for argument in config.args):
        raise pytest.UsageError(f"missing.txt or not_in_etcd.txt names tests that are not there: {unknown[:5]}")


def has_long_form(item):
    """Whether the long form does more than the one of .ci/run."""
    rounds = item.get_closest_marker("rounds")
    if rounds:
        return of_a_night(rounds.kwargs["long"]) > rounds.args[0]
    return any(item.get_closest_marker(name) for name in ("seconds", "long_form"))


def pytest_runtest_setup(item):
    mark = item.get_closest_marker("long_form")
    if mark and mark.kwargs.get("only") and not item.config.getoption("--long"):
        pytest.skip("it has a long form only")
    if item.get_closest_marker("chunks") and not takes_chunks():
        pytest.skip("the server takes no chunked bodies with this version of libmicrohttpd")


def pytest_report_header(config):
    return f"storekeeper: {config.storekeeper}, STOREKEEPER_SEED={config.seed}"


@pytest.fixture(scope="session", autouse=True)
def etcds(pytestconfig):
    """The etcd that has the journals of a run with --journal=etcd."""
    if pytestconfig.getoption("--journal") == "sqlite":
        yield
        return
    place = Workspace(pytestconfig.storekeeper, pytestconfig.seed)
    Workspace.etcds = Etcds(place, 1)
    yield
    Workspace.etcds = None
    place.close()


@pytest.fixture
def workspace(request, pytestconfig):
    """The servers and workers of one test, whose time begins here."""
    workspace = Workspace(pytestconfig.storekeeper, pytestconfig.seed)
    mark = request.node.get_closest_marker("seconds")
    is_long = pytestconfig.getoption("--long")
    seconds = (mark.kwargs["long"] if mark else LONG_SECONDS_MAX) if is_long else SECONDS_MAX

    def fail(*_):
        raise Failure(f"the test was not done within {seconds} s")

    before = signal.signal(signal.SIGALRM, fail)
    signal.alarm(seconds)
    yield workspace
    signal.alarm(0)
    signal.signal(signal.SIGALRM, before)
    workspace.close()


@pytest.fixture
def rounds(request):
    """How many rounds a test makes: its mark `rounds` says so, for a run in CI and for a night."""
    mark = request.node.get_closest_marker("rounds")
    return of_a_night(mark.kwargs["long"]) if request.config.getoption("--long") else mark.args[0]


@pytest.fixture
def figures(record_property):
    """Takes a line of figures that the summary of the run shows."""
    return lambda text: record_property("figures", text)


def pytest_terminal_summary(terminalreporter):
    reports = [report for report in terminalreporter.getreports("passed") if report.when == "call"]
    lines = [
        f"{report.nodeid.rpartition('::')[2].removeprefix('test_').replace('_', ' ')}\n    {text}"
        for report in reports
        for name, text in report.user_properties
        if name == "figures"
    ]
    if lines:
        terminalreporter.section("figures")
        for line in lines:
            terminalreporter.write_line(line)
