// A client of a Storekeeper server, for browsers, Node 18 and later, Deno and Bun; client.d.ts describes it.
//
//     import { connect } from "http://localhost:8080/v1/client.js"
//     const store = connect("http://localhost:8080", { token })
//     store.subscribe("/counter", (value) => console.log(value))
//     await store.dispatch("counter/add", { amount: 2 })
//     for await (const commit of store.changes()) console.log(commit.action, commit.patch)

/** A refusal, with what the server's problem document says. Its status is 0 where there was no answer. */
export class Problem extends Error {
    constructor(status, document, retryAfter = 0, cause = undefined) {
        super(document.detail, { cause })
        const { code, detail, errors = [] } = document
        Object.assign(this, { name: "Problem", status, code, detail, errors, document, retryAfter })
    }

    /** Whether the same request can succeed later. A browser does not tell the status of a redirect. */
    get isPassing() { return this.code !== "redirected" && [0, 408, 429, 502, 503, 504].includes(this.status) }
}

export function connect(url, { token, onConnection, parse = JSON.parse } = {}) {
    const { document, location, navigator } = globalThis
    const address = new URL(url, location?.href)
    if (!/^https?:$/.test(address.protocol)) throw new TypeError(`${url} does not begin with http:// or https://`)
    if (typeof token === "string") new Headers({ Authorization: token })  // throws where a header cannot have it
    const base = address.origin + (address.pathname === "/" ? "/v1" : address.pathname.replace(/\/$/, ""))
    const running = new Set(), listeners = new Set(), watches = new Map()
    /** `seen` is the cursor up to which the listeners have been given the commits. */
    let isClosed = false, isFollowing = false, isThere, poll, seen = "now", dispatched = Promise.resolve()
    /** The pauses that end when the server is there again. */
    const resting = new Set()
    /** What `token` or `parse` has thrown last: it ends the request that has called it. */
    let thrown = {}
    const isFinal = (error) => error === thrown.error || error.isPassing === false

    // Requests

    /** Runs `work` with a signal that aborts so many seconds after the last `again`, with another one, and at `close`. */
    async function within(seconds, outer, work) {
        const controller = new AbortController(), abort = () => controller.abort(outer?.reason)
        let timer
        const again = () => {
            clearTimeout(timer)
            timer = seconds && setTimeout(() => controller.abort(), 1000 * seconds)
        }
        again()
        running.add(controller)
        outer?.addEventListener("abort", abort)
        if (isClosed || outer?.aborted) abort()
        try {
            return await work(controller.signal, again)
        } finally {
            clearTimeout(timer)
            running.delete(controller)
            outer?.removeEventListener("abort", abort)
        }
    }

    /** Waits until the function that `begin` gets is called, the time is over, or the signal aborts. */
    const waken = (begin, signal, seconds) => within(seconds, signal, (ended) => new Promise((resume) => {
        ended.addEventListener("abort", resume)
        if (ended.aborted) resume()
        begin(resume)
    }))
    const sleep = (seconds, signal) => waken(() => {}, signal, seconds)

    /** The pause after a failure. */
    async function rest(seconds, error, signal) {
        if (error.status > 0) return sleep(seconds, signal)
        let entry
        await waken((resume) => resting.add(entry = resume), signal, seconds)
        resting.delete(entry)
    }
    const endRest = () => { for (const resume of resting) resume() }

    /** Sends a request until it has an answer, or for so many seconds; 0 is one attempt. */
    async function request(path, options = {}) {
        const { method = "GET", headers, body, signal, seconds = 120, onRetry, isAnswer = () => true } = options
        const given = new Headers(headers), end = Date.now() + 1000 * seconds
        // For the head of an answer, and for each silence in its body; a long body of a request takes its time.
        const longest = Math.min(method === "GET" ? 60 : 20 + (body?.length ?? 0) / 65536, seconds || Infinity)
        let refused
        unfolded(path)
        for (let failures = 0; ; failures++) {
            let error, credential, sent
            try {
                return await within(longest, signal, async (signal, again) => {
                    const fields = new Headers(given)
                    credential = await authorize(fields, signal)
                    if (refused && refused === credential) await sleep(1, signal), again()
                    sent = Date.now()
                    // A POST that is redirected can become a GET, whose answer is of something else.
                    const answer = await fetch(base + path,
                        { method, headers: fields, body, signal, cache: "no-store", redirect: "manual" })
                    const text = await contentOf(answer, again), { status, headers, ok } = answer
                    if (answer.type === "opaqueredirect" || [301, 302, 303, 307, 308].includes(status)) {
                        const to = headers.get("Location") ?? "an address that a browser does not tell"
                        const detail = `${base + path} redirects to ${to}: connect to the address that it leads to`
                        throw new Problem(status, { code: "redirected", detail })
                    }
                    if (!ok && status !== 304) {
                        throw new Problem(status, problemIn(text, status), Number(headers.get("Retry-After")) || 0)
                    }
                    const hasJSON = text || status === 200 && method !== "HEAD"
                    const json = hasJSON ? jsonOf(text) : undefined
                    if (!isAnswer(json)) throw noAnswer(undefined, `the answer of ${base} is not what was asked for`)
                    if (!isThere) endRest()
                    return { status, headers, json }
                })
            } catch (caught) {
                error = caught
            }
            if (isClosed || signal?.aborted || error === thrown.error) throw error
            // A token can have ended while the request was waiting, and a new one counts after a moment.
            const hasEnded = credential !== refused && Date.now() - sent > 1000
            if (error.status === 401 && credential && (hasEnded || !refused)) {
                refused = credential
                continue
            }
            if (error.isPassing === false) throw error
            if (!(error instanceof Problem)) error = noAnswer(error)
            const pause = pauseAfter(failures, error)
            if (Date.now() + 1000 * pause > end) throw error
            if (onRetry) call(onRetry, error)
            await rest(pause, error, signal)
        }
    }

    /** Sets the credential, and returns it; a function that makes none in time does not outlast the signal. */
    const authorize = (fields, signal) => new Promise((resume, fail) => {
        const set = async () => {
            const credential = typeof token === "function" ? await token() : token
            if (credential) fields.set("Authorization", `Bearer ${credential}`)
            return credential
        }
        signal.addEventListener("abort", () => fail(signal.reason))
        if (signal.aborted) fail(signal.reason)
        else set().then(resume, (error) => { thrown = { error }; fail(error) })
    })

    async function contentOf({ body }, again) {
        const reader = body?.getReader(), decoder = new TextDecoder()
        for (let text = ""; reader; ) {
            again()
            const { done, value } = await reader.read()
            if (done) return text + decoder.decode()
            text += decoder.decode(value, { stream: true })
        }
        return ""
    }

    /** The value of an answer. One that is not JSON is of a proxy, and does not say what the server has done. */
    function jsonOf(text) {
        try {
            return parse(text)
        } catch (error) {
            if (plain(text) === undefined) throw noAnswer(error, `the answer of ${base} is not JSON`)
            thrown = { error }
            throw error
        }
    }

    const noAnswer = (cause, detail = `${base} does not answer`) =>
        new Problem(0, { code: "no-answer", detail }, 0, cause)

    const dispatch = (type, payload, { id, meta, expect, schedule, ...options } = {}) =>
        commit({ type, payload, id, meta, expect, schedule }, options)

    /** Several actions as one commit. */
    const dispatchAll = (actions, options) => commit(actions, options)

    /**
     * Commits one action, or one array of actions, after the other: what is called first commits first, also where it has
     * to be sent again. A retry has the key of the first attempt, so the action commits once.
     */
    async function commit(action, { key = newKey(), signal, seconds = 120 } = {}) {
        const headers = { "Content-Type": "application/json", "Idempotency-Key": `"${key}"` }
        const body = bodyOf(action)
        const end = Date.now() + 1000 * seconds, before = dispatched
        let isTurn = false, leave
        dispatched = new Promise((resume) => { leave = () => before.then(resume) })
        try {
            // A timer takes at most 24 days, and 0 would be none.
            const longest = Math.max(0.001, Math.min(seconds, 2e6))
            await waken((resume) => before.then(() => { isTurn = true; resume() }), signal, longest)
            if (!isTurn && !isClosed && !signal?.aborted) throw noAnswer()
            const left = Math.max(0, end - Date.now()) / 1000
            const options = { method: "POST", headers, body, signal, seconds: left, isAnswer: isReceipt }
            return (await request("/actions", options)).json
        } finally {
            leave()
        }
    }

    /** A value with its cursor and tag; undefined where nothing is there, or the token may not see it. */
    async function read(source, options) {
        const { route, rest } = source
        try {
            const { status, headers, json } = await request(route, options)
            return { status, value: at(json, rest), cursor: headers.get("State-Cursor"), tag: headers.get("ETag") }
        } catch (problem) {
            if (!["no-such-path", "no-such-view"].includes(problem?.code)) throw problem
            return { status: 404, value: undefined, cursor: problem.document.cursor, tag: null }
        }
    }

    const state = async (path = "", options = {}) => (await read(sourceOf(path), options)).value

    /** A value, and the cursor at which it is there. */
    async function snapshot(path = "", options = {}) {
        const { value, cursor } = await read(sourceOf(path), options)
        return { value, cursor }
    }

    // Following: one long-poll of /v1/changes after the other, for all listeners

    function join(listener) {
        listeners.add(listener)
        poll?.abort()
        follow()
    }

    function leave(listener) {
        if (listeners.delete(listener) && listeners.size === 0) poll?.abort()
    }

    async function follow() {
        if (isFollowing) return
        isFollowing = true
        const turn = () => {
            poll.abort()
            endRest()
        }
        document?.addEventListener("visibilitychange", turn)
        for (const type of ["online", "offline"]) globalThis.addEventListener?.(type, turn)
        for (let failures = 0; listeners.size > 0 && !isClosed; ) {
            poll = new AbortController()
            const { signal } = poll
            try {
                // Listeners that join together share a poll, and the commits of a busy server come several at once.
                await sleep(0.01)
                const isStale = (await Promise.all([...listeners].map((listener) => listener.prepare()))).includes(true)
                if (document?.hidden) {
                    seen = "now"
                    await sleep(3600, signal)
                } else if (isStale || !isThere) {
                    await ask(0, signal)
                } else {
                    await askInTurn(signal)
                }
                failures = 0
            } catch (error) {
                if (signal.aborted || isClosed) continue
                if (isFinal(error)) for (const listener of [...listeners]) listener.fail(error)
                tell(false, error)
                await rest(pauseAfter(failures++, error), error)
            }
        }
        document?.removeEventListener("visibilitychange", turn)
        for (const type of ["online", "offline"]) globalThis.removeEventListener?.(type, turn)
        isFollowing = false
    }

    /** A browser has six connections to a host for all tabs: four of these may wait, the others ask each second. */
    async function askInTurn(signal) {
        // A page has no locks without TLS, but on localhost.
        let isDone = !document || !navigator.locks
        if (isDone) return ask(25, signal)
        for (let place = 0; place < 4 && !isDone; place++) {
            await navigator.locks.request(`storekeeper ${place}`, { ifAvailable: true }, async (lock) => {
                if (!lock) return
                isDone = true
                await ask(25, signal)
            })
        }
        if (isDone) return
        await ask(0, signal)
        await sleep(1, signal)
    }

    async function ask(wait, signal) {
        const filter = queryOf(commonFilter([...listeners]))
        const query = `since=${seen}&wait=${wait}&limit=1000&on-lost=snapshot${filter}`
        const { json: page } = await request(`/changes?${query}`, { signal, seconds: 0 })
        const first = page.reset || seen === "now" ? page.next : seen
        seen = page.next
        tell(true)
        for (const listener of [...listeners]) listener.take(page.changes ?? [], first, seen, filter)
    }

    function tell(isThereNow, error) {
        if (isThere === isThereNow) return
        isThere = isThereNow
        if (onConnection) call(onConnection, isThere, error)
    }

    // Commits

    /** Each commit behind `since`, once and in order; `{ reset: true, reason, state, cursor }` where they are gone. */
    async function* changes({ since = "now", signal, path, types, by } = {}) {
        const filter = queryOf({ path, types, by }), queue = []
        // The queue goes to the cursor `end`. What comes behind it has to be asked for where `isBehind`.
        let end = since, isBehind = true, failure, wake = () => {}
        const listener = {
            path, types, by,
            prepare() {},
            take(commits, first, last, common) {
                isBehind ||= isBefore(end, first) || commits.length > 0 && common !== filter || queue.length > 5000
                if (!isBehind) queue.push(...commits.filter((commit) => isBefore(end, commit.cursor)))
                if (!isBehind && isBefore(end, last)) end = last
                wake()
            },
            fail(error) {
                leave(listener)
                failure = error
                wake()
            },
        }
        try {
            while (!isClosed) {
                signal?.throwIfAborted()
                if (queue.length > 0) yield queue.shift()
                else if (failure) throw failure
                else if (isBehind) {
                    const query = `since=${encodeURIComponent(end)}&limit=1000&on-lost=snapshot${filter}`
                    // Where nothing follows yet, this request tells that the server is away.
                    const onRetry = (error) => { if (!isFollowing) tell(false, error) }
                    const { json: page } = await request(`/changes?${query}`, { signal, seconds: Infinity, onRetry })
                    const { reason, state, next } = page
                    if (page.reset) queue.push({ reset: true, reason, state, cursor: next })
                    else queue.push(...page.changes)
                    end = next
                    isBehind = page.more
                    // The server has taken the filter, so it can be a part of the common one.
                    if (!isBehind && !listeners.has(listener)) join(listener)
                    else if (!isBehind && seen !== "now" && isBefore(end, seen)) {
                        isBehind = true
                        await sleep(0.1, signal)
                    }
                } else await waken((resume) => { wake = resume }, signal)
            }
        } catch (error) {
            if (!isClosed) throw error
        } finally {
            leave(listener)
        }
    }

    // Values

    /** What all subscriptions to a source share: its value, kept up to date by the patches of the commits, or read again. */
    function watch(source) {
        const { key, path, isPatched } = source, takers = new Set()
        let value, cursor, tag, isKnown = false, isStale = true
        const watched = {
            path,
            get value() { return value },
            add(taker) {
                takers.add(taker)
                if (isKnown) queueMicrotask(() => give(taker))
                return () => { if (takers.delete(taker) && takers.size === 0) end() }
            },
            /** Reads a stale value again; returns whether it still is. */
            async prepare() {
                if (!isStale) return false
                try {
                    const answer = await read(source, { headers: tag ? { "If-None-Match": tag } : {}, seconds: 0 })
                    // Of several servers, the one that answers can be behind the one that was asked before.
                    if (seen !== "now" && isBefore(answer.cursor, seen)) {
                        await sleep(0.1)
                        return true
                    }
                    const isOld = isKnown && (answer.status === 304 || isSame(value, answer.value));
                    ({ cursor, tag } = answer)
                    isKnown = true
                    isStale = false
                    if (!isOld) set(answer.value)
                } catch (error) {
                    if (!isFinal(error)) throw error
                    watched.fail(error)
                }
                return isStale
            },
            take(commits, first, last) {
                isStale ||= isBefore(cursor, first)
                if (isStale) return
                const news = commits.filter((commit) => isBefore(cursor, commit.cursor))
                const operations = news.flatMap(({ patch }) => patch)
                const next = isPatched ? withPatches(value, path, operations)
                    : path === undefined ? news.length > 0 ? doubt : value
                    : operations.some(({ path: place }) => overlap(place, path)) ? doubt : value
                isStale = next === doubt
                if (isStale) return
                if (isBefore(cursor, last)) cursor = last
                if (next === value) return
                tag = null
                set(next)
            },
            fail(error) {
                end()
                for (const { failed } of takers) call(failed, error)
            },
        }
        const set = (next) => {
            value = next
            for (const taker of [...takers]) give(taker)
        }
        const give = (taker) => { if (takers.has(taker)) call(taker.f, value, cursor) }
        const end = () => {
            leave(watched)
            if (watches.get(key) === watched) watches.delete(key)
        }
        watches.set(key, watched)
        join(watched)
        return watched
    }

    /** Calls `f(value, cursor)` with the value and each newer one, until the function that it returns is called. */
    const subscribe = (path, f, failed) => follows(sourceOf(path), f, failed)
    const follows = (source, f, failed = report) => (watches.get(source.key) ?? watch(source)).add({ f, failed })

    const latest = (path) => watches.get(sourceOf(path).key)?.value

    const values = (path, options) => valuesOf(sourceOf(path), options)

    /** The value and each newer one; a slow loop skips values. */
    async function* valuesOf(source, { signal } = {}) {
        let next, failure, wake = () => {}
        const end = follows(source, (value) => { next = { value }; wake() }, (error) => { failure = { error }; wake() })
        try {
            while (!isClosed) {
                signal?.throwIfAborted()
                if (failure) throw failure.error
                if (next) {
                    const { value } = next
                    next = undefined
                    yield value
                } else await waken((resume) => { wake = resume }, signal)
            }
        } finally {
            end()
        }
    }

    /** A view for some parameters; one that is undefined or null is left out. */
    const view = (name, parameters) => live(withQuery(sourceOf(`view:${name}`), parameters))

    /** A query on the members of the value at a path. */
    function query(path, { sort, fields, ...others } = {}) {
        const source = sourceOf(path)
        if (source.rest.length > 0) throw new TypeError(`${path} cannot be queried: a URL cannot hold its last tokens`)
        return live(withQuery(source, { limit: 100, ...others, sort: listOf(sort), fields: listOf(fields) }))
    }

    const live = (source) => ({
        value: async (options = {}) => (await read(source, options)).value,
        subscribe: (f, failed) => follows(source, f, failed),
        values: (options) => valuesOf(source, options),
        latest: () => watches.get(source.key)?.value,
        [Symbol.asyncIterator]: () => valuesOf(source),
    })

    function close() {
        isClosed = true
        for (const controller of running) controller.abort()
    }

    return { state, snapshot, subscribe, values, latest, view, query, changes, dispatch, dispatchAll, request, close }
}

const report = (error) => queueMicrotask(() => { throw error })

/** Calls a function of the page, whose errors are its own. */
function call(f, ...values) {
    try {
        f(...values)
    } catch (error) {
        report(error)
    }
}

/** What the server asks for, and at random up to ten seconds more: the clients of a server do not come back at once. */
const pauseAfter = (failures, error) => (error?.retryAfter ?? 0) + Math.random() * Math.min(10, 0.5 * 1.5 ** failures)

/** Node 18 has no `crypto` in modules. */
const random = () => globalThis.crypto?.getRandomValues(new Uint32Array(1))[0] ?? Math.floor(Math.random() * 2 ** 32)
const newKey = () => [random(), random(), random(), random()].map((number) => number.toString(36)).join("-")

/** The value of JSON; undefined for another text, such as the page of a proxy. */
function plain(text) {
    try {
        return JSON.parse(text)
    } catch {
        return undefined
    }
}

/** Whether JSON is what the server says of an action; an answer of a proxy does not say that it is committed. */
const isReceipt = (json) => json?.committed === false
    || ["cursor", "version", "id", "changed"].every((name) => json?.[name] !== undefined)

function problemIn(text, status) {
    const document = plain(text)
    if (document?.code) return document
    return { code: `status-${status}`, detail: `the answer is ${status} without a problem document` }
}

/** Whether a cursor is of an older version than another one, or of another history. */
function isBefore(cursor, other) {
    const [epoch, version] = cursor.split("."), [otherEpoch, otherVersion] = other.split(".")
    return epoch !== otherEpoch || Number(version) < Number(otherVersion)
}

// Filters

const queryOf = ({ path, types, by }) => Object.entries({ path, types, by })
    .filter(([, value]) => value !== undefined)
    .map(([name, value]) => `&${name}=${[value].flat().map(encodeURIComponent).join(",")}`).join("")

/** A filter that passes what any of these passes; of equal ones, the same. */
function commonFilter([first, ...others]) {
    return others.reduce((common, { path, types, by }) => ({
        path: common.path !== undefined && path !== undefined ? commonPath(common.path, path) : undefined,
        types: common.types && types && [...new Set([common.types, types].flat())],
        by: common.by === by ? by : undefined,
    }), first)
}

function commonPath(path, other) {
    while (!(other + "/").startsWith(path + "/")) path = path.slice(0, path.lastIndexOf("/"))
    return path
}

// Pointers and patches

const tokensOf = (pointer) => pointer.split("/").slice(1)
const keyOf = (token) => token.replaceAll("~1", "/").replaceAll("~0", "~")

/** A path without the segments "." and "..", which a URL does not keep: another route would be asked. */
function unfolded(path) {
    if (/\/(\.|%2e){1,2}(?![^/?#])/i.test(path.split("?")[0])) throw new TypeError(`${path} has a segment . or ..`)
    return path
}

/** The route of a path. A URL cannot hold a token "", "." or "..": the value around it is read, and has the `rest`. */
function routeOf(path) {
    if (path.startsWith("view:")) return { route: unfolded(`/views/${encodeURIComponent(path.slice(5))}`), rest: [] }
    if (path !== "" && path[0] !== "/") throw new TypeError(`${path} is neither a JSON Pointer nor view:<name>`)
    const tokens = tokensOf(path), odd = tokens.findIndex((token) => /^\.{0,2}$/.test(token))
    const rest = odd < 0 ? [] : tokens.splice(odd)
    return { route: ["/state", ...tokens.map(encodeURIComponent)].join("/"), rest }
}

/**
 * Where a value comes from: the route that is asked, the `path` whose commits can change it, and whether their patches say
 * how. A token that sees a view need not see what it is made of, so that any commit can change it.
 */
function sourceOf(path) {
    const { route, rest } = routeOf(path), isView = path.startsWith("view:")
    return { route, rest, key: path, path: isView ? undefined : path, isPatched: !isView }
}

/** The source with parameters in its route, in one order for equal ones; it is read again after each change. */
function withQuery(source, parameters = {}) {
    const names = Object.keys(parameters).filter((name) => parameters[name] != null).sort()
    const query = names.map((name) => `${encodeURIComponent(name)}=${encodeURIComponent(parameters[name])}`).join("&")
    const route = query ? `${source.route}?${query}` : source.route
    return { ...source, route, key: `parameters of ${route}`, isPatched: false }
}

const listOf = (pointers) => pointers && [pointers].flat().join(",")

/** Whether one of two pointers is that of a part of the other's value. */
const overlap = (path, other) => `${path}/`.startsWith(`${other}/`) || `${other}/`.startsWith(`${path}/`)

/** The part of a value at these tokens. */
const at = (value, tokens) => tokens.map(keyOf).reduce((value, key) => {
    const isIn = Object(value) === value && Object.hasOwn(value, key) && (!Array.isArray(value) || key !== "length")
    return isIn ? value[key] : undefined
}, value)

const doubt = Symbol("to be read again")

/** The value at a path with the operations of patches done; `doubt` where they do not tell. */
function withPatches(value, path, operations) {
    const fresh = new Set()
    for (const operation of operations) {
        const { op, path: place } = operation
        // Elements of an array change their places.
        const list = place.slice(0, place.lastIndexOf("/") + 1)
        if (place.startsWith(path + "/")) {
            // A token that sees what changes inside, but no value, may not see the whole of it.
            if (value !== undefined) value = patched(value, tokensOf(place.slice(path.length)), operation, fresh)
            if (value === doubt) return doubt
        } else if (op !== "replace" && /\/(\d+|-)$/.test(place) && path.startsWith(list)) {
            return doubt
        } else if ((path + "/").startsWith(place + "/")) {
            value = at(operation.value, tokensOf(path.slice(place.length)))
        }
    }
    return value
}

/** A value with an operation done inside; it shares what does not change, and `fresh` has the copies of its own. */
function patched(value, [token, ...rest], operation, fresh) {
    if (Object(value) !== value) return doubt
    const copy = fresh.has(value) ? value : Array.isArray(value) ? [...value] : { ...value }
    fresh.add(copy)
    const key = keyOf(token), isLast = rest.length === 0, isList = Array.isArray(copy)
    if (isLast && isList && operation.op === "add") copy.splice(key === "-" ? copy.length : key, 0, operation.value)
    else if (isLast && isList && operation.op === "remove") copy.splice(key, 1)
    else if (isLast && operation.op === "remove") delete copy[key]
    else {
        const value = isLast ? operation.value : patched(at(copy, [token]), rest, operation, fresh)
        if (value === doubt) return doubt
        // An assignment to "__proto__" would make no member.
        Object.defineProperty(copy, key, { value, writable: true, enumerable: true, configurable: true })
    }
    return copy
}

/** Whether two values have the same JSON; where only the order of members differs, they count as different. */
const isSame = (value, other) => textOf(value) === textOf(other)

/** JSON has no BigInt, which `parse` can make: its text has a mark that no string has. */
const textOf = (value) => JSON.stringify(value, (_, each) => typeof each === "bigint" ? `${mark} ${each}` : each)
const mark = newKey()

/** The JSON of an action, in which a BigInt is a number with all its digits. */
const bodyOf = (action) => textOf(action).replaceAll(new RegExp(`"${mark} (-?\\d+)"`, "g"), "$1")
