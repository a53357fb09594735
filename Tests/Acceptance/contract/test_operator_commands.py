"""What a newcomer types wrong at the command line, and what the program answers."""

import subprocess

import pytest

from harness.expectations import expect, expect_equal


def run(workspace, *arguments):
    found = subprocess.run(
        [workspace.binary, *arguments], capture_output=True, text=True, timeout=30, cwd=workspace.directory)
    return found.returncode, found.stdout, found.stderr


@pytest.mark.parametrize(
    "command", [["info"], ["verify"], ["quarantine", "list"], ["quarantine", "drop", "q1"], ["quarantine", "retry", "q1"]],
    ids=" ".join)
def test_a_command_for_a_journal_that_is_not_there_fails(workspace, command):
    code, printed, said = run(workspace, "journal", *command, "--data", "nosuch")

    expect_equal((code, printed), (1, ""), f"code and output of journal {' '.join(command)}")
    expect("there is no journal in the data directory nosuch" in said, said)


def test_a_journal_without_quarantined_actions_lists_none(workspace):
    workspace.server(data=workspace.path("data")).stop()

    expect_equal(run(workspace, "journal", "quarantine", "list", "--data", "data"), (0, "", ""), "the list")


@pytest.mark.parametrize(
    "text, says",
    [
        ('{"tokens": [', "is not JSON: "),
        ("", "is not JSON: "),
        ('{"tokens": 1}', "has a fault at /tokens: expected an array"),
        ('{"tokens": [{"id": "t1"}]}', "has a fault at /tokens/0/subject: is missing; expected a string"),
        ("{}", "has a fault at /tokens: is missing; expected an array"),
    ],
)
def test_a_broken_token_file_is_a_sentence_with_its_place(workspace, text, says):
    with open(workspace.path("tokens.json"), "w") as file:
        file.write(text)

    code, _, said = run(workspace, "token", "list", "--tokens", "tokens.json")

    expect_equal(code, 78, said)
    expect(f"the token file tokens.json {says}" in said, said)
    for word in ("DecodingError", "CodingKey", "debugDescription", "Swift"):
        expect(word not in said, said)


def test_a_place_to_listen_on_that_is_none_names_its_source(workspace):
    for arguments, source in ((["--listen", "nowhere"], "flag"), (["--listen-also", "x"], "flag")):
        code, _, said = run(workspace, "check", *arguments)
        expect_equal(code, 78, said)
        expect(f"{arguments[0][2:].replace('-', '_')} ({source}) must be " in said, said)
