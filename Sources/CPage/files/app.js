// The page: which view is shown, what this client may see, and what the server is doing.
import * as api from "./api.js"
import { busy, button, fill, foreign, h, link, copy, save } from "./dom.js"
import { Follower } from "./follow.js"
import { count, cut, parse, visible } from "./json.js"
import { learn } from "./model.js"
import { announce, hush, say } from "./notice.js"

// A view is there where the OpenAPI document, which has what its client may do, has its route. Those outside forks
// are of the server and not of a store. One that is part of another one has no name of its own there.
const views = [
    { name: "live", title: "Live" },
    { name: "state", title: "State" },
    { name: "table", title: "Table", isPartOf: "state" },
    { name: "dispatch", title: "Dispatch", needs: "dispatch" },
    { name: "pending", title: "Pending" },
    { name: "forks", title: "Forks", needs: "fork" },
    { name: "compare", title: "Compare", needs: "fork", isPartOf: "forks" },
    { name: "bisect", title: "Bisect", needs: "bisect", isOutsideForks: true },
    { name: "status", title: "Status", needs: "operate", isOutsideForks: true },
    { name: "docs", title: "Docs", isOutsideForks: true },
    { name: "operations", title: "API" },
]

// The views with a name that this client may use.
const named = () => views.filter(({ isPartOf, needs }) => !isPartOf && (!needs || model?.can[needs]))

const main = document.getElementById("main")
const status = document.getElementById("status")
const follower = new Follower()
let current = null, shown = { view: null, fork: null }, model = null, turn = 0
// What a subject has typed and not sent, which is there again when the page begins anew.
let typed
// The place of the state that was chosen last, to which the way back to the state leads.
let place

function read() {
    const [, view = "live", text = ""] = /^#\/([a-z]*)\??(.*)$/.exec(location.hash) ?? []
    return { view: views.some(({ name }) => name === view) ? view : "live",
        parameters: Object.fromEntries(new URLSearchParams(text)) }
}

function address(view, parameters = {}, fork = shown.fork) {
    const found = Object.entries({ ...parameters, in: fork }).filter(([, value]) => value !== undefined
        && value !== null && value !== "")
    const text = new URLSearchParams(found).toString()
    return `#/${view}${text ? "?" + text : ""}`
}

function go(view, parameters, isReplacing = false) {
    const to = address(view, parameters)
    if (to === location.hash) return
    if (isReplacing) {
        history.replaceState(null, "", to)
        route()
    } else location.hash = to
}

// The view as its name and its key open it.
const entrance = (view, fork) => address(view, view === "state" ? { path: place } : {}, fork)

// Puts what the view shows into its address, without showing it again.
const remember = (view, parameters) => history.replaceState(null, "", address(view, parameters))

const context = {
    follower, go, address, remember,
    get base() { return shown.fork ? `/v1/forks/${encodeURIComponent(shown.fork)}` : "/v1" },
    get fork() { return shown.fork },
    get can() { return model.can },
    get model() { return model },
    // The types of this client with the schemas of their payloads, asked for once.
    catalogue() {
        const mine = model
        return mine.catalogue ??= api.get("/v1/actions").then(({ value }) => value.actions,
            error => { mine.catalogue = null; throw error })
    },
    async makeFork(wish) {
        if (wish.from) wish.to ??= follower.head
        const mine = turn
        const { value } = await api.request("/v1/forks", { method: "POST", body: JSON.stringify(wish) })
        if (mine === turn) location.hash = address("compare", {}, value.name)
        else say("The fork is made: it stands under Forks.", 20)
    },
    // Commits to the store in sight; undefined where a question was answered with no. It ends with its
    // signal, and when its subject signs out. `onRetry` shows why it is not yet committed.
    async dispatch(body, { base = context.base, signal, onRetry, isUndo = false, ...options } = {}) {
        onRetry ??= error => say(context.delay(error), 20)
        const signals = [typed.signedIn.signal, signal].filter(Boolean)
        if (!await confirmed(base) || !isUndo && changesAll(body) && !await isMeant("Change the whole document?",
            "The path is empty: this action changes the whole document, and not a place in it.",
            "Change the whole document")) return
        return api.post(base, body, { ...options, onRetry, signal: AbortSignal.any(signals) })
    },
    // Why an action that is under way is not yet committed.
    delay: ({ status, message }) => `${status ? `Not yet: ${visible(message)}.` : "The server does not answer."} `
        + "The action is kept and is sent again with the same key, so that it commits once.",
    confirmed,
    // What has been done to a place, and the action that takes it back.
    saved({ kind, base, fork }, place, receipt, undo) {
        const version = count(receipt.version)
        if (!receipt.changed) return say("Nothing has changed.")
        const verb = { add: "Added", append: "Added", remove: "Removed" }[kind]
        say(verb ? `${verb} ${visible(cut(place, 80))} in ${fork ? "the fork, " : ""}version ${version}.`
            : `Saved ${fork ? "in the fork " : ""}as version ${version}.`, 20, undo && (() => context.takeBack(undo, base)))
    },
    // Dispatches the action that takes something back.
    async takeBack(undo, base = context.base) {
        say("")
        try {
            const { version } = await context.dispatch(undo, { base, isUndo: true }) ?? {}
            if (version) say(`Undone with version ${count(version)}.`)
        } catch (error) {
            if (error.name === "AbortError") return
            say(error.status === 412 ? "Not undone: the place has changed since." : `Not undone: ${error.message}`)
        }
    },
    // The same place in the present.
    toPresent() { location.hash = address("state", { path: place }, null) },
    // The same history without this one action, beside the present.
    async undo(commit, control) {
        busy(true, control)
        const from = `${api.epochOf(commit.cursor)}.${commit.version - 1}`
        await context.makeFork({ from, skip: [commit.id] }).catch(error => say(error.message))
        busy(false, control)
    },
    async backup(control) {
        busy(true, control)
        try {
            const { blob } = await api.request("/v1/journal/backup", { blob: true })
            save("storekeeper.tar", blob)
        } catch (error) {
            say(error.code === "no-journal"
                ? "This server keeps its state in memory only: there is no journal to back up." : error.message)
        }
        busy(false, control)
    },
    say, announce,
}

// Whether the keys without Ctrl work.
let hasKeys = true
try { hasKeys = localStorage.getItem("keys") !== "off" } catch { /* Without storage they work after a reload. */ }
function turnKeys(isOn) {
    hasKeys = isOn
    try { localStorage.setItem("keys", isOn ? "on" : "off") } catch { /* As above. */ }
}

// Where the installation wants it, the first dispatch to the present asks.
let hasConfirmed = false
try { hasConfirmed = sessionStorage.getItem("confirmed") === "yes" } catch { /* Without storage it asks after a reload. */ }
async function confirmed(base = context.base) {
    if (hasConfirmed || base !== "/v1" || !model.identity.page_confirm) return true
    hasConfirmed = await isMeant("Change the present?", ["This is ",
        h("strong", {}, foreign(model.identity.name ?? "a Storekeeper server", 80)), " at ", location.host,
        ". What is dispatched is seen by everyone. The page asks once for this session."], "Change it")
    try { if (hasConfirmed) sessionStorage.setItem("confirmed", "yes") } catch { /* As above. */ }
    return hasConfirmed
}

// Whether a question in a dialog is answered with yes.
async function isMeant(title, text, yes) {
    const dialog = document.getElementById("confirm")
    fill(dialog, h("h2", { id: "confirm-title" }, title), h("p", {}, text),
        h("form", { method: "dialog", class: "buttons" }, h("button", { value: "no" }, "Not now"),
            h("button", { value: "yes", class: "primary" }, yes)))
    dialog.returnValue = ""
    dialog.showModal()
    await new Promise(resolve => dialog.addEventListener("close", resolve, { once: true }))
    return dialog.returnValue === "yes"
}

// Whether an action of a document, or one of several, has an empty path.
function changesAll(body) {
    let actions = []
    try { actions = [parse(body)].flat() } catch { /* The server refuses it. */ }
    return actions.some(({ type, payload } = {}) => String(type).startsWith("document/")
        && [payload, payload?.patch].flat().some(place => place?.path === ""))
}

function signOut() {
    end(typed)
    typed.signedIn = new AbortController()
    say("", 0)
    api.setToken(null)
    begin()
}

// What is under way is not sent again, and what a link has put into the form of an action is not for the next subject.
function end({ kept, signedIn }) {
    kept.forEach(form => form.close())
    signedIn.abort()
    const { view, parameters: { payload, in: fork, ...others } } = read()
    if (payload !== undefined) history.replaceState(null, "", address(view, others, fork ?? null))
}

function drawHeader() {
    const parts = document.getElementById("views")
    const hadFocus = parts.contains(document.activeElement)
    const current = views.find(({ name }) => name === shown.view)
    fill(parts, named().map(({ name, title, isOutsideForks }) => link(title,
        entrance(name, isOutsideForks ? null : shown.fork),
        name === (current.isPartOf ?? current.name) ? { "aria-current": "page" } : {})))
    if (hadFocus) parts.querySelector("[aria-current]")?.focus()
    fill(document.getElementById("tools"),
        shown.fork && h("span", { class: "fork" }, "In fork ", h("bdi", {}, shown.fork), ", not the present ",
            link("leave", address(shown.view === "compare" ? "forks" : shown.view, {}, null))),
        button("Copy address", event => copy(location.href, event.currentTarget), { class: "small" }),
        button("?", () => help(), { class: "small", "aria-label": "Keys" }),
        api.hasToken() && button(h("span", {}, "Sign out ", foreign(model.subject, 24)), signOut, { class: "small" }))
    fill(document.getElementById("place"), h("strong", {}, foreign(model.identity.name ?? "Storekeeper", 80)),
        h("span", { class: "hint" }, location.host))
    document.title = `${current.title} · ${model.identity.name ?? "Storekeeper"}`
}

// The link that led to a view is gone with the view before: its heading has the focus, or the place around it.
function toBeginning() {
    const heading = main.querySelector("h2")
    heading?.setAttribute("tabindex", "-1")
    heading?.focus()
    if (document.activeElement !== heading) main.focus()
}

// A module that is fetched when it is needed; where the server is away, when it is back.
function load(name, isAway = () => {}) {
    return import(`./${name}.js`).catch(async () => {
        isAway()
        await api.get("/v1")
        return import(`./${name}.js`)
    })
}

async function route() {
    if (!model) return
    const { view, parameters } = read()
    const mine = ++turn
    const found = views.find(({ name }) => name === view)
    const fork = found.isOutsideForks ? null : parameters.in ?? null
    delete parameters.in
    if (view === "state" || view === "table") place = parameters.path
    // No other name is put into a path, which a browser could fold into the path of the present.
    if (fork !== null && !/^f[0-9a-z]{1,13}$/.test(fork)) {
        current?.close()
        current = null
        shown = { view, fork: null }
        drawHeader()
        fill(main, h("div", { class: "empty" },
            h("p", { class: "error", role: "alert" }, "There is no fork of this name."), link("To the forks", "#/forks")))
        return
    }
    const isSame = current && view === shown.view && fork === shown.fork
    const hadFocus = main.contains(document.activeElement)
    hush()
    shown = { view, fork }
    drawHeader()
    try {
        if (isSame) return await current.update(parameters)
        current?.close()
        current = null
        if (found.needs && !model.can[found.needs]) {
            fill(main, h("p", { class: "empty" }, "This view needs a grant that this token does not have. The views above are those that it may use."))
            return
        }
        const { open } = await load(view, () => mine === turn
            && fill(main, h("p", { class: "empty" }, "The server does not answer. The view opens when it does.")))
        if (mine !== turn) return
        // These two say themselves from which cursor on, and with which filter, they follow.
        if (view !== "live" && view !== "state") follower.aim(context.base).catch(() => {})
        // A view that is left before it is there fills what is no longer shown.
        const container = h("div", { class: "view" }, h("p", { class: "empty" }, "…"))
        fill(main, container)
        const opened = await open(container, parameters, context)
        if (mine !== turn) return opened.close()
        current = opened
        if (hadFocus && !main.contains(document.activeElement)) toBeginning()
    } catch (error) {
        if (error.status === 401 || error.name === "AbortError" || mine !== turn) return
        current?.close()
        current = null
        fill(main, h("div", { class: "empty" }, h("p", { class: "error", role: "alert" },
            shown.fork && error.status === 404
            ? "This fork is no longer there: a fork ends after some minutes." : error.message),
        shown.fork ? link("To the forks", address("forks", {}, null)) : button("Try again", () => route())))
    }
}

function clear() {
    follower.stop()
    model = null
    current?.close()
    current = null
    place = undefined
    turn++
    for (const id of ["views", "tools", "status"]) fill(document.getElementById(id))
    fill(document.getElementById("place"), "Storekeeper")
    document.title = "Storekeeper"
}

// Asks for a credential where the server wants one; until then nothing is fetched and nothing is named.
async function begin() {
    clear()
    try {
        model = await learn()
        if (!typed || typed.subject !== model.subject) {
            if (typed) end(typed)
            typed = { subject: model.subject, kept: new Map(), drafts: new Map(), signedIn: new AbortController() }
        }
        Object.assign(model, { kept: typed.kept, drafts: typed.drafts })
    } catch (error) {
        if (error.status === 401) return
        fill(main, h("div", { class: "empty" }, h("p", { class: "error", role: "alert" }, error.message),
            button("Try again", () => begin())))
        return
    }
    drawStatus()
    await route()
}

api.events.addEventListener("unauthorized", async () => {
    const had = api.hasToken()
    api.setToken(null)
    const wasOpen = model !== null
    clear()
    const { ask } = await import("./access.js")
    ask(main, had ? wasOpen ? "The server no longer knows this token." : "The server does not know this token." : "",
        token => { api.setToken(token); begin() })
})

function drawStatus() {
    const isGone = api.isGone()
    document.body.classList.toggle("gone", isGone)
    status.textContent = isGone ? "The server does not answer" : follower.failure
        ? "Not followed: the page asks again" : follower.head
        ? `Version ${count(api.versionOf(follower.head))}${shown.fork ? " of the fork" : ""}` : ""
}

api.events.addEventListener("gone", () => {
    drawStatus()
    say("The server does not answer. The page asks again until it does; what you have typed stays.", 0)
})
api.events.addEventListener("busy", ({ detail }) => say(`${visible(detail)}. The page asks again.`))
api.events.addEventListener("back", ({ detail }) => {
    drawStatus()
    say(`The server is back after ${detail}; the page goes on where it was.`)
})
for (const type of ["aimed", "commits", "jump", "head"]) follower.addEventListener(type, drawStatus)
follower.addEventListener("reset", ({ detail }) => {
    follower.stop()
    say(detail.reason === "cursor-expired"
        ? "The server no longer keeps the commits that this page was at; the page begins again with the present."
        : "The server has a new history since it was started; what was shown is no longer there.", 20)
    begin()
})
follower.addEventListener("failed", ({ detail }) => {
    // A filter that names nothing is said beside the filter.
    if (detail.status !== 400) say(visible(detail.message), 20)
    drawStatus()
})
follower.addEventListener("lost", () => {
    follower.stop()
    if (shown.fork) {
        say("This fork is no longer there: a fork ends after some minutes.", 20)
        location.hash = address("forks", {}, null)
    }
})

async function help() {
    const { showHelp } = await load("help")
    showHelp(named(), hasKeys, turnKeys)
}

document.addEventListener("keydown", event => {
    if (event.ctrlKey || event.metaKey || event.altKey || !model || !hasKeys) return
    if (event.target.closest("input, textarea, select, dialog")) return
    const shortcuts = named()
    const index = Number(event.key) - 1
    if (event.key === "?") help()
    else if (shortcuts[index]) location.hash = entrance(shortcuts[index].name)
    else if (!current?.keys?.(event)) return
    event.preventDefault()
})

// The address is that of the view, so the link to the content moves the focus only.
document.querySelector(".skip").addEventListener("click", event => {
    event.preventDefault()
    main.focus()
})
addEventListener("hashchange", () => route())
// The browser asks before what is typed and not saved goes with the page.
addEventListener("beforeunload", event => { if (typed?.kept.size > 0) event.preventDefault() })
begin()
