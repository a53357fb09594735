"""The types of client.js for a server, made of its catalogue and its OpenAPI document."""

import json

from harness.pages import ROOT
from harness.tools import run

TEMPLATE = ROOT / "Sources/CPage/files/client.d.ts"


def declarations(client):
    """The text of client.d.ts for what this client sees."""
    document = client.get("/v1/openapi.json").json
    schemas = document["components"]["schemas"]
    actions = [(each["type"], each["payload"]) for each in client.get("/v1/actions").json["actions"]]
    views = [
        (view["name"], document["paths"][view["href"]]["get"]["responses"]["200"]["content"]["application/json"]["schema"])
        for view in client.get("/v1/views").json["views"]
    ]

    def interface(name, members):
        lines = "".join(f"    {json.dumps(key)}: {type_of(schema, schemas)}\n" for key, schema in members)
        return f"\nexport interface {name} {{\n{lines}}}\n"

    state = f"\nexport type State = {type_of(schemas['State'], schemas)}\n"
    return TEMPLATE.read_text() + interface("Actions", actions) + state + interface("Views", views)


def type_of(schema, schemas, above=()):
    """The TypeScript type of a JSON Schema; a schema inside itself is unknown."""
    if "$ref" in schema:
        name = schema["$ref"].rpartition("/")[2]
        return "unknown" if name in above else type_of(schemas[name], schemas, (*above, name))
    if "anyOf" in schema:
        return " | ".join(dict.fromkeys(type_of(each, schemas, above) for each in schema["anyOf"]))
    if "enum" in schema:
        return " | ".join(json.dumps(value) for value in schema["enum"])
    kinds = schema.get("type", [])
    kinds = [kinds] if isinstance(kinds, str) else kinds
    return " | ".join(dict.fromkeys(kind_of(kind, schema, schemas, above) for kind in kinds)) or "unknown"


def kind_of(kind, schema, schemas, above):
    if kind in ("integer", "number"):
        return "number"
    if kind == "array":
        return f"Array<{type_of(schema.get('items', {}), schemas, above)}>"
    if kind != "object":
        return kind
    members = [
        f"{json.dumps(name)}{'' if name in schema.get('required', []) else '?'}: {type_of(member, schemas, above)}"
        for name, member in schema.get("properties", {}).items()
    ]
    others = schema.get("additionalProperties", {})
    if others is not False:
        # Beside declared members only `unknown` goes with all of them.
        members.append(f"[member: string]: {'unknown' if members else type_of(others, schemas, above)}")
    return "{ " + "; ".join(members) + " }"


def compile_strictly(*files):
    """The exit code of the compiler, and what it says."""
    return run("tsc", "--strict", "--noEmit", "--target", "es2022", "--module", "node16", "--moduleResolution", "node16",
               "--lib", "es2022,dom", *files)
