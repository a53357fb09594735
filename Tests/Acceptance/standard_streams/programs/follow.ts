// Follows a stream as the page Clients does, until a commit has the ID "last".
//
// It prints a line for each batch of commits. Of the state it prints all that it has: at first, each time when it has
// had at least `step` batches more, and at the end.

import { stream, type LiveMode } from "@durable-streams/client"
import { isChangeEvent, MaterializedState, type StateEvent } from "@durable-streams/state"

const [url, mode, step] = process.argv.slice(2)
const live = { "catch-up": false, "long-poll": "long-poll", sse: "sse" }[mode] as LiveMode
const state = new MaterializedState()
let offset = "-1", batches = 0, printed = -Number(step), losses = 0

function take(batch: { items: readonly any[]; offset: string; upToDate: boolean }) {
    // Events that were cut off before their offset come with the offset before them, and once more.
    if (batch.offset === offset) return
    offset = batch.offset
    if (batch.items.length > 0) batches += 1
    let isLast = false
    if (url.endsWith("/commits")) {
        isLast = batch.items.some((commit) => commit.id === "last")
        console.log(JSON.stringify({ offset, items: batch.items }))
    } else {
        for (const event of batch.items) {
            if (!isChangeEvent(event)) continue
            state.apply(event)
            isLast ||= event.headers.txid === "last"
        }
        if (isLast || (batch.upToDate && batches >= printed + Number(step))) {
            printed = batches
            console.log(JSON.stringify({ offset, state: state.types.map((type) => [type, [...state.getType(type)]]) }))
        }
    }
    if (isLast) {
        console.log(JSON.stringify({ batches, losses }))
        process.exit(0)
    }
}

while (true) {
    try {
        const response = await stream<StateEvent>({
            url, offset, live, warnOnHttp: false,
            fetch: (...request) => fetch(...request).catch((error) => { losses += 1; throw error }),
        })
        if (live === false) {
            // `closed` settles before a subscriber has the last batch.
            take({ items: await response.json(), offset: response.offset, upToDate: true })
            continue
        }
        response.subscribeJson(take)
        await response.closed
    } catch (error: any) {
        if (error.status >= 400 && error.status < 500) throw error
        losses += 1
    }
    await new Promise((resume) => setTimeout(resume, 10))
}
