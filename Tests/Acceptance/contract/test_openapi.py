"""What a reader looks for in the OpenAPI document, and that pages, transcripts and document say the same."""

import json
import re

import pytest

from harness.actions import action
from harness.expectations import expect, expect_equal
from harness.films_server import Stub
from harness.pages import PAGES, ROOT
from harness.tokens import bearer, make_token
from harness.tools import need_module
from harness.workspace import Workspace

TRANSCRIPTS = ROOT / "Tests/StateServerTests/Contract/Transcripts"
METHODS = ("delete", "get", "head", "post")


class Document:
    """An OpenAPI document, with what its references name."""

    def __init__(self, value):
        self.value = value

    def follow(self, value):
        """The target of a reference; anything else as it is. What stands beside a reference counts."""
        while isinstance(value, dict) and "$ref" in value:
            target = self.value
            for token in value["$ref"].removeprefix("#/").split("/"):
                target = target[token.replace("~1", "/").replace("~0", "~")]
            value = target | {name: other for name, other in value.items() if name != "$ref"}
        return value

    def schema(self, name):
        return self.value["components"]["schemas"][name]

    def operations(self):
        """Each operation with its path and method."""
        for path, item in self.value["paths"].items():
            for method in METHODS:
                if method in item:
                    yield path, method, item[method]

    def operation(self, method, path):
        return self.value["paths"][path][method]

    def parameters(self, method, path):
        return {
            (parameter["in"], parameter["name"]): parameter
            for parameter in map(self.follow, self.operation(method, path)["parameters"])
        }

    def query(self, method, path):
        return {
            name: parameter for (place, name), parameter in self.parameters(method, path).items() if place == "query"
        }

    def header(self, method, path):
        return {
            name: parameter for (place, name), parameter in self.parameters(method, path).items() if place == "header"
        }

    def response(self, method, path, status):
        return self.follow(self.operation(method, path)["responses"][str(status)])

    def content(self, method, path, status=200):
        return self.response(method, path, status).get("content", {})

    def fields(self, method, path, status):
        return set(self.response(method, path, status).get("headers", {}))

    def every(self, kind):
        """Every part of the document that is an object with this member."""

        def walk(value):
            if isinstance(value, dict):
                if kind in value:
                    yield value
                for each in value.values():
                    yield from walk(each)
            elif isinstance(value, list):
                for each in value:
                    yield from walk(each)

        yield from walk(self.value)

    def text(self, method, path):
        """What an operation says for people."""
        operation = self.operation(method, path)
        return " ".join([operation["summary"], operation["description"]])


@pytest.fixture(scope="module")
def server(pytestconfig):
    workspace = Workspace(pytestconfig.storekeeper, pytestconfig.seed)
    yield workspace.server(data="none")
    workspace.close()


@pytest.fixture(scope="module")
def whole(server):
    with server.client() as client:
        return Document(client.get("/v1/openapi.json").json)


@pytest.fixture(scope="module")
def derived(server):
    with server.client() as client:
        return Document(client.get("/v1/stores/tasks/openapi.json").json)


# MARK: What a reader looks for

STATE, PART, ACTIONS, CHANGES = "/v1/state", "/v1/state/{pointer}", "/v1/actions", "/v1/changes"


def names_all(document, kind, is_named):
    return all(is_named(each) for each in document.every(kind))


def has_fields(document, name, *fields):
    """A schema with these fields, each with a type and a description."""
    properties = document.schema(name)["properties"]
    return set(fields) <= set(properties) and all("description" in field for field in properties.values())


def says(text, *words):
    return all(word in text for word in words)


def codes(document, status):
    return re.findall(
        r"^- `([\w-]+)`", document.value["components"]["responses"][f"Problem{status}"]["description"], re.M
    )


def overview(document):
    return document.value["info"]["description"]


POINTS = {
    "the format is 3.1": lambda d: d.value["openapi"] == "3.1.0",
    "a title, a version and a summary": lambda d: {"title", "version", "summary"} <= set(d.value["info"]),
    "an overview of the words: versions, cursors, tags": lambda d: says(overview(d), "cursor", "ETag", "version"),
    "what long-polling is": lambda d: says(overview(d), "If-None-Match", "wait=25", "304", "Prefer: wait"),
    "what a stream is, and how a client comes back": lambda d: says(overview(d), "text/event-stream", "Last-Event-ID"),
    "what NDJSON and a batch are": lambda d: says(overview(d), "NDJSON", "An array of actions is one commit"),
    "what a dry run is": lambda d: says(overview(d), "dry-run", "commits nothing"),
    "what derived stores are, and where their documents are": lambda d: says(
        overview(d), "/v1/stores/{name}/openapi.json"
    ),
    "what HEAD and OPTIONS do": lambda d: says(overview(d), "`HEAD`", "`OPTIONS`"),
    "what stays compatible": lambda d: says(overview(d), "**Compatibility.**"),
    "how to retry safely": lambda d: says(overview(d), "Idempotency-Key", "429", "503"),
    "where the server is": lambda d: d.value["servers"][0]["url"] == "/",
    "the kinds of credentials": lambda d: set(d.value["components"]["securitySchemes"]) == {"token", "basic", "query"},
    "that a server can need none": lambda d: {} in d.value["security"],
    "an operationId on each operation, each once": lambda d: (
        len({o["operationId"] for _, _, o in d.operations()}) == len(list(d.operations()))
    ),
    "a tag on each operation, and each tag described": lambda d: (
        {tag for _, _, o in d.operations() for tag in o["tags"]} <= {tag["name"] for tag in d.value["tags"]}
        and all(tag["description"] for tag in d.value["tags"])
    ),
    "a summary and a description on each operation": lambda d: all(
        o["summary"] and o["description"] for _, _, o in d.operations()
    ),
    "a description on each parameter": lambda d: all(
        p["description"] for path, m, _ in d.operations() for p in d.parameters(m, path).values()
    ),
    "a schema on each parameter": lambda d: all(
        "schema" in p or "content" in p for path, m, _ in d.operations() for p in d.parameters(m, path).values()
    ),
    "a description on each named schema": lambda d: all(
        "description" in schema
        for name, schema in d.value["components"]["schemas"].items()
        if not name.endswith("-payload")
    ),
    "a description on each field of each answer": lambda d: all(
        "description" in d.follow(field)
        for name, schema in d.value["components"]["schemas"].items()
        if not name.endswith("-payload")
        for field in schema.get("properties", {}).values()
    ),
    "examples of what is sent and answered": lambda d: all(
        d.schema(name).get("examples")
        for name in ("Receipt", "DryRun", "Changes", "Commit", "Problem", "KeyedDifference", "Reset", "Lines", "Events")
    ),
    "each example is valid by its own schema": lambda d: examples_hold(d),
    "the fields of a receipt": lambda d: has_fields(
        d, "Receipt", "cursor", "version", "id", "changed", "state", "settled", "caused", "causedCount", "refused"
    ),
    "the fields of a commit": lambda d: has_fields(
        d, "Commit", "version", "cursor", "time", "id", "by", "cause", "root", "action", "patch", "keyed", "changed"
    ),
    "the fields of a page of changes": lambda d: has_fields(d, "Changes", "changes", "next", "more", "head"),
    "the fields of a reset, with its reasons": lambda d: (
        has_fields(d, "Reset", "reset", "reason", "state", "next")
        and len(d.schema("Reset")["properties"]["reason"]["enum"]) == 4
    ),
    "the fields of a keyed difference": lambda d: (
        has_fields(d, "KeyedDifference", "collections", "next", "more")
        and has_fields(d, "Difference", "initial", "added", "removed", "changed")
    ),
    "the fields of a dry run": lambda d: has_fields(d, "DryRun", "dryRun", "changed", "patch"),
    "the operations of a patch": lambda d: (
        d.schema("PatchOperation")["properties"]["op"]["enum"][:3] == ["add", "remove", "replace"]
    ),
    "the fields of the store's identity": lambda d: has_fields(
        d, "Identity", "epoch", "version", "cursor", "oldest", "limits", "links"
    ),
    "the fields of a problem, with those of single codes": lambda d: has_fields(
        d,
        "Problem",
        "type",
        "title",
        "status",
        "code",
        "detail",
        "requestId",
        "cursor",
        "errors",
        "pointer",
        "expected",
        "actual",
        "actualBytes",
        "etag",
        "epoch",
        "oldest",
        "head",
        "id",
        "limit",
        "line",
        "index",
        "traceId",
    ),
    "every code of the server as an enumeration": lambda d: len(d.schema("ServerCode")["enum"]) > 50,
    "every code with its status and its meaning": lambda d: (
        {code for status in statuses(d) for code in codes(d, status)} == set(d.schema("ServerCode")["enum"])
    ),
    "what a cursor looks like": lambda d: re.fullmatch(d.schema("Cursor")["pattern"], "kqvvq7mzabcdefgh.42"),
    "what a JSON Pointer looks like": lambda d: not re.fullmatch(d.schema("Pointer")["pattern"], "tasks"),
    "a version is a whole number of 64 bits from 0": lambda d: (
        (d.schema("Version")["format"], d.schema("Version")["minimum"]) == ("int64", 0)
    ),
    "each action by its type, with its payload named": lambda d: all(
        d.follow(d.follow(each)["properties"]["payload"])["type"] == "object" for each in d.schema("Action")["oneOf"]
    ),
    "which action a type is": lambda d: (
        len(d.schema("Action")["discriminator"]["mapping"]) == len(d.schema("Action")["oneOf"])
    ),
    "which fields of an action are needed": lambda d: all(
        ("payload" in d.follow(each)["required"])
        == bool(d.follow(d.follow(each)["properties"]["payload"]).get("required"))
        for each in d.schema("Action")["oneOf"]
    ),
    "id, meta and expect of an action": lambda d: all(
        {"id", "meta", "expect"} <= set(d.follow(each)["properties"]) for each in d.schema("Action")["oneOf"]
    ),
    "how many actions a batch can have": lambda d: (
        (d.schema("Batch")["minItems"], d.schema("Batch")["maxItems"]) == (1, 10_000)
    ),
    "the media types of a POST": lambda d: (
        set(d.operation("post", actions(d))["requestBody"]["content"]) == {"application/json", "application/x-ndjson"}
    ),
    "what stands on a line of NDJSON": lambda d: all(
        "anyOf" in d.schema(name)["x-item-schema"] for name in ("Lines", "LineAnswers", "ChangesLines")
    ),
    "the answers of a POST: 200, 202, 204": lambda d: (
        {"200", "202", "204"} <= set(d.operation("post", actions(d))["responses"])
    ),
    "the refusals of a POST": lambda d: (
        {"400", "401", "409", "412", "413", "415", "422", "429", "500", "503"}
        <= set(d.operation("post", actions(d))["responses"])
    ),
    "Idempotency-Key, If-Match and Prefer of a POST": lambda d: (
        {"Idempotency-Key", "If-Match", "Prefer"} <= set(d.header("post", actions(d)))
    ),
    "dry-run and path of a POST": lambda d: set(d.query("post", actions(d))) == {"dry-run", "path", "pretty"},
    "wait, If-None-Match and Prefer of a state": lambda d: (
        "wait" in d.query("get", state(d)) and {"If-None-Match", "Prefer"} <= set(d.header("get", state(d)))
    ),
    "304 of a state, with its ETag and without content": lambda d: (
        "ETag" in d.fields("get", state(d), 304) and not d.content("get", state(d), 304)
    ),
    "ETag and State-Cursor of a state": lambda d: {"ETag", "State-Cursor"} <= d.fields("get", state(d), 200),
    "the parameters of a state": lambda d: (
        set(d.query("get", state(d)))
        == {"wait", "until", "until-exists", "debounce", "at-least", "version", "as", "since", "pretty"}
        | {"filter", "sort", "limit", "offset", "after", "fields", "count", "explain"}
    ),
    "until is JSON": lambda d: d.query("get", state(d))["until"]["schema"]["contentMediaType"] == "application/json",
    "the least and the most of numbers": lambda d: (
        d.query("get", state(d))["wait"]["schema"]["minimum"] == 0
        and d.query("get", state(d))["debounce"]["schema"]["maximum"] == 10_000
        and d.query("get", changes(d))["limit"]["schema"]["minimum"] == 1
    ),
    "the choices of parameters": lambda d: (
        d.query("get", state(d))["as"]["schema"]["enum"] == ["keyed"]
        and d.query("get", changes(d))["on-lost"]["schema"]["enum"] == ["snapshot"]
        and "tasks/add" in d.query("get", changes(d))["types"]["schema"]["items"]["anyOf"][0]["enum"]
    ),
    "the form of If-None-Match and of Idempotency-Key": lambda d: (
        re.fullmatch(d.header("get", state(d))["If-None-Match"]["schema"]["pattern"], '"a", W/"b"')
        and re.fullmatch(d.header("post", actions(d))["Idempotency-Key"]["schema"]["pattern"], '"order 7"')
        and not re.fullmatch(d.header("post", actions(d))["Idempotency-Key"]["schema"]["pattern"], "")
    ),
    "what a flag without a value is": lambda d: d.query("post", actions(d))["dry-run"]["allowEmptyValue"],
    "since, and what may stand in its place": lambda d: {"since", "before"} <= set(d.query("get", changes(d))),
    "409 and 410 of a state, 410 of changes": lambda d: (
        {"409", "410"} <= set(d.operation("get", state(d))["responses"])
        and "410" in d.operation("get", changes(d))["responses"]
    ),
    "the streams of a state and of a view": lambda d: all(
        "text/event-stream" in d.content("get", path) for path in d.value["paths"] if re.search(r"/state|/views/", path)
    ),
    "the streams of changes": lambda d: (
        set(d.content("get", changes(d))) == {"application/json", "text/event-stream", "application/x-ndjson"}
    ),
    "Last-Event-ID of a stream": lambda d: "Last-Event-ID" in d.header("get", changes(d)),
    "Retry-After of 429 and 503": lambda d: all(
        "Retry-After" in d.value["components"]["responses"][f"Problem{status}"]["headers"] for status in (429, 503)
    ),
    "Link of 410, Allow of 405, WWW-Authenticate of 401": lambda d: all(
        name in d.value["components"]["responses"][f"Problem{status}"]["headers"]
        for status, name in ((410, "Link"), (405, "Allow"), (401, "WWW-Authenticate"))
    ),
    "a problem wherever there is an error": lambda d: all(
        set(d.follow(answer)["content"]) == {"application/problem+json"}
        for _, _, operation in d.operations()
        for status, answer in operation["responses"].items()
        if status >= "400"
    ),
    "HEAD beside each GET, without content": lambda d: all(
        "head" in item and not any(d.content("head", path, status) for status in (200,))
        for path, item in d.value["paths"].items()
        if "get" in item
    ),
    "the route of the document itself": lambda d: any(path.endswith("/openapi.json") for path in d.value["paths"]),
    "the parts of parts of the state": lambda d: any("{third}" in path for path in d.value["paths"]),
    "each reference leads somewhere": lambda d: all(d.follow(each) for each in d.every("$ref")),
}
POINTS_OF_THE_WHOLE = {
    "each named schema, parameter and field is used": lambda d: unused(d) == [],
    "the list of derived stores": lambda d: "/v1/stores" in d.value["paths"],
    "the probes and the metrics": lambda d: {"/livez", "/readyz", "/metrics"} <= set(d.value["paths"]),
    "the views by their names": lambda d: "/v1/views/tasks.open" in d.value["paths"],
    "what an operator asks the probe": lambda d: set(d.query("get", "/readyz")) == {"verbose"},
}


def base(document):
    return next(iter(document.value["paths"]))


def state(document):
    return base(document) + "/state"


def actions(document):
    return base(document) + "/actions"


def changes(document):
    return base(document) + "/changes"


def statuses(document):
    return [name[-3:] for name in document.value["components"]["responses"] if name != "Problem"]


def unused(document):
    text = json.dumps(document.value)
    parts = [
        (kind, name) for kind in ("schemas", "parameters", "headers") for name in document.value["components"][kind]
    ]
    return [name for kind, name in parts if f'"#/components/{kind}/{name}"' not in text]


def examples_hold(document):
    jsonschema = need_module("jsonschema")
    for name, schema in document.value["components"]["schemas"].items():
        for example in schema.get("examples", []):
            validator = jsonschema.Draft202012Validator(
                {"$ref": f"#/components/schemas/{name}", "components": document.value["components"]}
            )
            faults = [fault.message for fault in validator.iter_errors(example)]
            expect(not faults, f"the example of {name}: {faults}")
    return True


@pytest.mark.parametrize("point", [*POINTS, *POINTS_OF_THE_WHOLE])
def test_the_document_says(whole, derived, point):
    expect(len(POINTS) >= 40, "the list is too short")
    documents = [whole, derived] if point in POINTS else [whole]
    for document in documents:
        expect((POINTS | POINTS_OF_THE_WHOLE)[point](document), f"{base(document)}/openapi.json does not say it")


def faults(document, method, path, value):
    """What does not hold of a JSON answer with the status 200."""
    jsonschema = need_module("jsonschema")
    schema = document.content(method, path)["application/json"]["schema"]
    validator = jsonschema.Draft202012Validator(schema | {"components": document.value["components"]})
    return [fault.message for fault in validator.iter_errors(value)]


def test_state_and_views_are_what_the_document_says(workspace):
    """And nothing else: a state that is another fails."""
    server = workspace.server(data="none")
    with server.client() as client:
        client.commit(action("tasks/add", {"id": 1, "title": "milk"}))
        client.commit(action("navigation/set", {"route": ["a", "b"]}))
        client.commit(action("session/login", {"user": "me"}))
        client.commit(action("canvas/addBlock", {"id": 1, "frame": {"x": 0, "y": 0.5, "width": 1, "height": 1}}))
        stores = ["/v1"] + [store["href"] for store in client.get("/v1/stores").json["stores"]]
        count = 0
        for base in stores:
            document = Document(client.get(f"{base}/openapi.json").json)
            views = [view["href"] for view in client.get(f"{base}/views").json["views"]]
            for path in [f"{base}/state", *views]:
                value = client.get(path).json
                expect(not faults(document, "get", path, value), f"{path}: {faults(document, 'get', path, value)}")
                count += 1
        expect(count > 10, f"only {count} values")
        whole = Document(client.get("/v1/openapi.json").json)
        state = client.get("/v1/state").json
        kinds = whole.content("get", "/v1/state")["application/json"]["schema"]["anyOf"]
        expect({"$ref": "#/components/schemas/State"} in kinds, f"the state has the types {kinds}")
        state["counter"]["value"] = "two"
        expect(faults(whole, "get", "/v1/state", state), "a counter of text is allowed")


def test_an_internal_action_is_unknown_to_clients_and_in_their_log(workspace):
    stub = Stub(workspace)
    stub.will(stub.good)
    server = workspace.server(data="none", films_base_url=stub.address)
    with server.client() as client:
        catalogue = [each["type"] for each in client.get("/v1/actions").json["actions"]]
        expect("films/load" in catalogue and "films/set" not in catalogue, f"the catalogue: {catalogue}")
        mapping = Document(client.get("/v1/openapi.json").json).schema("Action")["discriminator"]["mapping"]
        expect_equal(sorted(mapping), sorted(catalogue), "the types of the document")
        for path in ("/v1/actions", "/v1/stores/films/actions"):
            answer = client.request("POST", path, action("films/set", {"films": []}))
            expect_equal((answer.status, answer.json["code"]), (422, "unknown-action"), "status and code")
            expect(b"films/set" not in answer.body, f"the answer: {answer}")
        client.commit(action("films/load"), Prefer="wait=20")
        changes = client.get("/v1/changes?since=oldest&types=films/set").json["changes"]
        expect_equal([change["action"]["type"] for change in changes], ["films/set"], "the types in the log")


def test_the_document_is_valid(whole, derived):
    validator = need_module("openapi_spec_validator")
    for document in (whole, derived):
        validator.validate(document.value)


def test_the_document_of_a_client_with_a_grant_is_valid_and_names_nothing_else(workspace):
    data = workspace.path("data")
    token = make_token(workspace, data, "ci", "--read", "/counter", "--dispatch", "counter/*")
    nothing = make_token(workspace, data, "nobody", "--read", "/counter")
    operator = make_token(workspace, data, "operator", "--operate")
    root = make_token(workspace, data, "root", "--all")
    with workspace.server(data=data).client() as client:
        document = Document(client.get("/v1/openapi.json", **bearer(token)).json)
        mapping = document.schema("Action")["discriminator"]["mapping"]
        expect_equal(set(mapping), {"counter/add", "counter/reset"}, "the actions")
        empty = Document(client.get("/v1/openapi.json", **bearer(nothing)).json)
        everything = Document(client.get("/v1/openapi.json", **bearer(root)).json)
        expect(
            "tasks/add" in everything.schema("Action")["discriminator"]["mapping"], "root may not dispatch tasks/add"
        )
        operating = Document(client.get("/v1/openapi.json", **bearer(operator)).json)
        views = "/v1/views/"
        for each in (document, empty, operating):
            expect("tasks" not in json.dumps([each.schema("Action"), each.schema("State")]), "it names a hidden part")
            expect(not any(path.startswith(views) for path in each.value["paths"]), "it names a hidden view")
            routes = {path for path in everything.value["paths"] if not path.startswith(views)}
            expect_equal(set(each.value["paths"]), routes, "the routes, which all clients are told")
        expect_equal(operating.schema("Action"), empty.schema("Action"), "the actions of an operator")
        validator = need_module("openapi_spec_validator")
        for each in (document, empty, everything, operating):
            validator.validate(each.value)


# MARK: The pages say the same


def rows(page, header):
    """The cells of the table below this header, as text."""
    lines = (PAGES / "Reference/Contract" / page).read_text().split(header, 1)[1].splitlines()[2:]
    found = []
    for line in lines:
        if not line.startswith("|"):
            break
        found.append([cell.strip() for cell in line.strip("|").split(" | ")])
    expect(found, f"{page} has no table {header}")
    return found


def without_links(text):
    return re.sub(r"(; )?see \[[^\]]*\]\([^)]*\)", "", text).strip().rstrip(";").strip()


def test_the_page_of_errors_and_the_document_have_the_same_codes_and_meanings(whole):
    page = set()
    for status, code, meaning, further in rows("Errors.md", "| status | code | meaning | further |"):
        further = without_links(further.rstrip("|").strip())
        code = code if code.startswith("`") else "a code of the domain"
        page.add((status, f"- {code}: {without_links(meaning)}" + (f" ({further})" if further else "")))
    document = {
        (status, line)
        for status in statuses(whole)
        for line in whole.value["components"]["responses"][f"Problem{status}"]["description"]
        .split("\n\n")[1]
        .split("\n")
    }
    expect_equal(sorted(document - page), [], "what the document says and the page does not")
    expect_equal(sorted(page - document), [], "what the page says and the document does not")


ROUTES = {
    "all but the probes, the backup, the clients, the documentation and the two streams": lambda path: (
        path.startswith("/v1") and not re.search("/streams/|backup|/client[.]|/docs", path)
    ),
    "the stream of commits": lambda path: path == "/v1/streams/commits",
    "the state stream": lambda path: path == "/v1/streams/state",
    "streams": lambda path: "/streams/" in path,
    "state": lambda path: path.startswith("/v1/state"),
    "views": lambda path: "/views/" in path,
    "changes": lambda path: path == CHANGES,
    "schedule": lambda path: path == "/v1/schedule",
    "DELETE of a scheduled action": lambda path: path == "/v1/schedule/{name}",
    "state with `as=keyed`": lambda path: path.startswith("/v1/state"),
    "POST of actions": lambda path: path == ACTIONS,
    "POST of actions with `If-Match` or `If-None-Match`": lambda path: path == ACTIONS,
    "`/readyz`": lambda path: path == "/readyz",
}


def test_the_page_of_the_contract_and_the_document_have_the_same_parameters(whole):
    page = set()
    for names, routes, _ in rows("Contract.md", "| parameter | routes | value |"):
        name = re.match(r"`([\w-]+)`", names)[1]
        for route in [routes] if routes in ROUTES else re.split(r"[,;] ", routes):
            for path, method, _ in whole.operations():
                is_post = route.startswith("POST")
                if route.startswith("DELETE") and method != "delete":
                    continue
                if ROUTES[route](path) and is_post in ((method == "post"), method == "post" and name == "pretty"):
                    page.add((method, path, name))
        if name == "pretty":
            page |= {("post", path, name) for path in (ACTIONS, "/v1/forks", "/v1/bisect")}
    document = {(method, path, name) for path, method, _ in whole.operations() for name in whole.query(method, path)}
    expect_equal(sorted(document - page), [], "what the document says and the page does not")
    expect_equal(sorted(page - document), [], "what the page says and the document does not")


def test_the_page_of_the_contract_and_the_document_have_the_same_header_fields(whole):
    page = {
        name for cells in rows("Contract.md", "| field | meaning |") for name in re.findall(r"`([\w-]+)`", cells[0])
    }
    # OpenAPI has no parameters of these names: they are media types, and where bodies are described.
    document = {name for path, method, _ in whole.operations() for name in whole.header(method, path)}
    expect_equal(document, page - {"Content-Type", "Content-Encoding", "Accept"}, "the header fields of requests")
    text = (PAGES / "Reference/Contract/Contract.md").read_text().split("### Header fields of an answer")[1]
    answers = {
        name
        for line in text.split("### ")[0].splitlines()
        if line.startswith("| `")
        for name in re.findall(r"`([\w-]+)`", line.split(" | ")[0])
    }
    expect_equal(set(whole.value["components"]["headers"]), answers, "the header fields of answers")


def test_the_page_of_the_contract_and_the_document_have_the_same_routes(whole):
    page = {
        (method.strip(), route.replace("{base}", "/v1"))
        for cells in rows("Contract.md", "| route | methods | answer | page |")
        if not cells[0].startswith("...")
        for route in re.findall(r"`([^`]+)`", cells[0])
        for method in cells[1].split(",")
    }
    document = set()
    for path, method, _ in whole.operations():
        path = re.sub(r"/views/.+", "/views/<name>", re.sub(r"/state/.+", "/state/<json-pointer>", path))
        path = re.sub(r"\{(fork|name)\}", "<name>", path.replace("{id}", "<id>").replace("{page}", "<page>"))
        document.add((method.upper(), path))
    # The page is for people.
    page -= {("GET", "/"), ("GET", "/page/<file>")}
    document = {each for each in document if each[0] != "HEAD"}
    expect_equal((sorted(document - page), sorted(page - document)), ([], []), "what only one of them has")


# MARK: The transcripts stand in the document

HEAVY, LIGHT = "\n" + "=" * 80 + "\n", "\n" + "-" * 80 + "\n"
# What the transport or a browser's rules add, and what describes a body.
# The parameters of the views that the domain of the transcripts has, and the showcase has not.
OF_VIEWS = {"title", "done", "first", "order"}
OF_ANY_MESSAGE = {"Content-Type", "Content-Length", "Connection", "Date"}
STATUS = re.compile(r"^(?:answer to \d+:\n)?(\d{3}) [A-Z]")


def usual_fields(status, fields):
    """What a transcript does not show of an answer; Transcript.swift says when an answer has which."""
    if status >= 400:
        return ["Content-Type", "Cache-Control", "X-Content-Type-Options", "Cross-Origin-Resource-Policy"]
    is_text = not any(line.startswith("Content-Type: ") and not line.startswith("Content-Type: text/plain") for line in fields)
    is_cached = any(line.startswith("Cache-Control: ") for line in fields)
    return ["X-Content-Type-Options", "Cross-Origin-Resource-Policy"] if is_cached and not is_text else []


def exchanges():
    """Each request of a transcript with the answers that came: method, path, query, header fields; status, fields, body."""
    for file in sorted(TRANSCRIPTS.glob("*.txt")):
        requests = []
        for part in file.read_text().split(HEAVY):
            request, _, answer = part.partition(LIGHT)
            lines = [line for line in request.strip("\n").split("\n") if not line.startswith(("#", "@"))]
            while lines and not lines[0]:
                lines.pop(0)
            if lines:
                method, target = lines[0].split(" ", 1)
                head = lines[1 : lines.index("")] if "" in lines else lines[1:]
                requests.append((method, target, [line.partition(":")[0] for line in head]))
            for text in re.split(r"\n\n(?=answer to )", answer.strip("\n")):
                number = re.match(r"answer to (\d+):\n", text)
                text = text[number.end() :] if number else text
                if not re.match(r"\d{3} ", text):
                    continue
                asked = requests[int(number[1]) - 1] if number and int(number[1]) <= len(requests) else requests[-1]
                head, _, body = text.partition("\n\n")
                status, *fields = head.split("\n")
                names = [line.partition(":")[0] for line in fields]
                yield file.name, asked, int(status[:3]), names + usual_fields(int(status[:3]), fields), body


def template(document, path):
    """The path of the document that a path of a transcript is one of; views have other names there."""
    whole = re.sub(r"^/v1/stores/[^/]+(?=/|$)", "/v1", path) if path != "/v1/stores" else path
    if re.match(r"/v1/views/.", whole):
        return "/v1/views/tasks.open"
    whole = "/v1" if whole == "/v1/" else whole
    segments = whole.split("/")
    if whole.startswith("/v1/state/"):
        return (
            "/v1/state"
            + ["", "/{pointer}", "/{pointer}/{second}", "/{pointer}/{second}/{third}"][min(3, len(segments) - 3)]
        )
    if whole.startswith("/v1/actions/"):
        return "/v1/actions/{id}"
    if whole.startswith("/v1/schedule/"):
        return "/v1/schedule/{name}"
    return whole if whole in document.value["paths"] else None


def test_every_route_header_and_code_of_the_transcripts_stands_in_the_document(whole):
    lacking, seen = set(), 0
    known = set(whole.schema("ServerCode")["enum"])
    for file, (method, target, sent), status, fields, body in exchanges():
        path, _, query = target.partition("?")
        code = next(iter(re.findall(r'"code":\s?"([^"]+)"', body)), None) if status >= 400 else None
        place = template(whole, path)
        if method == "OPTIONS" or code in (
            "no-such-route",
            "no-such-store",
            "no-such-stream",
            "no-such-fork",
            "bad-target",
            "method-not-allowed",
        ):
            continue
        if place is None or method.lower() not in whole.value["paths"][place]:
            lacking.add(f"{file}: the route {method} {path}")
            continue
        seen += 1
        operation = whole.operation(method.lower(), place)
        if str(status) not in operation["responses"]:
            lacking.add(f"{file}: {status} of {method} {place}")
            continue
        described = whole.fields(method.lower(), place, status) | OF_ANY_MESSAGE
        # CORS is a browser's matter, and stands in the overview of the contract.
        for name in fields:
            if name not in described and not name.startswith("Access-Control-"):
                lacking.add(f"{file}: {name} of {status} of {method} {place}")
        if code and "." not in code and code not in known:
            lacking.add(f"{file}: the code {code}")
        if code in known and code not in codes(whole, status):
            lacking.add(f"{file}: the code {code} of {status}")
        if status < 300:
            names = {part.partition("=")[0] for part in query.split("&") if part}
            lacking |= {
                f"{file}: the parameter {name} of {method} {place}"
                for name in names - set(whole.query(method.lower(), place)) - {"settle", "access_token"} - OF_VIEWS
            }
    expect(seen > 200, f"the transcripts have {seen} exchanges only")
    expect_equal(sorted(lacking), [], "what the document lacks")


def test_the_default_of_a_limit_is_that_of_the_server(workspace):
    with workspace.server(data="none", changes_limit_default=7).client() as client:
        document = Document(client.get("/v1/openapi.json").json)
    for path in ("/v1/changes", "/v1/schedule"):
        expect_equal(document.query("get", path)["limit"]["schema"]["default"], 7, f"the default of limit of {path}")
