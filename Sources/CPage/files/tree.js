// The state as a tree of which only the seen parts are fetched: a table by its IDs and the entities in sight, a large
// structure by its declared members, everything else as a value. Commits bring the fetched parts up to date.
import { get, VALUE_BYTES_MAX, versionOf } from "./api.js"
import { at, child, escape, isTree, isWithin, lastToken, parent, path, tokens } from "./json.js"

const ENTITIES_MAX = 2000
// A browser has six connections to a server, and one of them follows the commits.
const RUNNING_MAX = 5

// Where all that a client may see of the state is, below the base of a store.
export const VISIBLE = "/changes?since=aaaaaaaaaaaaaaaa.0&on-lost=snapshot"

export class StateTree {
    parts = new Map()
    open = new Set([""])
    marks = new Set()
    #queue = new Map()
    #running = 0
    #keys = new WeakMap()

    // `version` is null where the tree follows the present.
    constructor({ base, model, cursor, version, changed, failed }) {
        Object.assign(this, { base, model, cursor, version, changed, failed })
    }

    get at() { return this.version ?? versionOf(this.cursor) }

    // What is known of the place: { kind, value?, keys?, bytes? }; undefined while it is not fetched.
    known(pointer) {
        const own = this.parts.get(pointer)
        if (own) return own
        for (let outer = pointer; outer !== ""; ) {
            outer = parent(outer)
            const part = this.parts.get(outer)
            if (part?.kind === "value") {
                const value = at(part.value, pointer.slice(outer.length))
                return value === undefined ? { kind: "absent" } : { kind: "value", value }
            }
            if (part?.kind === "absent") return { kind: "absent" }
            if (part) return undefined
        }
    }

    children(pointer) {
        const part = this.known(pointer)
        if (part?.keys) return part.keys
        if (part?.kind !== "value" || !isTree(part.value)) return null
        let keys = this.#keys.get(part.value)
        if (!keys) this.#keys.set(part.value, keys = Object.keys(part.value))
        return keys
    }

    // Whether more of what was asked for is on its way.
    get isFetching() { return this.#running > 0 || this.#queue.size > 0 }

    // Asks for a place that is in sight, or forces one that is too large to be fetched by itself.
    want(pointer, isForced = false) {
        if (this.#queue.has(pointer) || (!isForced && this.known(pointer))) return
        this.#queue.set(pointer, isForced)
        queueMicrotask(() => this.#work())
    }

    // Forgets what is asked for and is no longer in sight.
    wantOnly(pointers) {
        for (const pointer of this.#queue.keys()) if (!pointers.has(pointer)) this.#queue.delete(pointer)
    }

    async #work() {
        while (this.#running < RUNNING_MAX && this.#queue.size) {
            const [pointer, isForced] = this.#queue.entries().next().value
            this.#queue.delete(pointer)
            if (this.parts.has(pointer) && !isForced) continue
            this.#running++
            const fetching = { kind: "fetching", version: Infinity, touched: 0 }
            this.parts.set(pointer, fetching)
            try {
                const part = await this.#fetch(pointer, isForced)
                if (this.isClosed) return
                this.parts.set(pointer, part)
                // A commit has come meanwhile that the answer does not have.
                if (part.version < fetching.touched) {
                    this.parts.delete(pointer)
                    this.#queue.set(pointer, isForced)
                }
                this.#forgetEntities()
            } catch (error) {
                this.parts.set(pointer, { kind: "failed", text: error.message, version: Infinity })
                this.failed?.(error)
            } finally {
                this.#running--
                this.changed()
            }
        }
    }

    async #fetch(pointer, isForced) {
        const schema = this.schema(pointer)
        const members = !isForced && schema?.properties && mayBeLarge(schema, this.model)
            ? Object.keys(schema.properties) : null
        if (members) return { kind: "shape", keys: members, version: Infinity }
        let address = this.base + "/state"
        try {
            address += path(pointer)
        } catch (error) {
            return { kind: "failed", text: error.message, version: Infinity }
        }
        try {
            if (this.version === null && schema && isMap(schema) && !isForced) {
                const { value } = await get(address + "?as=keyed")
                const ids = value.collections[pointer]?.initial
                if (ids) return { kind: "table", keys: ids.map(String), version: versionOf(value.next) }
            }
            const found = await get(address + (this.version === null ? "" : `?version=${this.version}`),
                { largest: isForced ? Infinity : VALUE_BYTES_MAX })
            const version = versionOf(found.cursor)
            return found.isTooLarge ? { kind: "large", bytes: found.length, version }
                : { kind: "value", value: found.value, version, etag: found.etag, bytes: found.length }
        } catch (error) {
            if (error.status !== 404) throw error
            return this.#visible(pointer)
        }
    }

    // Where a whole may not be seen, a lost cursor is answered with the parts that may, and the objects around them.
    async #visible(pointer) {
        this.skeleton ??= get(this.base + VISIBLE)
        const { value: { state, next } } = await this.skeleton
        const value = at(state, pointer)
        const isAround = isTree(value) && !Array.isArray(value)
        return isAround ? { kind: "shape", keys: Object.keys(value), isCut: true, version: versionOf(next) }
            : { kind: "absent", version: Infinity }
    }

    schema(pointer) {
        let schema = resolve(this.model.state, this.model)
        for (const token of tokens(pointer)) {
            const next = schema?.properties?.[token] ?? schema?.items ?? schema?.additionalProperties
            schema = next && typeof next === "object" ? resolve(next, this.model) : undefined
            if (!schema) return undefined
        }
        return schema
    }

    #forgetEntities() {
        let many = this.parts.size - ENTITIES_MAX
        for (const pointer of this.parts.keys()) {
            if (many <= 0) return
            if (this.parts.get(parent(pointer))?.kind !== "table" || this.open.has(pointer)) continue
            this.parts.delete(pointer)
            many--
        }
    }

    // Brings what is fetched up to date, and marks what the newest of these commits has changed.
    take(commits, head) {
        this.cursor = head
        this.#keys = new WeakMap()
        this.skeleton = null
        if (commits.length) this.mark(commits.at(-1).patch)
        for (const commit of commits) for (const operation of commit.patch) this.#apply(operation, commit.version)
    }

    mark(patch) {
        this.marks = new Set()
        for (const { path } of patch) {
            for (let pointer = path; !this.marks.has(pointer); pointer = parent(pointer)) {
                this.marks.add(pointer)
                if (pointer === "") break
            }
        }
    }

    #apply(operation, version) {
        const pointer = operation.path
        let outer = pointer
        while (!this.parts.has(outer) && outer !== "") outer = parent(outer)
        const part = this.parts.get(outer)
        if (!part) return
        if (part.kind === "fetching") part.touched = version
        if (part.kind === "value" && version > part.version) {
            part.etag = undefined
            part.bytes = undefined
            const value = patched(part.value, pointer.slice(outer.length), operation)
            if (value === undefined) this.parts.delete(outer)
            else part.value = value
        } else if (part.kind !== "value") {
            // A part below a place that is replaced as a whole is fetched again.
            if (part.kind !== "fetching") for (const inner of [...this.parts.keys()]) {
                if (inner !== outer && isWithin(inner, pointer)) this.parts.delete(inner)
            }
            if (outer === pointer && part.kind !== "fetching") this.parts.delete(pointer)
        }
        const around = this.parts.get(parent(pointer))
        if ((around?.kind === "table" || around?.isCut) && version > around.version) {
            const key = lastToken(pointer), index = operation.op === "replace" ? 0 : around.keys.indexOf(key)
            if (operation.op === "remove") {
                if (index >= 0) around.keys.splice(index, 1)
                this.parts.delete(pointer)
            } else if (index < 0) around.keys.push(key)
        }
    }

    // The lines of the tree, as runs of closed places below one parent, so that 100,000 of them are one entry.
    lines() {
        const runs = []
        let length = 0
        const add = (run, many) => { if (many > 0) { runs.push({ ...run, start: length }); length += many } }
        const walk = (pointer, depth) => {
            const keys = this.children(pointer)
            if (!keys) return
            const opened = [...this.open].filter(inner => inner !== "" && inner !== pointer
                && parent(inner) === pointer)
                .map(inner => Array.isArray(this.known(pointer)?.value) ? Number(lastToken(inner))
                    : keys.indexOf(lastToken(inner)))
                .filter(index => index >= 0 && index < keys.length).sort((one, other) => one - other)
            let from = 0
            for (const index of opened) {
                add({ pointer, keys, from, depth }, index + 1 - from)
                walk(child(pointer, keys[index]), depth + 1)
                from = index + 1
            }
            add({ pointer, keys, from, depth }, keys.length - from)
        }
        add({ pointer: null, keys: [""], from: 0, depth: 0 }, 1)
        if (this.open.has("")) walk("", 1)
        return { length, at: index => lineAt(runs, index) }
    }
}

function lineAt(runs, index) {
    let low = 0, high = runs.length - 1
    while (low < high) {
        const middle = (low + high + 1) >> 1
        if (runs[middle].start <= index) low = middle
        else high = middle - 1
    }
    const run = runs[low], position = run.from + index - run.start, key = run.keys[position]
    return { key, depth: run.depth, position, siblings: run.keys.length,
        pointer: run.pointer === null ? "" : `${run.pointer}/${escape(key)}` }
}

const resolve = (schema, model) => schema?.$ref
    ? model.schemas[schema.$ref.slice(schema.$ref.lastIndexOf("/") + 1)] : schema
const isMap = schema => !schema.properties && isTree(schema.additionalProperties)

// Whether a value of this schema can be of any size although its structure is declared.
function mayBeLarge(schema, model, depth = 0) {
    const found = resolve(schema, model)
    if (!found || depth > 8) return true
    if (isMap(found)) return true
    if (found.properties) return Object.values(found.properties).some(inner => mayBeLarge(inner, model, depth + 1))
    return found.type === undefined && !found.enum
}

// The value with one operation of a patch applied in place; undefined where it does not fit.
function patched(value, pointer, operation) {
    if (pointer === "") return operation.op === "remove" ? undefined : operation.value
    const path = tokens(pointer), last = path.pop()
    let place = value
    for (const token of path) {
        if (!isTree(place) || !Object.hasOwn(place, token) || !isTree(place[token])) return undefined
        place = place[token]
    }
    if (!isTree(place)) return undefined
    if (Array.isArray(place)) {
        const index = last === "-" ? place.length : Number(last)
        if (operation.op === "add") place.splice(index, 0, operation.value)
        else if (operation.op === "remove") place.splice(index, 1)
        else place[index] = operation.value
    } else if (operation.op === "remove") delete place[last]
    else Object.defineProperty(place, last, { value: operation.value, writable: true, enumerable: true,
        configurable: true })
    return value
}
