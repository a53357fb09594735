"""The dashboard and the alert rules: promtool reads them, and the server exports what they name."""

import json
import re

import pytest

from harness.actions import add
from harness.expectations import expect, expect_equal
from harness.metrics import series_of
from harness.tools import CONFIG, need, run

DASHBOARD, RULES = CONFIG / "grafana/storekeeper.json", CONFIG / "prometheus/alerts.yaml"
SETTINGS = CONFIG / "prometheus/prometheus.yaml"
NAME = re.compile(r"(?:storekeeper|process)_[a-z_]+")
ALERT_TESTS = __file__.replace("test_rules.py", "alerts.yaml")


@pytest.fixture
def exported(workspace):
    """The text of /metrics of a server that has done a little of everything."""
    server = workspace.server()
    client = server.client()
    client.commit(add(1))
    client.get("/v1/state/nothing")
    return client.get("/metrics").body


def expressions():
    """Each expression of the dashboard, with the name of its panel and without the variables of Grafana."""
    dashboard = json.loads(DASHBOARD.read_text())
    for panel in dashboard["panels"]:
        for target in panel.get("targets", []):
            yield panel["title"], target["expr"].replace("$__rate_interval", "5m").replace("$instance", ".*")


def named(text):
    """The names of the metrics in a text, without the endings of the parts of a histogram."""
    return {re.sub("_(bucket|sum|count)$", "", name) for name in NAME.findall(text)}


def test_promtool_finds_no_fault_in_the_metrics(exported):
    need("promtool")

    code, said = run("promtool", "check", "metrics", input=exported.decode())

    expect_equal((code, said), (0, ""), "what promtool says of the metrics")


def test_promtool_finds_a_fault_in_a_metric_without_a_unit(exported):
    """The check before can fail."""
    need("promtool")

    code, said = run("promtool", "check", "metrics", input=exported.decode().replace("turn_seconds", "turn_milliseconds"))

    expect(code != 0 and "turn_milliseconds" in said, said)


def test_promtool_reads_the_rules_and_the_settings():
    need("promtool")

    code, said = run("promtool", "check", "rules", RULES)

    expect_equal(code, 0, said)
    code, said = run("promtool", "check", "config", "--syntax-only", SETTINGS)
    expect_equal(code, 0, said)


def test_each_alert_fires_where_it_should_and_not_before():
    need("promtool")

    code, said = run("promtool", "test", "rules", ALERT_TESTS)

    expect_equal(code, 0, said)


def test_each_alert_is_tested_and_says_what_to_do():
    alerts = re.findall(r"^ +- alert: (\w+)$", RULES.read_text(), re.M)
    expect(len(alerts) >= 10, alerts)
    with open(ALERT_TESTS) as file:
        tested = set(re.findall(r"alertname: (\w+)", file.read()))
    expect_equal(tested, set(alerts), "the alerts that have a test")
    parts = RULES.read_text().split("- alert: ")[1:]
    for part in parts:
        expect(re.search(r"\n +summary: .{20,}", part), "no summary:", part)
        expect(re.search(r"\n +runbook: .{60,}", part), "no runbook:", part)
        expect(re.search(r"\n +severity: (page|ticket)", part), "no severity:", part)


def test_promtool_reads_each_expression_of_the_dashboard(workspace):
    need("promtool")
    found = list(expressions())
    expect(len(found) >= 15, found)
    rules = workspace.path("dashboard.json")
    with open(rules, "w") as file:
        records = [{"record": f"panel:{number}", "expr": text} for number, (_, text) in enumerate(found)]
        json.dump({"groups": [{"name": "dashboard", "rules": records}]}, file)

    code, said = run("promtool", "check", "rules", rules)

    expect_equal(code, 0, said)


def test_each_metric_and_label_of_the_dashboard_and_the_rules_is_exported(exported):
    series = series_of(exported)
    names = {re.sub("_(bucket|sum|count)$", "", series.name) for series in series}
    labels = {name for series in series for name, _ in series.labels} | {"instance", "job"}
    texts = [*expressions(), ("the rules", RULES.read_text())]
    for panel, text in texts:
        expect(named(text) <= names, f"{panel}: no server exports", named(text) - names)
        for group in re.findall(r"\bby \(([^)]*)\)", text):
            used = {name.strip() for name in group.split(",")}
            expect(used <= labels, f"{panel}: no metric has the labels", used - labels)
    # Every metric is on the dashboard or in a rule, or is named here as one to look up.
    shown = set().union(*(named(text) for _, text in texts))
    rest = {"storekeeper_oldest_version", "storekeeper_history_commits", "storekeeper_memory_clients"}
    rest.add("process_start_time_seconds")
    expect_equal(names - shown, rest, "metrics that nothing shows")


def test_the_documentation_has_each_metric_and_no_other(exported):
    page = CONFIG.parent / "Sources/StateServer/StateServer.docc/Reference/Metrics.md"
    documented = set(re.findall(r"^\| `((?:storekeeper|process)_[a-z_]+)", page.read_text(), re.M))
    exported = {re.sub("_(bucket|sum|count)$", "", series.name) for series in series_of(exported)}

    expect_equal(documented, exported, "the metrics of the page")
