// The commits behind the list: what is seen is fetched, and a bounded number of short summaries is kept.
import { epochOf, get, query, versionOf } from "./api.js"
import { byteCount, isWithin, lastToken, parent, stringify } from "./json.js"

const CHUNK = 100
const CHUNKS_MAX = 100
const FILTERED_MAX = 20_000

// Whether the client sees more of a commit than that it is there.
export const isSeen = commit => commit.action !== null || commit.patch.length > 0

// Whether a patch changes the value at a place. The server counts an operation on a list for each place in the list; one
// behind the place leaves it as it is.
export function changes(patch, pointer) {
    return patch.length === 0 || patch.some(({ op, path }) => isWithin(pointer, path) || isWithin(path, pointer)
        || op !== "replace" && isBefore(path, pointer))
}

// The newest commit before a cursor that changes a place, or undefined; `looked` is called with how far back it has looked.
export async function lastChange(base, path, before = "now", looked = () => {}) {
    for (;;) {
        const { value } = await get(`${base}/changes${query({ before, path, limit: 1 })}`)
        const commit = value.changes[0]
        if (commit && changes(commit.patch, path)) return commit
        if (!commit && !value.more) return
        before = commit?.cursor ?? value.next
        looked(before)
    }
}

function isBefore(path, pointer) {
    const list = parent(path)
    if (!isWithin(pointer, list)) return false
    return Number(lastToken(path)) <= Number(pointer.slice(list.length + 1).split("/")[0])
}

// What a line of the list shows of a commit; the commit itself is fetched when it is looked at.
export function summary(commit) {
    const actions = commit.action === null ? [] : [commit.action].flat()
    const types = [...new Set(actions.map(action => action.type))]
    return {
        version: commit.version, cursor: commit.cursor, time: commit.time, id: String(commit.id).slice(0, 255),
        cause: commit.cause, root: commit.root, by: commit.by, actions: actions.length,
        types: types.slice(0, 3).map(type => type.slice(0, 200)), moreTypes: Math.max(0, types.length - 3),
        operations: commit.patch.length, bytes: byteCount(stringify(commit.patch)),
        path: placeOf(actions, commit.patch).slice(0, 300),
    }
}

// The place that a commit changes: of several places the one that its action names, or else the one around them all.
function placeOf(actions, patch) {
    const own = actions.length === 1 ? actions[0].payload?.path : undefined
    const isIn = place => patch.every(({ path }) => isWithin(path, place))
    if (patch.length > 1 && typeof own === "string" && isIn(own)) return own
    let place = patch[0]?.path ?? ""
    while (!isIn(place)) place = parent(place)
    return place
}

// All commits of a history, newest first: a version is a position, so that any part can be fetched alone.
export class History {
    #chunks = new Map()
    #wanted = new Set()
    #running = 0

    constructor(base, head, oldest, changed) {
        Object.assign(this, { base, changed, epoch: epochOf(head), head: versionOf(head), oldest: versionOf(oldest) })
    }

    get length() { return this.head - this.oldest }
    get isComplete() { return true }
    key(index) { return this.head - index }
    cursor(index) { return `${this.epoch}.${this.key(index)}` }
    indexOf(version) { return version > this.oldest && version <= this.head ? this.head - version : -1 }

    at(index) {
        const version = this.key(index), chunk = this.#chunks.get(this.#chunkOf(version))
        return chunk?.get(version)
    }

    // Fetches what of this range is missing; a range that is no longer seen is not asked for.
    want(first, last) {
        this.#wanted.clear()
        for (let index = Math.max(0, first); index <= Math.min(last, this.length - 1); index++) {
            if (this.at(index) === undefined) this.#wanted.add(this.#chunkOf(this.key(index)))
        }
        clearTimeout(this.timer)
        this.timer = setTimeout(() => this.#fetch(), 10)
    }

    // Takes new commits; returns by how many lines the list grows at its head.
    take(commits, head) {
        for (const commit of commits) this.#keep(summary(commit))
        const grown = versionOf(head) - this.head
        this.head = versionOf(head)
        return grown
    }

    #chunkOf(version) { return Math.ceil(version / CHUNK) }

    #keep(line) {
        const number = this.#chunkOf(line.version)
        const chunk = this.#chunks.get(number) ?? new Map()
        this.#chunks.delete(number)
        this.#chunks.set(number, chunk)
        chunk.set(line.version, line)
        if (this.#chunks.size > CHUNKS_MAX) this.#chunks.delete(this.#chunks.keys().next().value)
    }

    async #fetch() {
        while (this.#running < 2 && this.#wanted.size) {
            const number = this.#wanted.values().next().value
            this.#wanted.delete(number)
            this.#running++
            try {
                const last = Math.min(number * CHUNK, this.head)
                let since = Math.max((number - 1) * CHUNK, this.oldest)
                while (since < last) {
                    const { value } = await get(`${this.base}/changes${query({ since: `${this.epoch}.${since}`, limit: last - since })}`)
                    for (const commit of value.changes) this.#keep(summary(commit))
                    since = versionOf(value.next)
                }
                this.changed()
            } catch (error) {
                // The server has let go of the end of its history meanwhile.
                if (error.code === "cursor-expired") {
                    this.oldest = versionOf(error.body.oldest)
                    this.changed()
                } else this.failed?.(error)
            } finally {
                this.#running--
            }
        }
    }
}

// Whether a commit that the server's filter keeps is shown.
export const keeps = (commit, { filter, isOnlySeen }) => (!isOnlySeen || isSeen(commit))
    && (!filter.path || changes(commit.patch, filter.path))

// The commits that a filter keeps, newest first, as far back as the list is looked through.
export class Filtered {
    #lines = []
    #isLoading = false

    constructor(base, head, filter, isOnlySeen, changed) {
        Object.assign(this, { base, filter, isOnlySeen, changed, next: "now", isComplete: false,
            reached: versionOf(head) })
        // Those of the first pages that the follower brings as well are taken once.
        this.newest = versionOf(head)
    }

    get length() { return this.#lines.length }
    get isFull() { return this.#lines.length >= FILTERED_MAX }
    key(index) { return this.#lines[index].version }
    cursor(index) { return this.#lines[index].cursor }
    indexOf(version) { return this.#lines.findIndex(line => line.version === version) }
    at(index) { return this.#lines[index] }

    want(_, last) {
        if (last >= this.length - 20) this.#load(last + 50)
    }

    take(commits) {
        const fresh = commits.filter(commit => commit.version > this.newest && this.#keeps(commit)).map(summary)
            .reverse()
        if (fresh.length) this.newest = fresh[0].version
        this.#lines.unshift(...fresh)
        this.#lines.length = Math.min(this.#lines.length, FILTERED_MAX)
        return fresh.length
    }

    #keeps(commit) { return keeps(commit, this) }

    // One page may find nothing among the commits that it examines, so pages follow each other until enough is found.
    async #load(enough) {
        if (this.#isLoading || this.isComplete || this.isFull) return
        this.#isLoading = true
        try {
            while (!this.isComplete && !this.isFull && this.length < enough && !this.isClosed) {
                const { value } = await get(`${this.base}/changes${query({ before: this.next,
                    limit: this.isOnlySeen ? 1000 : CHUNK, ...this.filter })}`)
                if (this.isClosed) return
                this.#lines.push(...value.changes.filter(commit => commit.version <= this.newest && this.#keeps(commit))
                    .map(summary))
                this.next = value.next
                this.reached = versionOf(value.next)
                this.isComplete = !value.more
                this.changed()
            }
        } catch (error) {
            this.failed?.(error)
        } finally {
            this.#isLoading = false
        }
    }
}
