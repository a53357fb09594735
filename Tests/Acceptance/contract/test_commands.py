"""The first commands of the README, by curl."""

import json
import subprocess

from harness.expectations import expect, expect_equal


def test_curl_posts_an_action_and_reads_the_value_with_an_etag_and_a_state_cursor(workspace):
    server = workspace.server()
    address = f"http://127.0.0.1:{server.port}"

    def curl(*arguments):
        run = subprocess.run(["curl", "-sS", "-i", "-m", "10", *arguments], capture_output=True, timeout=20)
        expect(run.returncode == 0, "curl:", run.stderr.decode())
        head, _, body = run.stdout.decode().partition("\r\n\r\n")
        fields = dict(line.lower().split(": ", 1) for line in head.split("\r\n")[1:])
        return int(head.split()[1]), fields, json.loads(body)

    body = '{"type":"counter/add","payload":{"amount":2}}'
    status, fields, receipt = curl("--json", body, f"{address}/v1/actions")
    expect_equal((status, receipt["version"], receipt["changed"]), (200, 1, True), "the receipt")
    expect_equal(fields["state-cursor"], receipt["cursor"], "State-Cursor of the receipt")
    status, fields, value = curl(f"{address}/v1/state/counter")
    expect_equal((status, value), (200, {"value": 2}), "the counter")
    expect(fields.get("etag", "").startswith('"'), "no ETag:", fields)
    expect_equal(fields.get("state-cursor"), receipt["cursor"], "State-Cursor of the state")
