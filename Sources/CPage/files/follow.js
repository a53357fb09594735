// Follows the commits over one connection: resumes by itself, and stops while the tab is hidden.
import { epochOf, get, pause, query, versionOf } from "./api.js"

// How far the page may fall behind before it goes on at the head; the views then read again what they show.
const LAG_MAX = 5000

// A browser opens six connections to a host for all of its tabs. Four of them may wait here; the other tabs ask each second.
async function withSlot(work) {
    if (!navigator.locks) return work(true)
    for (let slot = 0; slot < 4; slot++) {
        let isDone = false
        await navigator.locks.request(`storekeeper-follow-${slot}`, { ifAvailable: true }, async lock => {
            if (!lock) return
            await work(true)
            isDone = true
        })
        if (isDone) return
    }
    await work(false)
}

const shown = () => document.visibilityState === "visible" ? Promise.resolve() : new Promise(resolve =>
    document.addEventListener("visibilitychange", resolve, { once: true })).then(shown)

// The cursors between which a store can be followed. A fork has no document that names them; its commits do.
async function beginning(base, signal) {
    if (base === "/v1") return (await get(base, { signal })).value
    const page = async since => (await get(`${base}/changes${query({ since, limit: 1 })}`, { signal })).value
    const { next: cursor } = await page("now"), { changes: [first] } = await page("oldest")
    return { cursor, oldest: first ? `${epochOf(cursor)}.${first.version - 1}` : cursor }
}

// Events: `aimed` with a new cursor, `commits` with {commits, head, next}, `jump` when commits were passed over, `reset`
// when the history is gone, `lost` when the store is.
export class Follower extends EventTarget {
    base = null
    filter = {}
    next = null
    head = null

    // Follows with this filter; returns the cursor from which the events go on.
    async aim(base, filter = {}) {
        const key = base + query(filter)
        if (this.key === key && this.next) return this.next
        this.stop()
        Object.assign(this, { key, base, filter, next: null })
        const control = this.control = new AbortController()
        const begin = await beginning(base, control.signal)
        if (control.signal.aborted) throw new DOMException("another aim", "AbortError")
        this.oldest = begin.oldest
        this.next = this.head = begin.cursor
        this.#emit("aimed", { head: begin.cursor })
        this.#run(control.signal)
        return begin.cursor
    }

    stop() {
        this.control?.abort()
        this.key = null
    }

    async #run(signal) {
        while (!signal.aborted) {
            await shown()
            const hidden = new AbortController()
            const leave = () => { if (document.visibilityState === "hidden") hidden.abort() }
            document.addEventListener("visibilitychange", leave)
            const either = AbortSignal.any ? AbortSignal.any([signal, hidden.signal]) : signal
            try {
                await withSlot(canWait => this.#poll(canWait, either, signal))
            } catch (error) {
                if (!either.aborted) {
                    if (error.status === 410) return this.#emit("reset", error.body)
                    if (error.status === 404) return this.#emit("lost", error.body)
                    if (error.status === 401) return
                    await pause(2000, either)
                }
            } finally {
                document.removeEventListener("visibilitychange", leave)
            }
        }
    }

    // One turn of following. Without a slot it asks once and lets the slots be tried again.
    async #poll(canWait, signal, whole) {
        do {
            const wait = canWait ? { wait: 20, debounce: 60 } : {}
            const { value } = await get(`${this.base}/changes${query({ since: this.next, limit: 500, ...wait, ...this.filter })}`, { signal })
            if (whole.aborted) return
            this.head = value.head
            if (versionOf(value.head) - versionOf(value.next) > LAG_MAX) {
                this.next = value.head
                this.#emit("jump", { head: value.head })
            } else {
                this.next = value.next
                this.#emit("commits", { commits: value.changes, head: value.head, next: value.next })
            }
            if (!canWait) await pause(value.more ? 0 : 1000, signal)
        } while (!signal.aborted && canWait)
    }

    #emit(type, detail) {
        this.dispatchEvent(new CustomEvent(type, { detail }))
    }
}
