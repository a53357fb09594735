// Requests to the contract: the credential of this tab, problems as errors, and whether the server answers.
import { connect } from "/v1/client.js"
import { parse, plural } from "./json.js"

export class Problem extends Error {
    constructor(status, body) {
        super(body.detail ?? `the server answers ${status}`)
        Object.assign(this, { status, code: body.code ?? String(status), errors: body.errors ?? [], body })
    }
}

// The server could not be reached, or the connection ended before the answer.
class Unreachable extends Error {}

// `unauthorized`, `gone`, `back`, and `busy` where the server answers that it cannot let the page follow now.
export const events = new EventTarget()

let token = null
try { token = sessionStorage.getItem("token") } catch { /* Without storage the page asks again after a reload. */ }
let goneSince = 0

export const hasToken = () => token !== null

export function setToken(value) {
    token = value
    try {
        if (value === null) sessionStorage.removeItem("token")
        else sessionStorage.setItem("token", value)
    } catch { /* As above. */ }
}

export const pause = (milliseconds, signal) => new Promise(resolve => {
    const end = () => {
        clearTimeout(timer)
        signal?.removeEventListener("abort", end)
        resolve()
    }
    const timer = setTimeout(end, milliseconds)
    signal?.addEventListener("abort", end)
})

function tell(isThere) {
    if (isThere === (goneSince === 0)) return
    if (isThere) {
        const seconds = Math.round((Date.now() - goneSince) / 1000)
        goneSince = 0
        events.dispatchEvent(new CustomEvent("back", { detail: plural(seconds, "second") }))
        // The clients of this page rest no longer.
        dispatchEvent(new Event("online"))
    } else {
        goneSince = Date.now()
        events.dispatchEvent(new Event("gone"))
    }
}

export const isGone = () => goneSince !== 0

async function send(path, { method = "GET", body, headers = {}, signal } = {}) {
    // A browser folds the segments . and .. of a path, also as escapes, so that it would ask another route.
    if (new URL(path, location.origin).pathname !== path.split("?")[0]) {
        throw new RangeError("a browser cannot address the names . and ..")
    }
    const fields = { ...headers }
    if (token !== null) fields.Authorization = `Bearer ${token}`
    if (body !== undefined) fields["Content-Type"] = "application/json"
    let answer
    try {
        answer = await fetch(path, { method, body, headers: fields, signal, cache: "no-store",
            credentials: "omit", redirect: "manual" })
        tell(true)
    } catch (error) {
        if (signal?.aborted) throw error
        tell(false)
        throw new Unreachable("the server does not answer")
    }
    // What a redirected POST leads to does not say what has become of it.
    if (answer.type === "opaqueredirect") throw new Error("the server redirects to another address: open the page there")
    return answer
}

// The longest value that a view reads whole.
export const VALUE_BYTES_MAX = 8_000_000

// The answer to one request; a status of 400 or above throws. `largest` refuses to read a body of more bytes.
export async function request(path, options = {}) {
    const used = token
    const answer = await send(path, options)
    const found = {
        status: answer.status, cursor: answer.headers.get("State-Cursor"), location: answer.headers.get("Location"),
        // Each content coding has a tag of its own; curl, which asks for none, gets the one without an ending.
        etag: answer.headers.get("ETag")?.replace(/\.(gzip|zstd)"$/, '"'),
        coding: answer.headers.get("Content-Encoding"), length: Number(answer.headers.get("Content-Length") ?? 0),
    }
    if (answer.status < 400 && options.largest && found.length > options.largest) {
        await answer.body.cancel()
        return { ...found, isTooLarge: true }
    }
    if (options.blob && answer.ok) return { ...found, blob: await answer.blob() }
    let text
    try {
        text = await answer.text()
    } catch (error) {
        if (options.signal?.aborted) throw error
        throw new Unreachable("the connection ended before the answer")
    }
    if (answer.status < 400) return { ...found, value: text === "" ? undefined : parse(text) }
    let body = {}
    try { body = parse(text) } catch { /* A HEAD and a proxy have no problem document; the status says enough. */ }
    // Of several requests with a token that has ended, the first one says so.
    if (answer.status === 401 && used === token) events.dispatchEvent(new Event("unauthorized"))
    const problem = new Problem(answer.status, body)
    problem.retryAfter = Number(answer.headers.get("Retry-After") ?? 0)
    throw problem
}

// A GET that comes back after the pause that the server asks for, and when the server is there again.
export async function get(path, options = {}) {
    for (let turn = 0; ; turn++) {
        try {
            return await request(path, options)
        } catch (error) {
            const isBusy = (error.status === 429 || error.status === 503) && turn < 8
            if (options.signal?.aborted || !(isBusy || (error instanceof Unreachable && !options.once))) throw error
            if (isBusy) await pause((error.retryAfter || 1) * 1000, options.signal)
            else await Promise.race([pause(Math.min(250 * 2 ** turn, 3000) * (0.75 + Math.random() / 2), options.signal),
                new Promise(resolve => events.addEventListener("back", resolve, { once: true }))])
            if (options.signal?.aborted) throw error
        }
    }
}

// The client that any page can import: it follows, and sends an action until it is known to be committed once. It keeps
// the token of its beginning, so that nothing is sent again for another subject. What this module reads by itself is
// bounded in size.
export const client = base => connect(location.origin + base, { token: token ?? undefined, parse,
    // A problem is an answer.
    onConnection(isThere, error) {
        const isAnswered = isThere || error.status > 0
        tell(isAnswered)
        if (isAnswered && error?.isPassing) events.dispatchEvent(new CustomEvent("busy", { detail: error.detail }))
    } })

// A receipt, or what the server says where nothing is committed, or not yet; the answer of a proxy is none of these.
const isReceipt = json => json?.cursor !== undefined || json?.committed === false || json?.settled === false

// `onRetry` is called with each problem after which the action is sent again.
export async function post(base, body, { headers, signal, query = "", onRetry } = {}) {
    const key = Array.from(crypto.getRandomValues(new Uint32Array(4)), word => word.toString(36)).join("-")
    const fields = { "Content-Type": "application/json", "Idempotency-Key": `"${key}"`, ...headers }
    try {
        return (await client(base).request("/actions" + query,
            { method: "POST", body, headers: fields, signal, seconds: Infinity, onRetry, isAnswer: isReceipt })).json
    } catch (error) {
        throw error.document ? new Problem(error.status, error.document) : error
    }
}

export function query(parameters) {
    const found = Object.entries(parameters).filter(([, value]) => value !== undefined && value !== null
        && value !== "")
    return found.length ? "?" + found.map(([key, value]) => `${key}=${encodeURIComponent(value)}`).join("&") : ""
}

// The curl line for an address: whatever the page shows, curl can ask for.
export function curl(path, options = "") {
    const credential = token === null ? "" : ` -H "Authorization: Bearer $TOKEN"`
    return `curl${credential}${options} '${location.origin}${path.replaceAll("'", "%27")}'`
}

export const versionOf = cursor => Number(cursor.slice(cursor.indexOf(".") + 1))
export const epochOf = cursor => cursor.slice(0, cursor.indexOf("."))
