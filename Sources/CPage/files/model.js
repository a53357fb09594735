// What this client may see and do, and the form of the state.
import { get } from "./api.js"

export async function learn() {
    const identity = (await get("/v1")).value
    const document = (await get(identity.links.openapi)).value
    const { grant, subject } = (await get("/v1/me")).value
    const seeState = grant.read.includes("*")
    const seeEverything = seeState && grant.others
    const schemas = document.components?.schemas ?? {}
    // The document has the actions that this client may dispatch; a place is set in a domain that has these members.
    const members = type => schemas[`${type.replace("/", "-")}-payload`]?.properties ?? {}
    const set = members("document/set")
    return {
        identity, subject, state: schemas.State ?? {}, schemas,
        can: {
            dispatch: schemas.Action?.oneOf?.length > 0 || Boolean(schemas.Action?.$ref),
            set: "path" in set && "value" in set, expire: "ttl" in set, add: "value" in members("document/add"),
            remove: "path" in members("document/remove"), patch: "patch" in members("document/patch"),
            restore: "version" in members("storekeeper/restore"),
            seeState, seeEverything, bisect: seeEverything, fork: grant.fork && seeEverything,
            operate: grant.operate, backup: grant.operate && seeEverything,
        },
    }
}
