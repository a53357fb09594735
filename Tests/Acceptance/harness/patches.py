"""RFC 6902 patches applied to Python values."""

import copy

from harness.expectations import Failure, expect, expect_equal


def apply_patch(state, patch):
    """Applies an RFC 6902 patch to a document in place and returns it."""
    for operation in patch:
        kind, path = operation["op"], operation["path"]
        if kind in ("move", "copy"):
            value = copy.deepcopy(_at(state, operation["from"]))
            if kind == "move":
                state = _remove(state, operation["from"])
            state = _add(state, path, value)
        elif kind == "add":
            state = _add(state, path, copy.deepcopy(operation["value"]))
        elif kind == "remove":
            state = _remove(state, path)
        elif kind == "replace":
            _at(state, path)  # it has to be there
            if path == "":
                state = copy.deepcopy(operation["value"])
            else:
                parent, key = _parent(state, path)
                parent[key] = copy.deepcopy(operation["value"])
        elif kind == "test":
            expect_equal(_at(state, path), operation["value"], f"the patch's test of {path}")
        else:
            raise Failure(f"a patch with the operation {kind}")
    return state


def _tokens(path):
    expect(path == "" or path[0] == "/", f"{path} is not a JSON Pointer")
    return [token.replace("~1", "/").replace("~0", "~") for token in path.split("/")[1:]]


def _step(value, token):
    return value[int(token)] if isinstance(value, list) else value[token]


def _at(state, path):
    for token in _tokens(path):
        state = _step(state, token)
    return state


def _parent(state, path):
    tokens = _tokens(path)
    for token in tokens[:-1]:
        state = _step(state, token)
    return state, int(tokens[-1]) if isinstance(state, list) and tokens[-1] != "-" else tokens[-1]


def _add(state, path, value):
    if path == "":
        return value
    parent, key = _parent(state, path)
    if isinstance(parent, list):
        position = len(parent) if key == "-" else key
        expect(0 <= position <= len(parent), f"a patch adds at {path}, beyond the end")
        parent.insert(position, value)
    else:
        parent[key] = value
    return state


def _remove(state, path):
    parent, key = _parent(state, path)
    del parent[key]
    return state
