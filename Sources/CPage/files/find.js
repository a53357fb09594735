// Finds keys and values that have a text in them, in the whole state where it can be fetched as one.
import { get, VALUE_BYTES_MAX } from "./api.js"
import { foreign, h, link } from "./dom.js"
import { brief, child, count, isTree, plural, stringify } from "./json.js"

const FOUND_MAX = 200

// The first places below some known ones, in the order of the state.
function search(places, text) {
    const found = [], wanted = text.toLowerCase(), has = each => each.toLowerCase().includes(wanted)
    // A stack: a document has more levels than a function should call itself.
    const open = [...places].reverse()
    while (open.length > 0 && found.length <= FOUND_MAX) {
        const { pointer, key, value } = open.pop()
        const isIn = isTree(value)
        if ((key !== undefined && has(key)) || (value !== undefined && !isIn
            && has(typeof value === "string" ? value : stringify(value)))) found.push({ pointer, value })
        if (!isIn) continue
        const keys = Object.keys(value), isList = Array.isArray(value)
        for (let index = keys.length - 1; index >= 0; index--) {
            open.push({ pointer: child(pointer, keys[index]), key: isList ? undefined : keys[index], value: value[keys[index]] })
        }
    }
    return found
}

// The answer as elements; a state that is too large, or may be seen in parts only, is searched as far as it is fetched.
export async function findView(context, tree, at, text) {
    const whole = await get(`${context.base}/state${tree.version === null ? "" : `?version=${tree.version}`}`,
        { largest: VALUE_BYTES_MAX }).catch(error => {
        if (error.status !== 404) throw error
    })
    const isWhole = whole && !whole.isTooLarge
    const places = isWhole ? [{ pointer: "", value: whole.value }]
        : [...tree.parts].flatMap(([pointer, part]) => part.kind === "value" ? [{ pointer, value: part.value }]
            : (part.keys ?? []).filter(key => !tree.parts.has(child(pointer, key)))
                .map(key => ({ pointer: child(pointer, key), key })))
    const found = search(places, text), shown = found.slice(0, FOUND_MAX)
    return [h("h2", {}, found.length > FOUND_MAX ? `The first ${count(FOUND_MAX)} places with `
        : `${plural(found.length, "place")} with `, foreign(text, 80)),
    !isWhole && h("p", { class: "hint" }, "In what is open in the tree; open more of it to search there, too."),
    found.length === 0 && h("p", {}, "No key and no value has this text. Capital letters do not matter."),
    h("ul", { class: "places" }, shown.map(({ pointer, value }) => h("li", {},
        link(foreign(pointer, 200), context.address("state", { path: pointer,
            at })), " ",
        h("span", { class: "hint" }, h("bdi", {}, brief(value, 80))))))]
}
