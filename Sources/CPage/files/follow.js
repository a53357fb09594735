// Follows the commits of one store with one filter, and says where the page stands.
import { client, epochOf, events, get, pause, query, versionOf } from "./api.js"

// How far the page may fall behind before it goes on at the head; the views then read again what they show.
const LAG_MAX = 5000
// Commits that come within this time are drawn together.
const BATCH_MILLISECONDS = 50
const HEAD_SECONDS = 5

// The cursors between which a store can be followed. A fork has no document that names them; its commits do.
async function beginning(base, signal) {
    if (base === "/v1") return (await get(base, { signal })).value
    const page = async since => (await get(`${base}/changes${query({ since, limit: 1 })}`, { signal })).value
    const { next: cursor } = await page("now"), { changes: [first] } = await page("oldest")
    return { cursor, oldest: first ? `${epochOf(cursor)}.${first.version - 1}` : cursor }
}

// Events: `aimed` at a store, `commits` with {commits, head}, `jump` when commits were passed over, `head` when only
// that is known, `reset` when the history is gone, `lost` when the fork is, `failed` when the server refuses; but for a
// filter at fault, it is asked again, and `failure` is why it is not followed.
export class Follower extends EventTarget {
    // Follows with this filter; returns the cursor from which the events go on.
    async aim(base, filter = {}) {
        const key = base + query(filter)
        if (this.key === key && this.next) return this.next
        // Another filter of the same store begins where the last one was.
        const known = this.base === base && this.head ? { cursor: this.head, oldest: this.oldest } : null
        this.stop()
        Object.assign(this, { key, base, filter, next: null, isLate: false })
        const { signal } = this.control = new AbortController()
        const begin = known ?? await beginning(base, signal)
        if (signal.aborted) throw new DOMException("another aim", "AbortError")
        this.oldest = begin.oldest
        this.next = this.head = begin.cursor
        this.#emit("aimed")
        this.#follow(signal)
        this.#watchHead(signal)
        return begin.cursor
    }

    stop() {
        this.control?.abort()
        this.key = this.head = this.failure = null
    }

    async #follow(signal) {
        const store = client(this.base), { types, ...rest } = this.filter
        const filter = types ? { types: types.split(","), ...rest } : rest
        const jump = this.jumping = new AbortController()
        signal.addEventListener("abort", () => jump.abort())
        let commits = [], timer
        const flush = () => {
            timer = null
            if (jump.signal.aborted) return
            const detail = { commits, head: this.head }
            this.isLate ||= commits.length > 500
            commits = []
            this.#emit("commits", detail)
        }
        try {
            for await (const commit of store.changes({ since: this.next, signal: jump.signal, ...filter })) {
                if (commit.reset) return this.#emit("reset", commit)
                commits.push(commit)
                this.next = commit.cursor
                if (versionOf(this.head) < commit.version) this.head = commit.cursor
                timer ??= setTimeout(flush, BATCH_MILLISECONDS)
            }
        } catch (error) {
            if (jump.signal.aborted) return
            if (commits.length > 0) flush()
            if (error.status === 401) events.dispatchEvent(new Event("unauthorized"))
            else if (error.status === 404 && this.base !== "/v1") this.#emit("lost")
            else {
                if (error.status !== 400) this.failure = error
                this.#emit("failed", error)
            }
            this.key = null
        } finally {
            clearTimeout(timer)
            store.close()
        }
    }

    // A filter hides where the head is, and a busy server can be faster than the page.
    async #watchHead(signal) {
        const isFiltered = Object.keys(this.filter).length > 0
        let hasBeenHidden = false
        while (!signal.aborted) {
            await pause(HEAD_SECONDS * 1000, signal)
            if (document.hidden) hasBeenHidden = true
            if (signal.aborted || document.hidden
                || !(isFiltered || this.isLate || hasBeenHidden || this.failure)) continue
            hasBeenHidden = this.isLate = false
            const found = await (this.failure ? get(`${this.base}/changes${query({ since: "now", ...this.filter })}`, { signal })
                : beginning(this.base, signal)).catch(() => null)
            if (!found || signal.aborted) continue
            if (this.failure) {
                this.failure = null
                this.#emit("head")
                this.#follow(signal)
                continue
            }
            if (epochOf(found.cursor) !== epochOf(this.next)) continue
            this.head = found.cursor
            if (isFiltered) {
                this.#emit("head")
            } else if (versionOf(found.cursor) - versionOf(this.next) > LAG_MAX) {
                const passed = versionOf(found.cursor) - versionOf(this.next)
                this.jumping.abort()
                this.next = found.cursor
                this.#emit("jump", { head: found.cursor, passed })
                this.#follow(signal)
            }
        }
    }

    #emit(type, detail) {
        this.dispatchEvent(new CustomEvent(type, { detail }))
    }
}
