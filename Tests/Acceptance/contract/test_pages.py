"""Every command of the README and of the pages, as it stands there."""

import json
import os
import re
import signal
import subprocess

import pytest

from harness.actions import add
from harness.expectations import expect, expect_equal
from harness.pages import PAGES, ROOT, all_blocks, normal
from harness.tools import need

BLOCKS = all_blocks()
SHELL = [block for block in BLOCKS if block.language == "sh"]
# Pages whose programs other tests run: the loops of clients, and the guide, which is built.
RUN_ELSEWHERE = {
    "ClientLoops.md": "following/test_client_loops.py",
    "Clients.md": "clients/test_guide.py, clients/test_python.py, clients/test_queue.py",
    "StreamClients.md": "standard_streams/test_guide.py",
    "Adopting.md": "Tests/Adopter/guide.py",
    "WholeDomain.md": "Tests/Adopter/guide.py",
    "Tutorial.md": "contract/test_tutorial.py",
    "Hooks.md": "hooks/test_guide.py",
}
# Blocks that need what a test has not; each is named by how it begins, with what is known about it all the same.
NOT_RUN = {
    "docker build -t storekeeper . &&": "needs Docker; PackageTests compares the Dockerfile with what is built",
    "bash .ci/install && bash .ci/package": "takes a release build; deployment/test_package.py installs what it makes",
    "storekeeper serve --data etcd://": "needs etcds; cluster/test_shared_history.py has them",
    "storekeeper serve --data etcds://": "needs etcds; cluster/test_protection.py has them",
    "etcdctl member remove": "needs etcds; cluster/test_maintenance.py makes these changes by the same requests",
    "systemctl stop storekeeper                     ": "needs etcds; cluster/test_journal_tools.py moves histories",
    "storekeeper --data document": "another server; Documents.md has the actions, domains/test_document.py the domain",
    "storekeeper serve --model": "another server; models/test_serving.py has it",
    "storekeeper model check config/models": "needs the models; models/test_commands.py runs both commands",
    "docker compose": "needs Docker; deployment/test_manifests.py judges the file",
    "docker build -t storekeeper:0.3.0": "needs a cluster; deployment/test_manifests.py judges the manifest",
    "kubectl create secret": "needs a cluster; deployment/test_kubernetes.py has what the server does in one",
    "sudo tar xzf": "needs root; deployment/test_package.py runs the archive, deployment/test_systemd.py judges the unit",
    "bash .ci/install && swift build": "needs root; deployment/test_systemd.py judges the unit",
    "storekeeper check --config": "needs a service of systemd",
    "sudo install -m 644 config/systemd/storekeeper.socket": "needs root; test_socket_activation.py judges the unit",
    "TOKEN=$(sudo -u storekeeper": "needs a service of systemd; deployment/test_proxies.py has a server with a token",
    "curl -i https://storekeeper.example.com": "needs a name of its own; deployment/test_proxies.py asks by proxies",
    "storekeeper journal quarantine list --data data\n": "needs a reducer with a bug; Tests/Adopter/poison.py runs it",
    "bash .ci/benchmarks": "takes twenty minutes; the step benchmarks of .ci/long is its short form",
    "curl -s localhost:8080/metrics   ": "writes to /etc; metrics/test_rules.py judges the files that it copies",
}
# Options of commands that a page names and that has to be there; a block that is not run is read for them.
PATHS = re.compile(r"\b(?:config|\.ci)/[\w./-]+")
# The answer to these commands is a problem, as their page says.
PROBLEMS = {"Errors.md"}

PRELUDE = r"""
set -eo pipefail
# A stream has no end. A person stops it: curl gives up after half a second, and says 28. Where a program reads it, or the
# page says when it ends, the command runs as it stands.
curl() {
    local last=0
    if [[ " $* " =~ ' -N '|' -sN ' && ! " $* " =~ ' -m '|' --max-time ' && ! -p /dev/stdout ]]; then set -- "$@" -m 0.5; fi
    command curl "$@" || last=$?
    [ $last = 0 ] || [ $last = 28 ]
}
# The service of a machine is a process of the test.
systemctl() {
    if [ "$1" = stop ]; then
        kill -TERM "$(cat server.pid)"
        # One that has ended is there until its parent asks for it, but runs no program.
        while readlink "/proc/$(cat server.pid)/exe" >&2; do sleep 0.02; done
    else
        rm -f server.port
        command storekeeper serve --listen "$SERVER" --data data --port-file server.port >server.log 2>&1 &
        echo $! >server.pid
        until [ -s server.port ]; do sleep 0.02; done
    fi
}
"""
# What a block has left in the background comes to its end; a server among it is stopped.
EPILOGUE = r"""
for job in $(jobs -p | grep -vxf server.pid); do
    if grep -q '^storekeeper' "/proc/$job/cmdline" 2>&1; then kill "$job"; fi
    wait "$job"
done
"""


# Pages whose server serves the model that the page begins with.
OWN_MODELS = {"OwnRows.md", "Views.md"}


def served(page):
    """The settings of the server that a page has: the page says so where it needs more than the program alone."""
    if page == "Models.md":
        return {"model": ROOT / "config/models/counter.js"}
    [path] = [path for path in [ROOT / "README.md", *PAGES.rglob("*.md")] if path.name == page]
    is_example = "storekeeper --domain showcase" in path.read_text() or "Reference" in path.parts
    return {"domain": "showcase" if is_example else "document"}


# Pages that show what is there after some actions, and by how much each adds.
SEEDED = {"Reading.md": [2], "StreamsOverHTTP.md": [2], "Following.md": [2, 40]}


EVENT_SOURCE = """
class EventSource extends EventTarget {
    constructor(url) {
        super()
        this.read(url)
    }
    async read(url) {
        const answer = await fetch(url, { headers: { Accept: "text/event-stream" } })
        let text = ""
        for await (const bytes of answer.body.pipeThrough(new TextDecoderStream())) {
            const events = (text + bytes).split("\\n\\n")
            text = events.pop()
            for (const event of events) {
                const fields = Object.fromEntries(event.split("\\n").map((line) => line.split(/: ?(.*)/s)))
                if (!("data" in fields)) continue
                const init = { data: fields.data, lastEventId: fields.id }
                this.dispatchEvent(new MessageEvent(fields.event ?? "message", init))
            }
        }
    }
}
"""


class Place:
    """A directory with a server, where the blocks of a page run one after the other."""

    def __init__(self, workspace, **settings):
        self.workspace = workspace
        os.mkdir(workspace.path("bin"))
        os.symlink(workspace.binary, workspace.path("bin/storekeeper"))
        self.server = workspace.server(data=workspace.path("data"), **settings)
        self.address = f"127.0.0.1:{self.server.port}"
        with open(workspace.path("server.pid"), "w") as file:
            file.write(str(self.server.pid))
        workspace.at_close.append(self.end)

    def end(self):
        """Ends the server that a block has started in place of the first one."""
        with open(self.workspace.path("server.pid")) as file:
            pid = int(file.read())
        if pid != self.server.pid:
            os.kill(pid, signal.SIGTERM)

    def run(self, text, seconds=30):
        """The exit code of a block and what it prints; 124 where it goes on for ever."""
        text = text.replace("localhost:8080", self.address).replace("/backups", self.workspace.path("backups"))
        text = text.replace("/run/storekeeper", self.workspace.path("run")).replace("$(date +%F)", "2026-11-22")
        text = text.replace("t84e0886699", "$(storekeeper token list | tail -n 1 | cut -d' ' -f1)")
        environment = {key: value for key, value in os.environ.items() if not key.startswith("STOREKEEPER_")}
        environment["PATH"] = self.workspace.path("bin") + ":" + environment["PATH"]
        environment["SERVER"] = self.address
        printed, errors = open(self.workspace.path("printed"), "w+"), open(self.workspace.path("errors"), "w+")
        with printed, errors:
            process = subprocess.Popen(
                ["bash", "-c", PRELUDE + text + EPILOGUE],
                cwd=self.workspace.directory,
                env=environment,
                stdin=subprocess.DEVNULL,
                stdout=printed,
                stderr=errors,
                start_new_session=True,
            )
            try:
                code = process.wait(seconds)
            except subprocess.TimeoutExpired:
                os.killpg(process.pid, signal.SIGKILL)
                process.wait()
                code = 124
            printed.seek(0)
            errors.seek(0)
            return code, printed.read(), errors.read()[-500:]


@pytest.fixture
def place(workspace, request):
    need("curl", "jq")
    page = request.node.callspec.params.get("page") if hasattr(request.node, "callspec") else None
    settings = served(page or "README.md")
    if page in OWN_MODELS:
        settings = {"model": workspace.path("tasks.js")}
        with open(settings["model"], "w") as file:
            file.write(next(block.text for block in BLOCKS if block.language == "js" and block.page == page))
    return Place(workspace, **settings)


def judge_output(block, printed):
    """What the page shows stands in what was printed: a JSON document, or lines in their order."""
    wanted, found = normal(block.output), normal(printed)
    if wanted.lstrip().startswith("{"):
        document = json.loads(wanted.replace("{...}", '"..."'))
        documents = [json.loads(line) for line in found.splitlines() if line.startswith("{")]
        expect(any(is_like(document, each) for each in documents), f"{block} shows {wanted}, and it is {found[-500:]}")
        return
    lines = iter(found.splitlines())
    for line in wanted.splitlines():
        expect(line in lines, f"{block} shows the line {line!r}, and what comes is:\n{found[-500:]}")


def is_like(wanted, found):
    if wanted == "...":
        return True
    if isinstance(wanted, dict) and isinstance(found, dict):
        return list(wanted) == list(found) and all(is_like(wanted[key], found[key]) for key in wanted)
    return wanted == found


def run_and_judge(place, block):
    is_endless = "while true" in block.text
    code, printed, errors = place.run(block.text, 1.5 if is_endless else 30)
    expect_equal(code, 124 if is_endless else 0, f"the exit code of {block}, which printed {printed[-500:]} {errors}")
    if block.page not in PROBLEMS:
        expect('"code":"' not in printed, f"{block} met a problem: {printed[-500:]}")
    if block.output is not None:
        judge_output(block, printed)
    return printed


@pytest.mark.parametrize("page", sorted({block.page for block in SHELL} - set(RUN_ELSEWHERE) - {"README.md"}))
def test_the_commands_of_the_page(place, page):
    """The blocks of a page one after the other, beside one server."""
    with place.server.client() as client:
        for amount in SEEDED.get(page, []):
            client.commit(add(amount))
    for block in SHELL:
        if block.page == page and not reason_not_to_run(block):
            if "storekeeper serve" in block.text:
                place.server.stop()
            printed = run_and_judge(place, block)
            if page == "Following.md" and "Accept" in block.text:
                expect("event: snapshot" in printed and printed.count('"action"') == 2, printed)


@pytest.mark.parametrize("block", [block for block in SHELL if block.page == "README.md"], ids=str)
def test_the_commands_of_the_readme(place, block):
    """Each block beside a server of its own."""
    if reason := reason_not_to_run(block):
        pytest.skip(reason)
    run_and_judge(place, block)


def test_the_session_that_the_readme_begins_with(place):
    """Each command prints the lines that stand below it."""
    [session] = [block for block in BLOCKS if block.language == "console"]
    commands, shown = [], []
    for line in session.text.splitlines():
        if line.startswith("$ "):
            commands.append(line.removeprefix("$ "))
            shown.append([])
        elif line:
            shown[-1].append(line.partition("  #")[0].rstrip())
    expect_equal(len(commands), 4, "the commands of the session")
    code, printed, _ = place.run("\n".join(f"echo\necho @@{number}\n{text}" for number, text in enumerate(commands)))
    expect_equal(code, 0, "the exit code of the session")
    for number, lines in enumerate(shown):
        found = normal(printed.partition(f"@@{number}\n")[2])
        for line in lines:
            expect(normal(line) in found, f"{commands[number]} shows {line!r}, and what comes is:\n{found[:500]}")


def reason_not_to_run(block):
    return next((reason for start, reason in NOT_RUN.items() if block.text.startswith(start)), None)


def test_a_block_that_is_not_run_says_why_and_names_files_that_are_there():
    unused = [start for start in NOT_RUN if not any(block.text.startswith(start) for block in SHELL)]
    expect(not unused, f"no page has {unused}")
    for block in SHELL:
        if reason_not_to_run(block):
            for path in PATHS.findall(block.text):
                expect((ROOT / path.rstrip("/.")).exists(), f"{block} names {path}, which is not there")


def test_every_block_is_a_command_a_program_or_what_one_prints():
    languages = {block.language for block in BLOCKS if block.page not in RUN_ELSEWHERE}
    expect_equal(languages - {""}, {"sh", "swift", "console", "js"}, "the languages of the pages")


def test_the_settings_that_a_page_installs_name_the_journal_of_the_unit(tmp_path):
    """A command with `--config` runs in any folder, so a relative path would lead it elsewhere."""
    installs = [block for block in SHELL if "/etc/storekeeper/storekeeper.json\n" in block.text and "install -D" in block.text]
    expect(installs, "no page installs the settings")
    for number, block in enumerate(installs):
        path = tmp_path / f"{number}.json"
        path.write_bytes((ROOT / "config/storekeeper.json").read_bytes())
        for command in re.findall(r"^sudo (sed -i .*)$", block.text, re.M):
            subprocess.run(["sh", "-c", command.replace("/etc/storekeeper/storekeeper.json", str(path))], check=True)
        expect_equal(json.loads(path.read_text())["data"], "/var/lib/storekeeper/data", f"the journal that {block} names")


def test_two_containers_of_the_pages_have_two_volumes():
    pages = [path.read_text() for path in [ROOT / "README.md", *PAGES.rglob("*.md")]]
    volumes = [name for page in pages for name in re.findall(r"docker run [^`\n]*-v ([\w-]+):/data", page)]
    expect(len(set(volumes)) == len(volumes) > 1, "a volume of two states:", volumes)


def test_the_page_about_security_names_all_that_needs_no_credential():
    routes = (PAGES / "Reference/Contract/Contract.md").read_text()
    rows = [row for row in routes.splitlines() if row.startswith("| `/") and "no credential" in row]
    wanted = {name for row in rows for name in re.findall("`([^`]+)`", row.split("|")[1])}
    text = (PAGES / "Guides/Security.md").read_text()
    sentence = re.search(r"^Without a token, everybody gets (.*?)\. ", text, re.M | re.S)[1]

    expect_equal(set(re.findall("`([^`]+)`", sentence)), wanted | {"/livez", "/readyz"}, "what everybody gets")


def test_the_tokens_of_the_page_about_deploying_may_dispatch_what_its_server_has(place):
    with place.server.client() as client:
        types = [each["type"] for each in client.get("/v1/actions").json["actions"]]
    names = re.findall(r"--dispatch '([^']+)\*'", (PAGES / "Guides/Deploying.md").read_text())
    expect(names, "the page makes no token that may dispatch")
    for name in names:
        expect(any(type.startswith(name) for type in types), f"{name}* is none of {types}")


def test_the_readme_says_where_the_program_is(workspace):
    """Its line makes `storekeeper` a command where `swift run -c release` has built it."""
    [line] = re.findall(r"^    (export PATH=.*)$", (ROOT / "README.md").read_text(), re.M)
    os.makedirs(workspace.path(".build/release"))
    os.symlink(workspace.binary, workspace.path(".build/release/storekeeper"))
    found = subprocess.run(
        ["bash", "-c", f"{line}; command -v storekeeper"], cwd=workspace.directory, capture_output=True, text=True,
        env={"PATH": "/usr/bin:/bin"},
    )
    expect_equal(found.stdout, workspace.path(".build/release/storekeeper") + "\n", found.stderr)


def test_the_readme_is_short_and_fits_the_screen():
    lines = (ROOT / "README.md").read_text().splitlines()
    expect(len(lines) <= 120, f"the README has {len(lines)} lines")
    wide = [line[:60] for line in lines if len(line) > 200]
    expect(not wide, f"lines of the README above 200 columns: {wide}")


def test_the_javascript_of_the_pages_gets_the_events(workspace):
    """By an EventSource of a few lines: a browser's, and that of Node 22, read the same events."""
    need("node")
    place = Place(workspace, **served("Following.md"))
    [block] = [block for block in BLOCKS if block.language == "js" and block.page == "Following.md"]
    with open(place.workspace.path("page.mjs"), "w") as file:
        file.write(EVENT_SOURCE + block.text.replace("localhost:8080", place.address))
    page = subprocess.Popen(
        ["node", place.workspace.path("page.mjs")], stdout=subprocess.PIPE, stdin=subprocess.DEVNULL, text=True)
    try:
        first = page.stdout.readline()
        with place.server.client() as client:
            client.commit(add(42))
        second = page.stdout.readline()
    finally:
        page.kill()
        page.wait()
        page.stdout.close()
    expect(first.endswith(" { value: 0 }\n") and second.endswith(" { value: 42 }\n"), first, second)
