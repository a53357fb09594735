// The operations of the OpenAPI document: parameters, answers, problems, the curl line, and the answer to a GET.
import { curl, get, query, request } from "./api.js"
import { busy, copyable, fill, h, isBusy, labelled, link, quote } from "./dom.js"
import { cut, plural } from "./json.js"
import { parse, render } from "./markdown.js"
import { picker } from "./picker.js"

const largest = 4_000_000, longest = 20_000

/** Tags with the quotes that their field needs. */
const tags = text => text.split(",").map(tag => tag.trim())
    .map(tag => /^(W\/)?".*"$|^\*$/.test(tag) ? tag : `"${tag}"`).join(", ")

export async function open(main, parameters, context) {
    const { value: document } = await get(`${context.base}/openapi.json`)
    const found = value => value?.$ref
        ? found(value.$ref.split("/").slice(1).reduce((part, name) => part[name], document)) : value
    const text = value => render(parse(value ?? ""))
    const operations = Object.entries(document.paths).flatMap(([path, item]) =>
        Object.entries(item).filter(([method]) => method !== "head").map(([method, operation]) => ({
            ...operation, path, methods: [method.toUpperCase(), ...method === "get" && item.head ? ["HEAD"] : []],
            parameters: (operation.parameters ?? []).map(found),
        })))
    // The texts in which an operation is found: by its name first.
    for (const each of operations) {
        each.name = `${each.methods} ${each.path} ${each.summary}`.toLowerCase()
        each.text = [each.name, each.description, ...each.parameters.flatMap(({ name, description }) => [name, description])]
            .join(" ").toLowerCase()
    }
    let control = null, current = null, typing
    const list = h("ul", { class: "types" }),
        finder = picker("Find an operation", list, () => context.announce(plural(draw(), "operation")))
    const side = h("section", { class: "side docs", "aria-label": "The operation" })
    const split = h("div", { class: "split narrow" }, h("section", { class: "column", "aria-label": "Operations" },
        h("h2", { class: "aside" }, "Operations"), finder.field, list), side)

    function draw() {
        const words = finder.words()
        const isIn = text => words.every(word => text.includes(word))
        const hits = operations.filter(({ text }) => isIn(text)).sort((one, other) => isIn(other.name) - isIn(one.name))
        fill(list, hits.map(({ operationId, methods, path, summary }) => h("li", {},
            link([h("span", { class: "path" }, `${methods[0]} ${path}`), h("span", { class: "hint" }, summary)],
                context.address("operations", { id: operationId }),
                operationId === current ? { "aria-current": "true" } : {}))),
        hits.length === 0 && h("li", { class: "hint" }, "No operation has all these words."))
        return hits.length
    }

    /** A parameter with its field; an empty field sends nothing. */
    function field(parameter, changed) {
        const { name, in: place, required, description, example } = parameter
        const schema = found(parameter.schema) ?? {}, isFlag = schema.type === "boolean"
        const input = isFlag ? h("select", { onchange: changed }, h("option", { value: "" }, "no"),
            h("option", { value: "true" }, "yes"))
            : h("input", { type: "text", autocomplete: "off", spellcheck: "false", oninput: changed,
                value: place === "path" ? example ?? schema.example ?? "" : "" })
        const about = [place, required && "required", schema.enum?.join(", ")].filter(Boolean).join("; ")
        const element = h("div", {}, labelled(name, input, about),
            h("div", { id: `${input.id}-about` }, text(description)))
        input.setAttribute("aria-describedby", `${input.id}-about`)
        return { parameter, input, element }
    }

    const example = media => media?.example ?? Object.values(media?.examples ?? {}).map(found)[0]?.value

    function show(next) {
        control?.abort()
        clearTimeout(typing)
        split.classList.toggle("has-detail", Boolean(next.id))
        const operation = operations.find(({ operationId }) => operationId === (next.id ?? operations[0].operationId))
        current = operation?.operationId
        draw()
        if (!operation) {
            fill(side, h("div", { class: "detail" },
                h("p", { class: "error", role: "alert" }, "This client has no such operation.")))
            return
        }
        const { methods, path, summary, description, responses } = operation
        const all = Object.entries(responses).map(([status, response]) => [status, found(response)])
        const answers = all.filter(([status]) => /^[123]/.test(status))
        const problems = all.filter(([status]) => !/^[123]/.test(status))
        const types = Object.keys(found(responses["200"])?.content ?? {})
        const isText = types.length === 0 || types.some(type => /json|^text\//.test(type))
        const isRead = methods[0] === "GET", canSend = isRead && isText
        const line = h("div"), answer = h("div", { class: "outcome", role: "status" })
        const fields = operation.parameters.map(parameter => field(parameter, changed))
        const body = found(operation.requestBody)
        // The value that the page has got last: its address without a wait, and its tag.
        let got = {}

        /** The path with its query, and the header fields. A wait that names nothing waits for another value than `got`. */
        function asked() {
            const given = fields.map(({ parameter, input }) => [parameter, input.value])
                .filter(([, value]) => value !== "")
            const isGiven = name => given.some(([each]) => each.name === name)
            const start = given.filter(([each]) => each.in === "path").reduce((path, [{ name }, value]) =>
                path.replace(`{${name}}`, value.split("/").map(encodeURIComponent).join("/")), path)
            const address = parameters => start + query(Object.fromEntries(parameters
                .filter(([each]) => each.in === "query").map(([{ name }, value]) => [name, value])))
            const headers = Object.fromEntries(given.filter(([each]) => each.in === "header")
                .map(([{ name }, value]) => [name, /^If-(None-)?Match$/.test(name) ? tags(value) : value]))
            const bare = address(given.filter(([{ name }]) => name !== "wait"))
            const needsTag = isGiven("wait") && operation.parameters.some(({ name }) => name === "If-None-Match")
                && !["If-None-Match", "until", "until-exists", "at-least"].some(isGiven)
            if (needsTag && got.address === bare && got.etag) headers["If-None-Match"] = got.etag
            return { target: address(given), headers, bare, needsTag }
        }

        /** Gets the tag that a wait needs, unless the page has it. */
        async function getTag() {
            const { bare, needsTag } = asked()
            if (isBusy(sender)) return
            if (!needsTag || got.address === bare) return
            const { etag } = await request(bare, { method: "HEAD" }).catch(() => ({}))
            got = { address: bare, etag }
            drawLine()
        }

        function changed() {
            drawLine()
            clearTimeout(typing)
            typing = setTimeout(getTag, 300)
        }

        /** Draws the line, once every field that has to be filled is. */
        function drawLine() {
            const missing = fields.filter(({ parameter, input }) => parameter.required && input.value === "")
                .map(({ parameter }) => parameter.name)
            busy(missing.length > 0, sender)
            if (missing.length > 0) {
                fill(line, h("p", { class: "hint" }, `The line comes when ${missing.join(" and ")} has a value.`))
                return
            }
            const { target, headers } = asked()
            const options = Object.entries(headers).map(([name, value]) => ` -H ${quote(`${name}: ${value}`)}`).join("")
            const data = body ? ` --json ${quote(JSON.stringify(example(body.content["application/json"]) ?? {}))}` : ""
            const method = isRead || body ? "" : ` -X ${methods[0]}`
            fill(line, copyable("This request", curl(target, method + (isText ? "" : " -OJ") + options + data)))
        }

        async function send() {
            if (control && !control.signal.aborted) return control.abort()
            const mine = control = new AbortController(), { signal } = mine
            sender.textContent = "Stop"
            fill(answer, h("p", { class: "hint" }, "Waiting for the answer…"))
            let lines, content
            try {
                await getTag()
                const { target, headers, bare } = asked()
                const { status, cursor, etag, blob, isTooLarge } = await request(target,
                    { headers, signal, blob: true, largest })
                if (etag) got = { address: bare, etag }
                lines = [`${status}`, cursor && `State-Cursor: ${cursor}`, etag && `ETag: ${etag}`]
                content = isTooLarge ? "The answer is too large to be shown." : blob ? await blob.text() : ""
            } catch (error) {
                if (signal.aborted) lines = ["Stopped"]
                else if (error.body) [lines, content] = [[`${error.status}`], JSON.stringify(error.body, null, 2)]
                else lines = [error.message]
            }
            if (mine === control) control = null
            if (!sender.isConnected) return
            sender.textContent = "Send"
            drawLine()
            fill(answer, h("p", { class: "path" }, lines.filter(Boolean).join(", ")),
                content && h("pre", { class: "json", tabindex: "0" }, cut(content, longest)))
        }

        const sender = h("button", { class: "primary" }, "Send")
        fill(side, h("div", { class: "detail" },
            h("a", { class: "back", href: context.address("operations") }, "To the operations"),
            h("h2", { tabindex: "-1" }, `${methods.join(", ")} ${path}`),
            h("p", {}, h("strong", {}, summary)), text(description),
            h("form", { novalidate: true, onsubmit: event => { event.preventDefault(); if (canSend && (control || !isBusy(sender))) send() } },
                line, canSend && h("div", { class: "buttons" }, sender), answer,
                fields.length > 0 && [h("h3", {}, "Parameters"), h("div", { class: "rows" },
                    fields.map(({ element }) => element))]),
            h("h3", {}, "Answers"), answers.map(([status, { description, content }]) =>
                [h("h4", {}, `${status} ${Object.keys(content ?? {}).join(", ")}`), text(description)]),
            h("h3", {}, "Problems"), problems.map(([status, { description }]) =>
                [h("h4", {}, status), text(description)])))
        drawLine()
    }

    fill(main, split)
    show(parameters)
    return { update(next) { show(next); side.querySelector("h2")?.focus() }, keys: finder.keys,
        close() { control?.abort(); clearTimeout(typing) } }
}
