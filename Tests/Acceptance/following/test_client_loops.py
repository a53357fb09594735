"""The programs of the page for clients, as they stand there, through kill -9 and restarts of the server."""

import os
import pathlib
import subprocess
import sys

import pytest

from harness.actions import add
from harness.expectations import expect, expect_equal, wait_until
from harness.followers import judge_history
from harness.pages import blocks
from harness.programs import Program, free_port
from harness.tools import find, need

PAGE = "Guides/ClientLoops.md"
HERE = "127.0.0.1:8080"
LOOPS = {
    "wait": "Read and wait",
    "follow": "Follow every commit",
    "dispatch": "Dispatch with retries",
    "set": "Compare and set",
}
# What a language needs, what makes a file a program that can be run, and how that is run.
LANGUAGES = {
    "sh": (["bash", "curl", "jq"], None, lambda file: ["bash", file]),
    "python": ([], None, lambda file: [sys.executable, file]),
    "ts": (
        ["node", "tsc"],
        lambda files: ["--strict", "--target", "es2022", "--module", "es2022", "--lib", "es2022,dom", *files],
        lambda file: ["node", file.replace(".mts", ".mjs")],
    ),
    "swift": (["swiftc"], lambda files: ["-o", files[0].removesuffix(".swift"), *files], lambda file: [file[:-6]]),
}
ENDINGS = {"sh": ".sh", "python": ".py", "ts": ".mts", "swift": ".swift"}
COMPILERS = {"ts": "tsc", "swift": "swiftc"}
# What the programs of the page do: 1 + 2 + ... + 60, and 30 times the next multiple of ten.
INVOICES, ROUNDS = 60, 30
# A follower has its cursor in a file, but for the one that runs in a browser, too.
WITH_FILE = {"sh", "python", "swift"}


def programs(language):
    """The text of each loop, with what stands above each of them."""
    found = blocks(PAGE, language)
    prelude = "".join(text for above, text in found if above.endswith("stands above each of them:"))
    texts = {}
    for name, title in LOOPS.items():
        [text] = [text for above, text in found if above.startswith(title)]
        texts[name] = prelude + "\n" + text
    expect_equal(len(found), len(LOOPS) + 1, f"the blocks of {language}")
    return texts


@pytest.fixture(params=list(LANGUAGES))
def language(request):
    need(*LANGUAGES[request.param][0])
    return request.param


@pytest.fixture
def loops(workspace, language):
    """A server, and what starts a loop beside it."""
    port = free_port()
    _, compile_arguments, run = LANGUAGES[language]
    files = {}
    for name, text in programs(language).items():
        os.mkdir(workspace.path(name))
        expect(HERE in text, f"{name} asks no server at {HERE}")
        # Swift has a main.swift, whose code may stand outside of functions.
        files[name] = os.path.join(workspace.path(name), "main" + ENDINGS[language])
        with open(files[name], "w") as file:
            file.write(text.replace(HERE, f"127.0.0.1:{port}"))
    if compile_arguments:
        groups = [list(files.values())] if language == "ts" else [[file] for file in files.values()]
        compilers = [
            subprocess.Popen(
                [find(COMPILERS[language]), *compile_arguments(group)], stdout=subprocess.PIPE, stderr=subprocess.STDOUT
            )
            for group in groups
        ]
        for compiler in compilers:
            text = compiler.communicate(timeout=120)[0].decode()
            expect(compiler.returncode == 0, "the compiler says:", text)
    server = workspace.server(listen_also=f"127.0.0.1:{port}")
    return server, lambda name: Program(workspace, run(files[name]), workspace.path(name))


def await_version(server, version, programs):
    def is_there():
        for program in programs:
            expect(not program.process.poll(), f"{program.command} ended:", program.errors())
        with server.client() as client:
            return client.get("/v1").json["version"] >= version

    wait_until(is_there, f"the programs came to version {version}", 60)


def test_the_loops_of_the_page_miss_nothing_and_do_nothing_twice_through_kills(loops, language, figures):
    server, start = loops
    with server.client() as client:
        begin = client.get("/v1/state")
    waiting, following, dispatching, setting = [start(name) for name in LOOPS]
    for share in (0.25, 0.6):
        await_version(server, int(share * (INVOICES + ROUNDS)), [waiting, following, dispatching, setting])
        server.restart(down=0.2)
        if share == 0.6:
            # A client that is started again: the keys are names of intents, and the cursor is in a file.
            for program in [dispatching, setting] + [following] * (language in WITH_FILE):
                program.start_again()
    for program in (dispatching, setting):
        wait_until(lambda: program.process.poll() is not None, "a program came to its end", 60)
        expect_equal(program.process.returncode, 0, "the exit code, with " + program.errors())
    with server.client() as client:
        last = client.commit(add(1, id="last"))
        history = judge_history(client, begin.json, begin.cursor)
    commits = {version: action for version, (_, action) in history.by_version().items()}
    judge_sums(history, commits, dispatching)
    judge_followed(following, commits, last, language)
    judge_waited(waiting, history, commits)
    reset(server, waiting, following)
    if language in WITH_FILE:
        resume(server, following)
    figures(f"{len(commits)} commits, {len(waiting.printed())} of them seen by the waiter")


def judge_sums(history, commits, dispatching):
    """Each invoice is there once, and each round raised the value to a multiple of ten, once."""
    invoices = {line["version"] for line in dispatching.printed()}
    rounds = set(commits) - invoices - {max(commits)}
    amounts = sorted(commits[version]["payload"]["amount"] for version in invoices)
    expect_equal(amounts, list(range(1, INVOICES + 1)), "the amounts of the invoices")
    expect_equal(len(rounds), ROUNDS, "the rounds")
    expect_equal(len(commits), INVOICES + ROUNDS + 1, "the commits in all")
    value = 0
    for version in sorted(commits):
        value += commits[version]["payload"]["amount"]
        if version in rounds:
            expect_equal(value % 10, 0, f"what version {version} left over ten")
    expect_equal(value, history.state["counter"]["value"], "the counter")


def judge_followed(following, commits, last, language):
    """Each commit in order; one that was printed before the client was ended may come once more."""
    wait_until(
        lambda: (printed := following.printed()) and printed[-1].get("cursor") == last["cursor"],
        "the follower printed the last commit",
        20,
    )
    versions = [line["version"] for line in following.printed()]
    if language in WITH_FILE:
        steps = [after - before for before, after in zip(versions, versions[1:])]
        expect(sum(step != 1 for step in steps) <= 1, "the follower lost its place more than once:", versions)
    expect_equal(sorted(set(versions)), sorted(commits), "the versions that the follower printed")
    expect(language in WITH_FILE or len(versions) == len(commits), "the follower printed a commit twice:", versions)


def judge_waited(waiting, history, commits):
    """Values of the history in its order, each other than the one before, up to the last."""
    wait_until(
        lambda: (printed := waiting.printed()) and printed[-1] == history.state["counter"],
        "the waiter printed the last value",
        20,
    )
    values, value = [0], 0
    for version in sorted(commits):
        value += commits[version]["payload"]["amount"]
        values.append(value)
    printed = [line["value"] for line in waiting.printed()]
    # Each amount is above 0, so each value is there once.
    places = [values.index(value) for value in printed]
    back = [pair for pair in zip(places, places[1:]) if pair[0] >= pair[1]]
    expect(not back, f"the waiter printed a value again, or an older one, {len(back)} times")


def reset(server, waiting, following):
    """A server with another history: the waiter prints the new value, the follower the whole state and what follows."""
    known = len(following.printed())
    server.kill()
    server.data = "none"
    server.start()
    wait_until(lambda: len(following.printed()) > known, "the follower printed the state of the new history", 20)
    with server.client() as client:
        expect_equal(following.printed()[known], {"state": client.get("/v1/state").json}, "what came of the restart")
        wait_until(lambda: waiting.printed()[-1] == {"value": 0}, "the waiter printed the new value", 20)
        cursor = client.commit(add(7))["cursor"]
    wait_until(lambda: waiting.printed()[-1] == {"value": 7}, "the waiter printed the next value", 20)
    wait_until(lambda: following.printed()[-1].get("cursor") == cursor, "the follower printed the next commit", 20)


def resume(server, following):
    """A follower that is started again goes on behind what it has processed."""
    known = following.printed()
    stored = pathlib.Path(following.directory, "cursor")
    wait_until(lambda: stored.read_text().strip() == known[-1]["cursor"], "the follower has stored its cursor", 20)
    following.start_again()
    with server.client() as client:
        cursor = client.commit(add(1))["cursor"]
    wait_until(lambda: len(following.printed()) > len(known), "the follower went on", 20)
    expect_equal([line.get("cursor") for line in following.printed()[len(known) :]], [cursor], "what it printed then")
