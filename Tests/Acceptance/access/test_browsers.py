"""A page of an allowed origin dispatches, waits and streams in a real browser; a page of another origin cannot."""

import http.server
import json
import shutil
import subprocess
import threading

import pytest

from harness.expectations import expect, wait_until
from harness.tokens import make_token

PAGE = """<!doctype html><title>page</title><script>
const [server, token, report] = JSON.parse(document.currentScript ? decodeURIComponent(location.hash.slice(1)) : "[]");
const found = {};
const note = (name, work) => work().then(value => { found[name] = value }, error => { found[name] = "refused: " + error.name });
const authorized = { Authorization: "Bearer " + token };
const post = amount => fetch(server + "/v1/actions", {
    method: "POST", headers: { ...authorized, "Content-Type": "application/json", "Idempotency-Key": "k" + Math.random() },
    body: JSON.stringify({ type: "counter/add", payload: { amount } }) });
const events = () => new Promise((resolve, reject) => {
    const source = new EventSource(server + "/v1/state/counter?access_token=" + token);
    source.addEventListener("snapshot", event => { source.close(); resolve(JSON.parse(event.data)) });
    source.onerror = () => { source.close(); reject(new Error("stream")) };
});
(async () => {
    await note("dispatch", async () => (await (await post(2)).json()).version > 0);
    await note("read", async () => {
        const answer = await fetch(server + "/v1/state/counter", { headers: authorized });
        window.tag = answer.headers.get("ETag");
        return [(await answer.json()).value, tag !== null, answer.headers.get("State-Cursor") !== null];
    });
    await note("wait", async () => {
        const waiting = fetch(server + "/v1/state/counter?wait=20", { headers: { ...authorized, "If-None-Match": window.tag || '"x"' } });
        setTimeout(() => post(1).catch(() => {}), 100);
        return (await (await waiting).json()).value;
    });
    await note("stream", events);
    await note("without a token", async () => (await (await fetch(server + "/v1/state/counter")).json()).code);
    await note("as a simple request", async () => (await fetch(server + "/v1/actions", {
        method: "POST", body: JSON.stringify({ type: "counter/add", payload: { amount: 1000 } }) })).status);
    await fetch(report, { method: "POST", body: JSON.stringify(found) });
})();
</script>"""


class Site(http.server.BaseHTTPRequestHandler):
    """Serves the page, and takes its report."""

    def do_GET(self):
        self.answer(PAGE.encode())

    def do_POST(self):
        self.server.report = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        self.answer(b"")

    def answer(self, body):
        self.send_response(200)
        self.send_header("Content-Type", "text/html")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_):
        pass


@pytest.fixture
def browse(workspace):
    browser = shutil.which("chromium")
    if not browser:
        pytest.skip("there is no Chromium on this machine")

    def visit(site, server, token):
        origin = f"http://localhost:{site.server_port}"
        arguments = json.dumps([f"http://127.0.0.1:{server.port}", token, origin + "/report"])
        site.report = None
        process = subprocess.Popen(
            [browser, "--headless", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage", "--no-first-run"]
            + [f"--user-data-dir={workspace.path(f'browser{workspace.count()}')}", f"{origin}/#{arguments}"],
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
        workspace.started.append(process)
        wait_until(lambda: site.report is not None, "the page has reported something", 60, pause=0.05)
        process.kill()
        return site.report

    return visit


@pytest.fixture
def sites(workspace):
    """Two sites on ports of their own: two origins."""
    found = [http.server.ThreadingHTTPServer(("127.0.0.1", 0), Site) for _ in range(2)]
    for site in found:
        threading.Thread(target=site.serve_forever, daemon=True).start()
        workspace.at_close.append(site.shutdown)
    return found


def test_a_page_of_an_allowed_origin_can_and_one_of_another_cannot(workspace, browse, sites):
    allowed, other = sites
    data = workspace.path("data")
    token = make_token(workspace, data, "page", "--read", "/counter", "--dispatch", "counter/*")
    server = workspace.server(data=data, allowed_origins=f"http://localhost:{allowed.server_port}")

    found = browse(allowed, server, token)

    expect(found["dispatch"] is True, found)
    expect(found["read"] == [2, True, True] and found["wait"] == 3 and found["stream"] == {"value": 3}, found)
    expect(found["without a token"] == "unauthorized", found)
    # A request that needs no question first has no JSON, and is refused like any other without a token.
    expect(found["as a simple request"] in (401, 415), found)

    found = browse(other, server, token)

    expect(all(str(value).startswith("refused") for value in found.values()), found)
    with server.client() as client:
        value = client.get("/v1/state/counter", Authorization=f"Bearer {token}").json
        expect(value == {"value": 3}, f"a page of another origin has changed the state: {value}")
