"""A client's copy of the state, made of the messages of a state stream."""

from harness.expectations import expect, expect_equal


class Mirror:
    """What a client keeps of a state stream: the value of each entity by type and key."""

    def __init__(self):
        self.values = {}
        self.open = set()  # entities of a snapshot that has not ended

    def take(self, message):
        headers = message["headers"]
        if "control" in headers:
            expect(headers["control"] in ("snapshot-start", "snapshot-end"), "another control message:", message)
            if headers["control"] == "snapshot-start":
                self.values = {}
            return
        name = (message["type"], message["key"])
        expect(all(isinstance(part, str) and part for part in name), "type and key are non-empty strings:", message)
        operation = headers["operation"]
        expect_equal(operation == "insert", name not in self.values, f"whether {operation} of {name} is an insert")
        if operation == "delete":
            expect("value" not in message, "a delete has a value:", message)
            del self.values[name]
        else:
            self.values[name] = message["value"]


def entities_of(state, types):
    """What a mirror of this state has to hold; `types` is the list of GET /v1/streams."""
    found = {}
    for entry in types:
        tokens = [] if entry["type"] == "." else entry["type"].split(".")
        value = state
        for token in tokens:
            value = value[token]
        if "key" in entry:
            if entry["key"] in value:
                found[entry["type"], entry["key"]] = value[entry["key"]]
        elif isinstance(value, list):
            for before, identifier in zip([None, *value], value):
                after = None if before is None else str(before)
                found[entry["type"], str(identifier)] = {"after": after}
        else:
            for key, entity in value.items():
                found[entry["type"], key] = entity
    return found


def version_of_offset(offset):
    return int(offset.split("_")[1], 16)
