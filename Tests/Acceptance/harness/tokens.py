"""Tokens and grants of a server under test."""

import json
import os

from harness.expectations import wait_until
from harness.programs import storekeeper


def make_token(workspace, data, subject, *options):
    """A token for a server on a data directory, made by the command line."""
    result = storekeeper(workspace, "token", "create", "--data", data, "--subject", subject, *options)
    assert result.returncode == 0, result.stderr
    return result.stdout.strip()


def revoke(workspace, data, name):
    """Revokes a token by its ID, or the one of a subject, and returns what the command says."""
    result = storekeeper(workspace, "token", "revoke", token_names(data).get(name, name), "--data", data)
    assert result.returncode == 0, result.stderr
    return result.stdout


def await_token(server, token, seconds=2):
    """Waits until a server knows a token."""
    with server.client() as client:
        wait_until(lambda: client.get("/v1", **bearer(token)).status == 200, "the token is known", seconds, pause=0.05)


def read_tokens(data):
    """The entries of the token file in a data directory."""
    with open(os.path.join(data, "tokens.json")) as file:
        return json.load(file)["tokens"]


def token_names(data):
    """The names of the tokens in a data directory, by subject."""
    return {entry["subject"]: entry["id"] for entry in read_tokens(data)}


def bearer(token):
    """The field of a request that has a token."""
    return {"Authorization": f"Bearer {token}"}
