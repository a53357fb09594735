// A form for a value of a JSON Schema. What is typed becomes JSON text, so that digits stay as they are and the server
// is the one that judges; each field knows the pointer by which the server would name it.
import { button, fill, h, name } from "./dom.js"
import { escape, faultOf, isEqual, isTree, parse, stringify, visible } from "./json.js"

const isNumber = /^-?(0|[1-9]\d*)(\.\d+)?([eE][+-]?\d+)?$/

// A field has an element, text() (undefined where it is left out), set(value), refuse(pointer, sentence), and check(), which
// refuses what is not JSON where JSON is written, and returns the first control at fault.
export function field(schema, { label, pointer, isRequired = true, root = schema, depth = 0 }) {
    const found = resolve(schema, root)
    const kinds = [found.type ?? []].flat().filter(kind => kind !== "null")
    const canBeNull = [found.type].flat().includes("null") || found.enum?.includes(null)
    const options = { schema: found, label, pointer, root, depth }
    let make = kinds.length === 1 ? makers[kinds[0]] : undefined
    if (found.const !== undefined || found.enum) make = choice
    else if (found.oneOf ?? found.anyOf) make = variants
    else if (depth > 12) make = undefined
    const inner = (make ?? anything)(options)
    if (found.type === "null") Object.assign(inner, { text: () => "null", check() {} })
    return isRequired && !canBeNull ? inner : optional(inner, { ...options, canBeLeftOut: !isRequired, canBeNull })
}

const resolve = (schema, root) => {
    if (schema === true || !isTree(schema)) return {}
    if (!schema.$ref?.startsWith("#/")) return schema
    return schema.$ref.slice(2).split("/").reduce((found, key) => found?.[key], root) ?? {}
}

const makers = {
    string: options => line(options, h("textarea", { rows: 1, spellcheck: "false", autocomplete: "off" }), "text", {
        text: control => stringify(control.value),
            set: (control, value) => { control.value = typeof value === "string" ? value : stringify(value) },
    }),
    integer: options => line(options, h("input", { type: "text", inputmode: "numeric", autocomplete: "off" }),
        "whole number", numeric),
    number: options => line(options, h("input", { type: "text", inputmode: "decimal", autocomplete: "off" }), "number",
        numeric),
    boolean: options => choice({ ...options, schema: { enum: [false, true] } }),
    object: options => options.schema.properties || options.schema.additionalProperties === undefined
        || typeof options.schema.additionalProperties === "boolean"
        ? members(options) : map(options),
    array: list,
}

// A text that is not a number goes to the server as a text, whose refusal then stands at this field.
const numeric = {
    text: control => isNumber.test(control.value.trim()) ? control.value.trim() : stringify(control.value),
    set: (control, value) => { control.value = typeof value === "string" ? value : stringify(value) },
}

function line({ label, pointer }, control, hint, { text, set }) {
    control.id = name("field")
    const refusal = h("p", { class: "error", id: `${control.id}-error`, hidden: true })
    control.setAttribute("aria-describedby", refusal.id)
    const element = h("div", { class: "field" },
        h("label", { for: control.id }, visible(label), h("span", { class: "hint" }, ` ${hint}`)), control, refusal)
    return {
        element, pointer, control, text: () => text(control), check() {},
        set: value => value === undefined ? control.value = "" : set(control, value),
        refuse(_, sentence) {
            control.toggleAttribute("aria-invalid", Boolean(sentence))
            if (sentence) control.setAttribute("aria-invalid", "true")
            refusal.textContent = sentence ?? ""
            refusal.hidden = !sentence
            return control
        },
    }
}

function choice(options) {
    const values = options.schema.const !== undefined ? [options.schema.const]
        : options.schema.enum.filter(value => value !== null)
    const control = h("select", {}, values.map((value, index) => h("option", { value: index },
        typeof value === "string" ? visible(value) : stringify(value))))
    return line(options, control, values.length === 1 ? "always" : "one of", {
        text: control => stringify(values[control.value]),
        set: (control, value) => { control.value = values.findIndex(other => stringify(other) === stringify(value)) },
    })
}

// Where the schema says nothing, the value is written as JSON.
function anything(options) {
    const made = line(options, h("textarea", { rows: 2, class: "mono", spellcheck: "false" }), "JSON",
        { text: control => control.value.trim(), set: (control, value) => { control.value = stringify(value) } })
    return { ...made, check() {
        const fault = faultOf(made.control.value)
        return fault && made.refuse(null, fault)
    } }
}

// Several fields in one frame; a refusal goes to the innermost field that its pointer names.
function group({ label, pointer, depth }, parts, content) {
    const id = name("error"), refusal = h("p", { class: "error", id, hidden: true })
    const element = h("fieldset", { class: depth === 0 ? "top" : "", "aria-describedby": id, tabindex: "-1" },
        depth > 0 && h("legend", {}, visible(label)), content, refusal)
    return {
        element, pointer, check: () => parts().map(part => part.check()).find(Boolean),
        refuse(to, sentence) {
            if (to === undefined || to === null) {
                for (const part of parts()) part.refuse(null, null)
            } else {
                const part = parts().find(part => to === part.pointer || to.startsWith(part.pointer + "/"))
                if (part) return part.refuse(to, sentence)
            }
            refusal.textContent = sentence ?? ""
            refusal.hidden = !sentence
            return element
        },
    }
}

function members(options) {
    const { schema, pointer, root, depth } = options
    const required = new Set(schema.required ?? [])
    const fields = Object.entries(schema.properties ?? {}).map(([key, inner]) => ({
        key, field: field(inner, { label: key, pointer: `${pointer}/${escape(key)}`, isRequired: required.has(key),
            root, depth: depth + 1 }),
    }))
    const isOpen = schema.additionalProperties !== false && schema.properties === undefined
    const rest = isOpen && depth > 0 ? anything({ ...options, label: options.label }) : null
    if (rest) return rest
    const shared = group(options, () => fields.map(({ field }) => field), fields.length
        ? fields.map(({ field }) => field.element) : depth === 0
            && h("p", { class: "hint" }, "This action takes no payload."))
    return {
        ...shared,
        text: () => `{${fields.map(({ key, field }) => [key, field.text()]).filter(([, text]) => text !== undefined)
            .map(([key, text]) => `${stringify(key)}:${text}`).join(",")}}`,
        set(value) {
            for (const { key, field } of fields) field.set(isTree(value) && Object.hasOwn(value, key) ? value[key]
                : undefined)
        },
    }
}

// Rows that can be added and removed; `keyOf` is there for a map.
function rows(options, itemSchema, isMap) {
    const { pointer, root, depth } = options
    let items = []
    const place = h("div", { class: "rows" })
    const adding = button(isMap ? "Add a member" : "Add an element", () => add().focus(), { class: "small" })
    const shared = group(options, () => items.map(({ field }) => field), [place, adding])
    const number = () => items.forEach((item, index) => {
        item.field.pointer = `${pointer}/${isMap ? escape(item.key.value) : index}`
    })
    function add(value, key = "") {
        const inner = field(itemSchema, { label: isMap ? "Value" : `Element ${items.length + 1}`,
            pointer: `${pointer}/${items.length}`, root, depth: depth + 1 })
        const item = { field: inner, key: h("input",
            { type: "text", value: key, id: name("key"), oninput: number, autocomplete: "off" }) }
        if (value !== undefined) inner.set(value)
        const element = h("div", { class: "row" },
            isMap && h("div", { class: "field" }, h("label", { for: item.key.id }, "Key"), item.key), inner.element,
            button("Remove", () => {
                items = items.filter(other => other !== item)
                element.remove()
                number()
                place.dispatchEvent(new Event("input", { bubbles: true }))
                adding.focus()
            }, { class: "small", "aria-label": `Remove ${isMap ? "this member" : "this element"}` }))
        items.push(item)
        place.append(element)
        number()
        return isMap ? item.key : inner.control ?? element.querySelector("input, select, textarea") ?? element
    }
    // The pointers of nested fields begin with that of their row, which moves when a row before it is removed.
    const refuse = (to, sentence) => {
        number()
        const index = typeof to === "string" ? items.findIndex(({ field }) => to === field.pointer
            || to.startsWith(field.pointer + "/")) : -1
        if (index < 0) return shared.refuse(to, sentence)
        return items[index].field.refuse(to, sentence)
    }
    return {
        ...shared, refuse,
        text: () => isMap ? `{${items.map(({ key, field }) => `${stringify(key.value)}:${field.text()
            ?? "null"}`).join(",")}}`
            : `[${items.map(({ field }) => field.text() ?? "null").join(",")}]`,
        set(value) {
            items = []
            fill(place)
            if (isMap && isTree(value)) for (const [key, inner] of Object.entries(value)) add(inner, key)
            if (!isMap && Array.isArray(value)) for (const inner of value) add(inner)
        },
    }
}

function list(options) { return rows(options, options.schema.items ?? {}, false) }
function map(options) { return rows(options, options.schema.additionalProperties, true) }

// One of several forms.
function variants(options) {
    const { schema, label, pointer, root, depth } = options
    const forms = (schema.oneOf ?? schema.anyOf).map((inner, index) => ({
        title: resolve(inner, root).title ?? [resolve(inner, root).type].flat().join(" or ") ?? `form ${index + 1}`,
        field: field(inner, { label, pointer, root, depth: depth + 1 }),
    }))
    let current = forms[0]
    const place = h("div", {}, current.field.element)
    const control = h("select", { "aria-label": `Kind of ${label}`,
        onchange: () => { current = forms[control.value]; fill(place, current.field.element) } },
        forms.map(({ title }, index) => h("option", { value: index }, title || `form ${index + 1}`)))
    return {
        element: h("div", { class: "field" }, control, place), pointer, control,
        text: () => current.field.text(), check: () => current.field.check(),
        // The first form that has the value as it is, or else the first one of all.
        set(value) {
            const index = forms.findIndex(({ field }) => {
                field.set(value)
                try { return isEqual(parse(field.text()), value) } catch { return false }
            })
            current = forms[control.value = Math.max(0, index)]
            fill(place, current.field.element)
        },
            refuse: (to, sentence) => current.field.refuse(to, sentence),
    }
}

// A member that can be left out, or be null.
function optional(inner, { label, canBeLeftOut, canBeNull }) {
    const choices = [canBeLeftOut && "left out", "given", canBeNull && "null"].filter(Boolean)
    const control = h("select", { class: "presence", "aria-label": `Whether ${label} is given` },
        choices.map(text => h("option", { value: text }, text)))
    const show = () => element.classList.toggle("absent", control.value !== "given")
    control.addEventListener("change", show)
    inner.element.addEventListener("input",
        event => { if (event.target !== control) { control.value = "given"; show() } })
    inner.element.addEventListener("click",
        event => { if (event.target.closest("button")) { control.value = "given"; show() } })
    const element = h("div", { class: "optional" }, inner.element, control)
    show()
    return {
        ...inner, element,
        get pointer() { return inner.pointer },
        set pointer(value) { inner.pointer = value },
        text: () => control.value === "left out" ? undefined : control.value === "null" ? "null" : inner.text(),
        check: () => control.value === "given" ? inner.check() : undefined,
        set(value) {
            control.value = value === undefined ? choices[0] : value === null && canBeNull ? "null" : "given"
            if (value !== undefined && value !== null) inner.set(value)
            show()
        },
    }
}
