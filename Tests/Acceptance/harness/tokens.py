"""Tokens and grants of a server under test."""

import json
import os
import subprocess


def make_token(workspace, data, subject, *options):
    """A token for a server on a data directory, made by the command line."""
    result = subprocess.run(
        [workspace.binary, "token", "create", "--data", data, "--subject", subject, *options],
        capture_output=True,
        text=True,
        timeout=20,
        env={key: value for key, value in os.environ.items() if not key.startswith("STOREKEEPER_")},
    )
    assert result.returncode == 0, result.stderr
    return result.stdout.strip()


def token_names(data):
    """The names of the tokens in a data directory, by subject."""
    with open(os.path.join(data, "tokens.json")) as file:
        return {entry["subject"]: entry["id"] for entry in json.load(file)["tokens"]}


def bearer(token):
    """The field of a request that has a token."""
    return {"Authorization": f"Bearer {token}"}
