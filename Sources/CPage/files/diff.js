// A patch as a difference: what stood at each place before, and what stands there now.
import { get } from "./api.js"
import { button, fill, h } from "./dom.js"
import { bytes, byteCount, count, isTree, parent, path, pretty, stringify } from "./json.js"

const SHOWN = 20
const OLD_BYTES_MAX = 200_000

// `before` is the version that the patch applies to, or null for the present; `place` links a pointer.
export function patchView(base, patch, before, place) {
    if (patch.length === 0) return h("p", { class: "hint" }, "The state is the same as before.")
    const list = h("ol", { class: "diff" })
    const more = h("p")
    let shown = 0
    const show = number => {
        for (const operation of patch.slice(shown, number)) {
            list.append(operationView(base, operation, before, place, isMoved(patch, operation)))
        }
        shown = Math.min(number, patch.length)
        fill(more,
            shown < patch.length
            && button(`Show ${count(Math.min(100, patch.length - shown))} of ${count(patch.length - shown)} more`,
            () => show(shown + 100), { class: "small" }))
    }
    show(SHOWN)
    return h("div", {}, list, more)
}

// An operation behind another one on the same list no longer stands where it stood before the patch.
function isMoved(patch, operation) {
    for (const earlier of patch) {
        if (earlier === operation) return false
        if (parent(earlier.path) === parent(operation.path) && earlier.op !== "replace") return true
    }
}

const words = { add: "added", remove: "removed", replace: "changed", move: "moved", copy: "copied", test: "tested" }

function operationView(base, operation, before, place, hasMoved) {
    const body = h("div", { class: "change" })
    if ("value" in operation) body.append(side("+", operation.value))
    if (operation.op !== "add" && !hasMoved) {
        const slot = h("div", { class: "removed" }, h("pre", {}, "…"))
        body.prepend(slot)
        old(base, operation.path, before).then(found => {
            if (found.isTooLarge) fill(slot, h("pre", {}, `… ${bytes(found.length)}`))
            else slot.replaceWith(side("−", found.value))
        }, () => fill(slot, h("pre", {}, "no longer kept")))
    }
    return h("li", {},
        h("p", {}, h("span", { class: `verb ${operation.op}` }, words[operation.op] ?? operation.op), " ",
            place(operation.path),
            "value" in operation && h("span", { class: "hint" }, " ",
                bytes(byteCount(stringify(operation.value))))), body)
}

async function old(base, pointer, version) {
    const address = `${base}/state${path(pointer)}${version === null ? "" : `?version=${version}`}`
    return get(address, { largest: OLD_BYTES_MAX })
}

function side(sign, value) {
    return h("div", { class: sign === "+" ? "added" : "removed" },
        h("span", { class: "sign", "aria-label": sign === "+" ? "now" : "before" , role: "img" }, sign),
            h("pre", {}, h("bdi", {}, pretty(value, 60))))
}

// The differences of two values, as operations with both sides.
export function differences(left, right, most = 500) {
    const found = []
    let isCut = false
    walk(left, right, "")
    return { found, isCut }

    function walk(one, other, pointer) {
        if (found.length >= most) { isCut = true; return }
        if (one === other) return
        const both = [one, other]
        const areObjects = both.every(value => isTree(value) && !Array.isArray(value))
        const areLists = both.every(Array.isArray) && one.length === other.length
        if (!areObjects && !areLists) {
            if (stringify(one) !== stringify(other)) found.push({ pointer, left: one, right: other })
            return
        }
        for (const key of new Set([...Object.keys(one), ...Object.keys(other)])) {
            const next = `${pointer}/${key.replaceAll("~", "~0").replaceAll("/", "~1")}`
            walk(Object.hasOwn(one, key) ? one[key] : undefined,
                Object.hasOwn(other, key) ? other[key] : undefined, next)
        }
    }
}

export function differenceView({ pointer, left, right }, place) {
    const cell = (value, kind) => h("div", { class: kind }, value === undefined
        ? h("p", { class: "hint" }, "nothing here") : h("pre", {}, h("bdi", {}, pretty(value, 60))))
    return h("li", {}, h("p", {}, place(pointer)),
        h("div", { class: "sides" }, cell(left, "one"), cell(right, "other")))
}
