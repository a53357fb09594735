"""Numbers in the files under config that have to fit the settings of the server."""

import json
import re

from harness.expectations import expect, expect_equal
from harness.tools import CONFIG

SETTINGS = json.loads((CONFIG / "storekeeper.json").read_text())


def numbers(file, pattern):
    """Every number that the pattern finds in a file; it has to find one."""
    found = re.findall(pattern, (CONFIG / file).read_text(), re.MULTILINE)
    expect(found, f"{file} has nothing like {pattern}")
    return [int(each) for each in found]


def test_a_stop_has_more_time_than_the_server_takes():
    # The server ends itself two seconds after its grace time.
    for file, pattern in (
        ("systemd/storekeeper.service", r"^TimeoutStopSec=(\d+)$"),
        ("compose.yaml", r"stop_grace_period: (\d+)s$"),
        ("kubernetes/storekeeper.yaml", r"terminationGracePeriodSeconds: (\d+)$"),
        ("cluster/compose.yaml", r"stop_grace_period: (\d+)s$"),
        ("cluster/kubernetes.yaml", r"terminationGracePeriodSeconds: (\d+)$"),
    ):
        expect(min(numbers(file, pattern)) > SETTINGS["grace_seconds"] + 2, file)


def test_a_proxy_waits_longer_than_the_server_is_silent():
    silence = max(SETTINGS["wait_seconds_max"], SETTINGS["heartbeat_seconds"])
    for file, pattern in (
        ("proxies/nginx.conf", r"proxy_read_timeout (\d+)s;"),
        ("proxies/haproxy.cfg", r"timeout (?:client|server) (\d+)s$"),
    ):
        expect(min(numbers(file, pattern)) > silence, file)


def test_a_proxy_gives_up_an_idle_connection_before_the_server_does():
    for file, pattern in (
        ("proxies/nginx.conf", r"^        keepalive_timeout (\d+)s;"),
        ("proxies/Caddyfile", r"keepalive (\d+)s$"),
    ):
        expect(max(numbers(file, pattern)) < SETTINGS["idle_timeout_seconds"], file)


def test_a_proxy_has_the_same_limit_of_a_body():
    for file, pattern in (
        ("proxies/nginx.conf", r"client_max_body_size (\d+);"),
        ("proxies/Caddyfile", r"Content-Length}\) > (\d+)$"),
    ):
        expect_equal(numbers(file, pattern), [SETTINGS["body_bytes_max"]], file)
