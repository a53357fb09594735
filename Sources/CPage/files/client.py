"""A client of a Storekeeper server, for Python 3.9 and later, on the standard library alone.

    from storekeeper import connect

    store = connect("http://localhost:8080")
    store.dispatch("counter/add", {"amount": 2})
    for value in store.subscribe("/counter"):
        print(value)

Its calls block. A store can be used by several threads; each loop has a connection of its own.
"""

from __future__ import annotations

import http.client
import json
import math
import os
import random
import re
import secrets
import threading
import time
import weakref
from collections import deque
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple, TypedDict, final
from urllib.parse import quote, urlsplit

__all__ = ["Answer", "Commit", "Live", "Problem", "Receipt", "Reset", "Snapshot", "Store", "connect"]


class Problem(Exception):
    """A refusal, with the members of the server's problem document. Its status is 0 where there was no answer."""

    def __init__(self, status: int, document: Mapping[str, Any], retry_after: float = 0) -> None:
        # What a copy is made of, also in another process.
        super().__init__(status, document, retry_after)
        self.status = status
        #: The fault, for programs; `no-answer`, `redirected` and `status-<n>` are the client's own.
        self.code: str = document["code"]
        #: The fault, for people.
        self.detail: str = document.get("detail", "")
        #: The parts at fault: JSON Pointers into the action.
        self.errors: list[dict[str, str]] = document.get("errors", [])
        self.document = document
        #: The seconds after which the server wants to be asked again.
        self.retry_after = retry_after

    def __str__(self) -> str:
        return f"{self.code}: {self.detail}"

    @property
    def is_passing(self) -> bool:
        """Whether the same request can succeed later."""
        return self.status in (0, 408, 429, 502, 503, 504)


@final
class Commit(TypedDict, total=False):
    """A commit, as /v1/changes has it: a dict.

    version, cursor   the version that it made, and its cursor: the `since` of what follows it
    time, id          its time as text, and its ID: that of its one action, or its cursor
    action            the action, or the list of actions of an array; None where the token may not see it
    patch             the changes of the state, as a JSON Patch
    by                the subject that has sent it
    cause, root       the cursors of the commit that has caused it, and of the first one of that chain
    traceparent       the trace of its request
    """

    version: int
    cursor: str
    time: str
    id: str
    action: Any
    patch: list[dict[str, Any]]
    by: str
    cause: str
    root: str
    traceparent: str


@final
class Reset(TypedDict):
    """The commits behind a cursor are gone: a dict with `reset`, always True, `reason`, `state` and the new `cursor`."""

    reset: bool
    reason: str
    state: Any
    cursor: str


class Receipt(TypedDict, total=False):
    """The outcome of an action, or of several: a dict.

    cursor, version   the cursor and the version of the commit
    id                the ID of the one action, or the cursor
    changed           whether the state is another one
    committed         False, with `changed` alone, where a middleware has swallowed the action; missing otherwise
    name, due         the name and the time of a scheduled action
    scheduled         the `name` and `due` of each scheduled action of an array
    """

    cursor: str
    version: int
    id: str
    changed: bool
    committed: bool
    name: str
    due: str
    scheduled: list[dict[str, str]]


class Snapshot(NamedTuple):
    """A value with the cursor at which it is there."""

    value: Any
    cursor: str


class Answer(NamedTuple):
    """The answer to a request; `json` is None where it has no content."""

    status: int
    headers: http.client.HTTPMessage
    json: Any


def connect(url: str, *, token: str | Callable[[], str] | None = None) -> Store:
    """Makes a store for a server's URL, or for one below it, such as `http://localhost:8080/v1/stores/tasks`.

    `token` is the token, or a function that makes one for each request; its errors are raised. After a 401 the store asks
    once more, for a token that was replaced meanwhile, or is new. Nothing is sent yet.
    """
    return Store(url, token)


class Store:
    """The state of a server: `connect` makes one. As a context manager, it closes itself."""

    def __init__(self, url: str, token: str | Callable[[], str] | None = None) -> None:
        parts = urlsplit(url)
        if parts.scheme not in ("http", "https") or not parts.hostname:
            raise ValueError(f"{url} is not the address of a server: it begins with http:// or https://")
        self._is_secure, self._host, self._port = parts.scheme == "https", parts.hostname, parts.port
        self._path = parts.path.rstrip("/") or "/v1"
        self._base = f"{parts.scheme}://{parts.netloc}{self._path}"
        self._token = token
        self._closed = threading.Event()
        self._idle: list[http.client.HTTPConnection] = []
        self._busy: set[http.client.HTTPConnection] = set()
        self._begin()
        _stores.add(self)

    def _begin(self) -> None:
        """Begins in a process: a fork has no threads of its parent, and must leave its connections alone."""
        for connection in [*self._idle, *self._busy]:
            connection.close()
        self._idle.clear()
        self._busy.clear()
        self._queue: deque[object] = deque()
        #: Guards the three above; it is notified when the first of `_queue` leaves.
        self._changed = threading.Condition()

    def __enter__(self) -> Store:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Ends everything: loops end, and requests of other threads fail."""
        self._closed.set()
        with self._changed:
            for connection in [*self._busy, *self._idle]:
                _shut(connection)
            self._idle.clear()
            self._changed.notify_all()

    # Values

    def state(self, path: str = "", *, default: Any = None, seconds: float = 120) -> Any:
        """The value at a path now: a JSON Pointer, or `view:` and the name of a view.

        It is `default` where nothing is there, or the token may not see it.
        """
        return self.snapshot(path, default=default, seconds=seconds).value

    def snapshot(self, path: str = "", *, default: Any = None, seconds: float = 120) -> Snapshot:
        """The value at a path, as `state` has it, and its cursor: the `since` of `changes` for what follows it."""
        return Live(self, *_route(path))._snapshot(default, seconds)

    def subscribe(self, path: str = "", *, default: Any = None) -> Iterator[Any]:
        """The value at a path, and newer ones, through restarts of the server; `default` where nothing is there.

        When the value changes fast, the loop gets the newest one and leaves others out. For each change: `changes`.
        """
        return Live(self, *_route(path)).values(default=default)

    def wait(self, path: str, until: Any = ..., *, seconds: float = math.inf) -> Any:
        """Waits until something is at a path, or until the value there equals `until`; returns the value.

        The server compares the value of every commit, also of one that the next has changed again.
        Raises `TimeoutError` after so many seconds, and a `Problem` with the code `no-answer` where the server is away.
        """
        route, rest = _route(path)
        if rest:
            raise ValueError(f"{path} cannot be waited for: a URL cannot hold its last tokens")
        condition = "until-exists" if until is ... else "until=" + quote(_json(until), safe="")
        end, pauses = time.monotonic() + seconds, _Pauses(self)
        while True:
            left = max(0.001, min(25, end - time.monotonic()))
            # The answer of a wait that ends without a value comes after its time.
            answer = self._read(f"{route}?wait={left:.3f}&{condition}", end=end + 5)
            if answer.status == 200:
                return answer.json
            if time.monotonic() >= end:
                raise TimeoutError(f"{path} has not come within {seconds} seconds")
            pauses.after_nothing()

    def view(self, name: str, parameters: Mapping[str, Any] | None = None) -> Live:
        """A view for some parameters; one that is None is left out. Its loop gets the values that `subscribe` gets."""
        return Live(self, *_route(f"view:{name}"), parameters or {})

    def query(
        self, path: str, *, filter: str | None = None, sort: str | Sequence[str] | None = None,
        limit: int = 100, offset: int | None = None, fields: str | Sequence[str] | None = None, count: bool = False,
    ) -> Live:
        """A query on the members of the value at a path: `store.query("/tasks/entities", filter="@.done == false")`.

        Its value is `{"members": [{"key", "value"}], ...}`. `sort` and `fields` are JSON Pointers into a member.
        When answers change fast, its loop gets the newest one and leaves others out. For each change: `changes`.
        """
        route, rest = _route(path)
        if rest:
            raise ValueError(f"{path} cannot be queried: a URL cannot hold its last tokens")
        return Live(self, route, rest, {
            "filter": filter, "sort": _listed(sort), "limit": limit, "offset": offset, "fields": _listed(fields),
            "count": True if count else None,
        })

    def _read(self, path: str, headers: Mapping[str, str] = {}, *, end: float) -> Answer:
        """A value, or the status 404 with its problem."""
        try:
            return self._request("GET", path, headers, end=end)
        except Problem as problem:
            if problem.code not in ("no-such-path", "no-such-view"):
                raise
            headers_of_problem = http.client.HTTPMessage()
            headers_of_problem["State-Cursor"] = problem.document.get("cursor", "")
            return Answer(404, headers_of_problem, None)

    # Commits

    def changes(
        self, *, since: str = "now", path: str | None = None, types: str | Sequence[str] | None = None,
        by: str | None = None,
    ) -> Iterator[Commit | Reset]:
        """Each commit behind a cursor, once and in order, through restarts of the server and of the connection.

        `since` is a cursor, `oldest`, or `now`: when the loop begins. Where the commits are gone, a `Reset` comes in
        their place. The `cursor` of the last item is the `since` of another loop, also in another process.
        """
        filters = _query({"path": path, "types": _listed(types), "by": by})
        pauses = _Pauses(self)
        while not self._closed.is_set():
            query = f"?since={quote(since)}&wait=25&limit=1000&on-lost=snapshot" + ("&" + filters if filters else "")
            try:
                page = self._request("GET", "/changes" + query, end=math.inf).json
            except Problem:
                if self._closed.is_set():
                    return
                raise
            if page.get("reset"):
                yield Reset(reset=True, reason=page["reason"], state=page["state"], cursor=page["next"])
            yield from page.get("changes", [])
            if page["next"] == since and not page.get("changes"):
                pauses.after_nothing()
            since = page["next"]

    # Actions

    def dispatch(
        self, type: str, payload: Any = ..., *, id: str | None = None, meta: Mapping[str, Any] | None = None,
        expect: Sequence[Mapping[str, Any]] | None = None, schedule: Mapping[str, Any] | None = None,
        key: str | None = None, seconds: float = 120,
    ) -> Receipt:
        """Dispatches an action until the server answers; it commits once, however often it is sent.

        Threads have their turns in the order of their calls, also while the server is away. A `key` of the program's
        own commits once through the end of the program, too. `expect` and `schedule` are those of /v1/actions.

        Raises a `Problem` for a refusal, and one with the code `no-answer` after so many seconds: the action can have
        committed then.
        """
        action = {"type": type, "id": id, "meta": meta, "expect": expect, "schedule": schedule}
        action = {name: value for name, value in action.items() if value is not None}
        if payload is not ...:
            action["payload"] = payload
        return self._dispatch(action, key, seconds)

    def dispatch_all(
        self, actions: Sequence[Mapping[str, Any]], *, key: str | None = None, seconds: float = 120,
    ) -> Receipt:
        """Dispatches several actions as one commit: all of them commit, or none does.

        Each is `{"type": ..., "payload": ...}`, and can have an `id`, `meta`, `expect` and `schedule` of its own. The
        rest is as with `dispatch`. The `errors` of a refusal are pointers into the list, as `/1/payload/id`.
        """
        return self._dispatch(list(actions), key, seconds)

    def _dispatch(self, action: Any, key: str | None, seconds: float) -> Receipt:
        body, headers = _json(action).encode(), {"Idempotency-Key": f'"{key or secrets.token_hex(16)}"'}
        end, ticket = time.monotonic() + seconds, object()
        with self._changed:
            self._queue.append(ticket)
        try:
            with self._changed:
                self._changed.wait_for(
                    lambda: self._queue[0] is ticket or self._closed.is_set(), min(seconds, threading.TIMEOUT_MAX))
                if self._queue[0] is not ticket:
                    raise self._no_answer()
            receipt: Receipt = self._request("POST", "/actions", headers, body, end, _is_receipt).json
            return receipt
        finally:
            with self._changed:
                self._queue.remove(ticket)
                self._changed.notify_all()

    # Requests

    def request(
        self, path: str, *, method: str = "GET", headers: Mapping[str, str] | None = None,
        body: bytes | None = None, seconds: float = 120,
    ) -> Answer:
        """Any request below the store, as `/actions/order-7`.

        It can be sent twice: a `POST` needs an `Idempotency-Key`.
        """
        return self._request(method, path, headers or {}, body, time.monotonic() + seconds)

    def _request(
        self, method: str, path: str, headers: Mapping[str, str] = {}, body: bytes | None = None,
        end: float = math.inf, is_answer: Callable[[Any], bool] = lambda json: True,
    ) -> Answer:
        """Sends a request until it has an answer that is not passing, or until `end`; at least once.

        What `is_answer` does not take is of a proxy, and no answer.
        """
        if re.search(r"/(\.|%2e){1,2}(?![^/?#])", path.split("?")[0], re.IGNORECASE):
            raise ValueError(f"{path} has a segment . or .., which proxies remove")
        failures, refused = 0, ""
        # A long body takes its time to be sent.
        longest = 60 if method == "GET" else 20 + len(body or b"") / 65536
        while True:
            token = self._token() if callable(self._token) else self._token
            if refused and refused == token:
                self._closed.wait(1)
            fields = {**headers, "Authorization": f"Bearer {token}"} if token else headers
            sent = time.monotonic()
            try:
                answer = self._send(method, path, fields, body, max(0.05, min(longest, end - time.monotonic())))
                if answer.status < 300 or answer.status == 304:
                    has_json = answer.json or answer.status == 200 and method != "HEAD"
                    value = self._value(answer.json) if has_json else None
                    if not is_answer(value):
                        raise self._no_answer(f"the answer of {self._base} is not what was asked for")
                    return Answer(answer.status, answer.headers, value)
                if answer.status in (301, 302, 303, 307, 308):
                    to = answer.headers.get("Location") or "an address that it does not tell"
                    detail = f"{self._base}{path} redirects to {to}: connect to the address that it leads to"
                    raise Problem(answer.status, {"code": "redirected", "detail": detail})
                raise _problem(answer)
            except (OSError, http.client.HTTPException, Problem) as caught:
                error: Exception = caught
            # A token can have ended while the request was waiting, and a new one counts after a moment.
            has_ended = token != refused and time.monotonic() - sent > 1
            if isinstance(error, Problem) and error.status == 401 and token and (has_ended or not refused):
                refused = token
                continue
            if isinstance(error, Problem) and not error.is_passing:
                raise error
            # Up to ten seconds more at random: the clients of a server do not come back at once.
            pause = getattr(error, "retry_after", 0) + random.random() * min(10, 0.5 * 1.5**failures)
            failures = min(failures + 1, 10)
            if time.monotonic() + pause > end or self._closed.wait(pause):
                raise error if isinstance(error, Problem) else self._no_answer() from error

    def _send(
        self, method: str, path: str, headers: Mapping[str, str], body: bytes | None, seconds: float
    ) -> Answer:
        """One attempt; `json` of the answer is its text."""
        fields = {"Content-Type": "application/json", **headers} if body is not None else dict(headers)
        while True:
            connection, is_used = self._connection(seconds)
            is_whole = False
            try:
                connection.request(method, self._path + path, body, fields)
                if self._closed.is_set():
                    raise ConnectionError("the store is closed")
                response = connection.getresponse()
                text = response.read()
                is_whole = not response.will_close
                return Answer(response.status, response.headers, text)
            except (ConnectionError, http.client.BadStatusLine):
                # A server closes a connection that was idle for long; that says nothing about the server.
                if not is_used or self._closed.is_set():
                    raise
            finally:
                with self._changed:
                    self._busy.discard(connection)
                    if is_whole and not self._closed.is_set():
                        self._idle.append(connection)
                    else:
                        connection.close()

    def _connection(self, seconds: float) -> tuple[http.client.HTTPConnection, bool]:
        """A connection of this thread until it goes back, and whether it has been used before."""
        with self._changed:
            if self._closed.is_set():
                raise ConnectionError("the store is closed")
            is_used = bool(self._idle)
            if is_used:
                connection = self._idle.pop()
            else:
                kind = http.client.HTTPSConnection if self._is_secure else http.client.HTTPConnection
                connection = kind(self._host, self._port)
            self._busy.add(connection)
        connection.timeout = seconds
        if connection.sock:
            connection.sock.settimeout(seconds)
        return connection, is_used

    def _value(self, text: bytes) -> Any:
        """The value of an answer. One that is not JSON is of a proxy, and does not say what the server has done."""
        try:
            return json.loads(text)
        except ValueError as error:
            raise self._no_answer(f"the answer of {self._base} is not JSON") from error

    def _no_answer(self, detail: str | None = None) -> Problem:
        return Problem(0, {"code": "no-answer", "detail": detail or f"{self._base} does not answer"})


_stores: weakref.WeakSet[Store] = weakref.WeakSet()


def _begin_fork() -> None:
    for store in _stores:
        store._begin()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_begin_fork)


class Live:
    """A value that the server has, now and when it has changed: a view, or a query. It is a loop over its `values`."""

    def __init__(self, store: Store, route: str, rest: list[str], parameters: Mapping[str, Any] = {}) -> None:
        self._store, self._rest = store, rest
        query = _query(parameters)
        self._route = route + ("?" + query if query else "")

    def value(self, *, default: Any = None, seconds: float = 120) -> Any:
        """The value now; `default` where nothing is there, or the token may not see it."""
        return self._snapshot(default, seconds).value

    def _snapshot(self, default: Any, seconds: float) -> Snapshot:
        answer = self._store._read(self._route, end=time.monotonic() + seconds)
        value = default if answer.status == 404 else _at(answer.json, self._rest, default)
        return Snapshot(value, answer.headers.get("State-Cursor") or "")

    def __iter__(self) -> Iterator[Any]:
        return self.values()

    def values(self, *, default: Any = None) -> Iterator[Any]:
        """The value, and newer ones, through restarts of the server; `default` where nothing is there.

        When the value changes fast, the loop gets the newest one and leaves others out. For each change: `changes`.
        """
        store, pauses = self._store, _Pauses(self._store)
        last: Any = ...
        tag, cursor, wait = "", "", ""
        while not store._closed.is_set():
            try:
                joint = "&" if "?" in self._route else "?"
                answer = store._read(
                    self._route + (joint + wait if wait else ""), {"If-None-Match": tag} if tag else {}, end=math.inf)
            except Problem:
                if store._closed.is_set():
                    return
                raise
            # Of several servers, the one that answers can be behind the one that was asked before.
            if answer.status == 304 or _is_before(answer.headers.get("State-Cursor") or "", cursor):
                pauses.after_nothing()
                continue
            cursor = answer.headers.get("State-Cursor") or cursor
            tag = answer.headers.get("ETag") or ""
            wait = "wait=25" if tag else "wait=25&until-exists"
            value = default if answer.status == 404 else _at(answer.json, self._rest, default)
            if _is_same(value, last):
                pauses.after_nothing()
                continue
            last = value
            yield value


class _Pauses:
    """Pauses of a loop whose waits are cut short, as by a server that stops."""

    def __init__(self, store: Store) -> None:
        self._store, self._last = store, time.monotonic()

    def after_nothing(self) -> None:
        """Pauses for a second at most where an answer without news has come at once."""
        now = time.monotonic()
        if now - self._last < 1:
            self._store._closed.wait(random.random())
        self._last = time.monotonic()


def _is_receipt(json: Any) -> bool:
    """Whether JSON is what the server says of an action; an answer of a proxy does not say that it is committed."""
    return isinstance(json, dict) and (json.get("committed") is False or {"cursor", "version", "id", "changed"} <= json.keys())


def _problem(answer: Answer) -> Problem:
    try:
        document = json.loads(answer.json)
        document["code"]
    except (ValueError, TypeError, KeyError):  # It is the page of a proxy.
        detail = f"the answer is {answer.status} without a problem document"
        document = {"code": f"status-{answer.status}", "detail": detail}
    field = answer.headers.get("Retry-After") or ""
    return Problem(answer.status, document, float(field) if field.isdecimal() else 0)


def _shut(connection: http.client.HTTPConnection) -> None:
    """Ends a connection under the thread that reads from it."""
    if connection.sock:
        try:
            connection.sock.shutdown(2)
        except OSError:  # The other side was faster.
            pass


def _json(value: Any) -> str:
    return json.dumps(value, separators=(",", ":"), allow_nan=False)


def _is_same(value: Any, other: Any) -> bool:
    """Whether two values have the same JSON: for Python, 1, 1.0 and True are equal."""
    return value == other and value is not ... and other is not ... and (value is other or _json(value) == _json(other))


def _is_before(cursor: str, other: str) -> bool:
    """Whether a cursor is of an older version of the same history."""
    (epoch, _, version), (other_epoch, _, other_version) = cursor.partition("."), other.partition(".")
    return epoch == other_epoch and version != "" and int(version) < int(other_version)


def _listed(values: str | Sequence[str] | None) -> str | None:
    return values if values is None or isinstance(values, str) else ",".join(values)


def _query(parameters: Mapping[str, Any]) -> str:
    def text(value: Any) -> str:
        return value if isinstance(value, str) else _json(value)

    given = [(name, text(value)) for name, value in parameters.items() if value is not None]
    return "&".join(f"{quote(name, safe='')}={quote(value, safe=',*')}" for name, value in given)


def _route(path: str) -> tuple[str, list[str]]:
    """The route of a path. A URL cannot hold a token "", "." or "..": the value around it is read, and has the rest."""
    if path.startswith("view:"):
        return "/views/" + quote(path[5:], safe=""), []
    if path and not path.startswith("/"):
        raise ValueError(f"{path} is neither a JSON Pointer nor view:<name>")
    tokens = path.split("/")[1:]
    odd = next((index for index, token in enumerate(tokens) if token in ("", ".", "..")), len(tokens))
    return "/".join(["/state", *(quote(token, safe="~") for token in tokens[:odd])]), tokens[odd:]


def _at(value: Any, tokens: list[str], default: Any) -> Any:
    """The part of a value at these tokens of a JSON Pointer."""
    for token in tokens:
        key = token.replace("~1", "/").replace("~0", "~")
        if isinstance(value, dict) and key in value:
            value = value[key]
        elif isinstance(value, list) and re.fullmatch("0|[1-9][0-9]*", key) and int(key) < len(value):
            value = value[int(key)]
        else:
            return default
    return value
