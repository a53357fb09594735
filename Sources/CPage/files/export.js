// Commits as files: JSON lines, and a script of curl calls that makes the same state on an empty server.
import { epochOf, get, query, versionOf } from "./api.js"
import { save } from "./dom.js"
import { keeps } from "./history.js"
import { stringify } from "./json.js"

const COMMITS_MAX = 100_000

const isOwn = commit => [commit.action].flat().some(action => action?.type.startsWith("storekeeper/"))

// One call. The text stands in a here-document, which takes any length and any character; the key makes a second run
// harmless.
export function scriptOf(commit, address) {
    // Of two words: zsh splits none.
    return `curl -sS --fail-with-body \${TOKEN:+-H} \${TOKEN:+"Authorization: Bearer $TOKEN"} -H 'Idempotency-Key: "${commit.cursor}"' `
        + `--json @- ${address}/actions <<'END'\n${stringify(commit.action)}\nEND`
}

const HEAD = `#!/bin/sh
# Dispatches the actions of an export again, in their order:  sh commits.sh http://localhost:8080
# What the server makes by itself after an action, and what this client may not see, stands here as a comment.
set -e
SERVER=\${1:?the address of an empty server, such as http://localhost:8080}
`

function scriptLine(commit) {
    const types = [commit.action].flat().map(action => action?.type
        ?? "not visible").join(", ").replaceAll(/[\r\n]/g, " ")
    if (commit.action === null || commit.cause
        || isOwn(commit)) return `# ${commit.version} ${types}${commit.cause ? ", a follow-up" : ""}\n`
    return `${scriptOf(commit, '"$SERVER"/v1')}\n`
}

// Writes the commits that `lines` brings, oldest first.
async function write(kind, lines) {
    const parts = kind === "jsonl" ? [] : [HEAD]
    for await (const commit of lines) parts.push(kind === "jsonl" ? stringify(commit) + "\n" : scriptLine(commit))
    save(kind === "jsonl" ? "commits.jsonl" : "commits.sh", parts,
        kind === "jsonl" ? "application/x-ndjson" : "text/x-shellscript")
    return parts.length - (kind === "jsonl" ? 0 : 1)
}

async function* chosen(base, versions, epoch) {
    for (const version of [...versions].sort((one, other) => one - other)) {
        const { value } = await get(`${base}/changes${query({ since: `${epoch}.${version - 1}`, limit: 1 })}`)
        yield* value.changes
    }
}

async function* all(wanted, told) {
    const { base, filter, head } = wanted
    let since = "oldest", found = 0
    while (found < COMMITS_MAX) {
        const { value } = await get(`${base}/changes${query({ since, limit: 1000, ...filter })}`)
        const commits = value.changes.filter(commit => commit.version <= versionOf(head) && keeps(commit, wanted))
        found += commits.length
        yield* commits
        since = value.next
        told(found)
        if (!value.more || versionOf(since) >= versionOf(head)) return
    }
    wanted.isCut = true
}

// Exports the chosen versions, or all commits that the filter keeps; `wanted.isCut` says that these were too many.
export function exportCommits(kind, wanted, told) {
    const { base, versions, head } = wanted
    return write(kind, versions.size ? chosen(base, versions, epochOf(head)) : all(wanted, told))
}
