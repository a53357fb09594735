// JSON and JSON Pointers as the page needs them: digits are kept, and foreign text is made visible and bounded.

// A number that a browser would write otherwise, such as 0.10 or one of many digits, keeps its text where the browser can
// do that.
const keepText = JSON.rawJSON && ((_, value, context) =>
    typeof value === "number" && context?.source && String(value) !== context.source
        ? JSON.rawJSON(context.source) : value)

// To look at each value takes some time, so that a text without such a number is read without it.
const odd = /(?<![^:,[\s])-?(?:[\d.]{16,}|\d+\.\d*0|[\d.]+e[-+]?\d+|(?<=-)0)(?=[,\]}\s]|$)/i

export function parse(text) {
    return keepText && odd.test(text) ? JSON.parse(text, keepText) : JSON.parse(text)
}

const isRaw = value => JSON.isRawJSON ? JSON.isRawJSON(value) : false
export const isTree = value => value !== null && typeof value === "object" && !isRaw(value)
export const stringify = value => JSON.stringify(value)

// Whether two values are equal, in whatever order their members are.
export const isEqual = (one, other) => stringify(ordered(one)) === stringify(ordered(other))
const ordered = value => Array.isArray(value) ? value.map(ordered) : !isTree(value) ? value
    : Object.fromEntries(Object.keys(value).sort().map(key => [key, ordered(value[key])]))

export const escape = token => String(token).replaceAll("~", "~0").replaceAll("/", "~1")
export const tokens = pointer => pointer === "" ? [] : pointer.slice(1).split("/").map(unescape)
export const child = (pointer, key) => `${pointer}/${escape(key)}`
export const parent = pointer => pointer.slice(0, pointer.lastIndexOf("/"))
export const lastToken = pointer => pointer === "" ? "" : unescape(pointer.slice(pointer.lastIndexOf("/") + 1))
export const isWithin = (pointer, outer) => pointer === outer || pointer.startsWith(outer + "/")

function unescape(token) {
    return token.replaceAll("~1", "/").replaceAll("~0", "~")
}

// The path of a part of the state below `/state`. A browser folds `.` and `..` in a path, also as escapes, so that such
// a key has no address for it: the value around it shows it.
export function path(pointer) {
    if (pointer === "/") return "//"
    const parts = pointer.split("/")
    if (parts.some(part => part === "."
        || part === "..")) throw new RangeError("a browser cannot address the keys . and ..")
    return parts.map(encodeURIComponent).join("/")
}

// What is at the pointer, or undefined.
export function at(value, pointer) {
    for (const token of tokens(pointer)) {
        if (!isTree(value) || !Object.hasOwn(value, token)) return undefined
        value = value[token]
    }
    return value
}

// Marks that turn or hide the text around them are shown as their escapes, so that a text looks as what it is.
const hidden = /[\u0000-\u0008\u000b-\u001f\u007f-\u009f\u00ad\u061c\u200b-\u200f\u2028-\u202e\u2060-\u206f\ufeff]/g
export const visible = text => text.replace(hidden, mark => "\\u" + mark.charCodeAt(0).toString(16).padStart(4, "0"))

// Why a text is not JSON, or undefined.
export function faultOf(text, advice = "A text stands in quotes.") {
    try {
        parse(text)
    } catch (error) {
        return text.trim() === "" ? "A value is missing. An empty text is \"\" as JSON."
            : `This is not JSON: ${visible(error.message)}. ${advice}`
    }
}

const number = new Intl.NumberFormat("en")
export const count = value => number.format(value)
export const plural = (value, one, many = one + "s") => `${count(value)} ${value === 1 ? one : many}`

// A time as its two largest parts.
export function duration(seconds) {
    const parts = [[86_400, "day"], [3600, "hour"], [60, "minute"], [1, "second"]]
    const index = Math.max(0, parts.findIndex(([length]) => seconds >= length))
    const found = seconds < 1 ? ["0 seconds"] : []
    for (const [length, name] of parts.slice(index, index + 2)) {
        const many = Math.floor(seconds / length)
        seconds -= many * length
        if (many) found.push(plural(many, name))
    }
    return found.join(", ")
}

// A text of at most so many characters; a longer one is cut and says how long it is.
export function cut(text, most = 160) {
    return text.length <= most ? visible(text) : `${visible(text.slice(0, most))}… (${count(text.length)} characters)`
}

export function bytes(value) {
    if (value < 1000) return `${value} B`
    if (value < 999_500) return `${(value / 1000).toPrecision(3)} kB`
    return value < 999_500_000 ? `${(value / 1e6).toPrecision(3)} MB` : `${(value / 1e9).toPrecision(3)} GB`
}

const encoder = new TextEncoder()
export const byteCount = text => encoder.encode(text).length

// A value on one line, cut: what it holds where that is short, otherwise how much it holds.
export function brief(value, most = 80, depth = 2) {
    if (Array.isArray(value)) {
        if (value.length === 0) return "[]"
        const inner = depth > 0 && value.length < 20
            && `[${value.map(element => brief(element, most, depth - 1)).join(", ")}]`
        return inner && inner.length <= most ? inner : `[${plural(value.length, "element")}]`
    }
    if (isTree(value)) {
        const keys = Object.keys(value)
        if (keys.length === 0) return "{}"
        const inner = depth > 0 && keys.length < 20
            && `{${keys.map(key => `${cut(key, 40)}: ${brief(value[key], 40, depth - 1)}`).join(", ")}}`
        return inner && inner.length <= most ? inner : `{${plural(keys.length, "member")}}`
    }
    if (typeof value === "string") return value.length > most ? `"${cut(value, most)}` : visible(stringify(value))
    return stringify(value) ?? ""
}

// A value as indented JSON of at most so many lines; what is left out is counted.
export function pretty(value, most = 400, width = 600) {
    const lines = []
    print(value, "", "")
    return lines.join("\n")

    function print(value, indent, before, after = "") {
        if (!isTree(value) || Object.keys(value).length === 0) {
            const text = typeof value === "string" && value.length > width
                ? `"${cut(value, width)}` : visible(stringify(value))
            lines.push(indent + before + text + after)
            return
        }
        const isList = Array.isArray(value), keys = Object.keys(value)
        const flat = keys.length < 9 && keys.every(key => !isTree(value[key])) && stringify(value)
        if (flat && flat.length < 72) {
            lines.push(indent + before + visible(flat).replaceAll(/,(?=["\d[{tfn-])/g, isList ? ", " : ",") + after)
            return
        }
        lines.push(indent + before + (isList ? "[" : "{"))
        for (const [index, key] of keys.entries()) {
            if (lines.length >= most) {
                lines.push(`${indent}  … ${count(keys.length - index)} more`)
                break
            }
            const name = isList ? "" : visible(stringify(key.length > width ? cut(key, width) : key)) + ": "
            print(value[key], indent + "  ", name, index === keys.length - 1 ? "" : ",")
        }
        lines.push(indent + (isList ? "]" : "}") + after)
    }
}
