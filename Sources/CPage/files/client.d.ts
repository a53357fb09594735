// The types of client.js. Those at the end are of this server, as the token of the request sees it.

/** A refusal, with what the server's problem document says. */
export declare class Problem extends Error {
    /** The status of the answer; 0 where there was none, and for a redirect in a browser, which does not tell it. */
    readonly status: number
    /** What happened, for programs; `no-answer`, `redirected` and `status-<n>` are of the client. */
    readonly code: string
    /** What happened, for people. */
    readonly detail: string
    /** The parts at fault: JSON Pointers into the action. */
    readonly errors: { pointer: string; detail: string }[]
    /** The whole problem document. */
    readonly document: { [member: string]: unknown }
    /** After how many seconds the server wants to be asked again. */
    readonly retryAfter: number
    /** Whether the same request can succeed later. */
    readonly isPassing: boolean
}

/**
 * Connects to a server by its URL, or to a store below it, such as `http://localhost:8080/v1/stores/tasks`.
 *
 * The types are those of the whole server; for another store, give those of its own client.d.ts.
 */
export declare function connect(url: string | URL, options?: ConnectOptions): Store

export interface ConnectOptions {
    /**
     * The token, or what makes one for each request; what it throws ends the call, or the subscriptions. After a 401 the
     * store asks once more, for a token that was replaced meanwhile, or is new.
     */
    token?: string | (() => string | Promise<string>)
    /** Called when the server begins or ceases to answer what follows it; the store goes on by itself. */
    onConnection?: (isThere: boolean, error?: unknown) => void
    /**
     * Reads the JSON of an answer, for example with BigInts, which keep all digits; otherwise `JSON.parse` does. A BigInt in
     * an action is sent as a number.
     */
    parse?: (text: string) => unknown
}

export interface Store {
    /** The value at a path now; undefined where nothing is there, or the token may not see it. */
    state(): Promise<State>
    state<Path extends string>(path: Known<Path>, options?: RequestOptions): Promise<Value<Path>>

    /** The same with the cursor at which the value is there: the `since` of `changes` for what follows it. */
    snapshot(): Promise<{ value: State; cursor: string }>
    snapshot<Path extends string>(
        path: Known<Path>, options?: RequestOptions,
    ): Promise<{ value: Value<Path>; cursor: string }>

    /**
     * Calls `f` with the value at a path, and with newer ones. When the value changes fast, some are left out; for each
     * change: `changes`.
     *
     * `failed` gets the problem that ends it, as when the token is revoked; without it, the problem is thrown uncaught.
     *
     * @returns a function that ends it.
     */
    subscribe<Path extends string>(
        path: Known<Path>, f: (value: Value<Path>, cursor: string) => void, failed?: (error: unknown) => void,
    ): () => void

    /** The same as a loop: `for await (const value of store.values("/counter"))`. */
    values<Path extends string>(
        path: Known<Path>, options?: { signal?: AbortSignal },
    ): AsyncGenerator<Value<Path>, void>

    /** The newest value of a path with a subscription: the same object, as long as nothing in it changes. */
    latest<Path extends string>(path: Known<Path>): Value<Path> | undefined

    /** A view for some parameters: `store.view("open", { owner: "ann" })`. A parameter that is undefined or null is left out. */
    view<Name extends keyof Views & string>(
        name: Name,
        ...rest: Name extends keyof ViewParameters
            ? {} extends ViewParameters[Name]
                ? [parameters?: ViewParameters[Name]]
                : [parameters: ViewParameters[Name]]
            : []
    ): Live<Views[Name]>

    /** A query on the members of the value at a path: `store.query("/tasks/entities", { filter: "@.done == false" })`. */
    query<Path extends string>(path: Known<Path>, query?: Query): Live<Members<MemberOf<Value<Path>>>>

    /**
     * Each commit behind a cursor, once and in order, through restarts of the server and of the connection.
     *
     * Where the commits are gone, a {@link Reset} comes in their place. `cursor` of the last item is where another
     * loop goes on.
     */
    changes(options?: ChangesOptions): AsyncGenerator<Commit | Reset, void>

    /**
     * Dispatches an action until the server answers; it commits once, however often it is sent.
     *
     * The actions of a store are sent one after the other, and commit in the order of the calls. One that is refused, or
     * given up after its `seconds` or by its `signal`, does not keep back those behind it.
     */
    dispatch<Type extends keyof Actions>(
        type: Type,
        ...rest: {} extends Actions[Type]
            ? [payload?: Actions[Type], options?: DispatchOptions]
            : [payload: Actions[Type], options?: DispatchOptions]
    ): Promise<Receipt>

    /**
     * Dispatches several actions as one commit: all of them commit, or none does. The rest is as with `dispatch`.
     *
     * The `errors` of a refusal are pointers into the list, as `/1/payload/id`.
     */
    dispatchAll(
        actions: readonly Dispatched[], options?: Pick<DispatchOptions, "signal" | "seconds" | "key">,
    ): Promise<Receipt>

    /** Any request below the store, as `/actions/order-7`. It can be sent twice: a `POST` needs an `Idempotency-Key`. */
    request(
        path: string,
        options?: RequestOptions & {
            method?: string
            headers?: HeadersInit
            body?: string
            /** Called with each problem after which the request is sent again; its status is 0 where there is no answer. */
            onRetry?: (problem: Problem) => void
            /** Whether the JSON of an answer is what was asked for; what is not, as of a proxy, is no answer. */
            isAnswer?: (json: unknown) => boolean
        },
    ): Promise<{ status: number; headers: Headers; json: unknown }>

    /** Ends everything: loops end, subscriptions are silent, requests are aborted. */
    close(): void
}

/** A value that the server computes, now and whenever it changes. */
export interface Live<Found> extends AsyncIterable<Found> {
    /** The value now; undefined where nothing is there, or the token may not see it. */
    value(options?: RequestOptions): Promise<Found | undefined>
    /** As `subscribe` of the store. */
    subscribe(f: (value: Found | undefined, cursor: string) => void, failed?: (error: unknown) => void): () => void
    /** As `values` of the store. */
    values(options?: { signal?: AbortSignal }): AsyncGenerator<Found, void>
    /** The newest value where there is a subscription. */
    latest(): Found | undefined
}

/** Which members, in which order, and what of each. */
export interface Query {
    /** A logical expression of RFC 9535, in which `@` is the member. */
    filter?: string
    /** JSON Pointers into the member, `-` before one for descending order. */
    sort?: string | string[]
    limit?: number
    offset?: number
    /** JSON Pointers into the member: of each, these places only. */
    fields?: string | string[]
    /** Whether the answer says how many members the filter lets through. */
    count?: boolean
}

/** The answer to a query. */
export interface Members<Member> {
    members: { key: string; value: Member }[]
    count?: number
    next?: string
}

type MemberOf<Whole> = unknown extends Whole ? unknown
    : Whole extends readonly (infer Element)[] ? Element
    : Whole extends object ? Whole[keyof Whole]
    : unknown

export interface RequestOptions {
    signal?: AbortSignal
    /** For how long after the call a request without an answer is sent again: 120. An answer that has begun may go on. */
    seconds?: number
}

export interface DispatchOptions extends RequestOptions {
    /** The name of the action: `/v1/actions/<id>` finds its commit. */
    id?: string
    /** What is recorded with the action. */
    meta?: { [member: string]: unknown }
    /** What has to be in the state before the action, or where nothing may be, or it is refused as `precondition-failed`. */
    expect?: ({ path: string; value: unknown } | { path: string; absent: true } | { path: string; present: true })[]
    /** Dispatches the action later: so many seconds after the commit, or at a time with its zone. */
    schedule?: { after: number; name?: string } | { at: string; name?: string }
    /** The name of the intent: the same key commits once, also from another process. At random where it is missing. */
    key?: string
}

/** An action of several. */
export type Dispatched = {
    [Type in keyof Actions & string]:
        & { type: Type }
        & ({} extends Actions[Type] ? { payload?: Actions[Type] } : { payload: Actions[Type] })
        & Pick<DispatchOptions, "id" | "meta" | "expect" | "schedule">
}[keyof Actions & string]

export interface ChangesOptions {
    /** A cursor, `oldest`, or `now`: when the loop begins. */
    since?: string
    /** Only commits that change this part of the state. */
    path?: string
    /** Only commits with an action of one of these types; a `*` at the end stands for any ending. */
    types?: ActionType | ActionType[]
    /** Only commits of this subject. */
    by?: string
    signal?: AbortSignal
}

type ActionType = keyof Actions | `${string}*`

/** What became of an action: it has a commit, unless a middleware has swallowed it. */
export type Receipt = Committed | Swallowed

export interface Swallowed {
    committed: false
    changed: false
    cursor?: undefined
    version?: undefined
    id?: undefined
    name?: undefined
    due?: undefined
    scheduled?: undefined
}

export interface Committed {
    committed?: undefined
    cursor: string
    version: number
    id: string
    changed: boolean
    /** The name and the time of what was scheduled. */
    name?: string
    due?: string
    /** The names and the times of what an array has scheduled. */
    scheduled?: { name: string; due: string }[]
}

export type RecordedAction = { type: string; payload?: unknown; id?: string; meta?: { [member: string]: unknown } }

export interface Commit {
    reset?: undefined
    version: number
    cursor: string
    time: string
    id: string
    /** Null where the token may not see it. */
    action: RecordedAction | RecordedAction[] | null
    patch: { op: "add" | "remove" | "replace"; path: string; value?: unknown }[]
    by?: string
    cause?: string
    root?: string
    traceparent?: string
}

/** The commits behind the cursor are gone: the state is as it is at the new one. */
export interface Reset {
    reset: true
    reason: "cursor-lost" | "cursor-expired"
    /** What the token sees of it. */
    state: Exclude<State, undefined>
    cursor: string
}

/** A path where the state can have a value: a JSON Pointer, or `view:` and the name of a view. */
export type Known<Path extends string> =
    | ([Value<Path>] extends [never] ? never : Path)
    // What an editor offers.
    | "" | `/${keyof NonNullable<State> & string}` | `view:${keyof Views & string}`

/** The type of the value at a path; `unknown` below what is declared. */
export type Value<Path extends string> = Path extends `view:${infer Name}`
    ? Name extends keyof Views ? Views[Name] : string extends Name ? unknown : never
    : At<State, Path>

type At<Whole, Path extends string> = string extends Path ? unknown
    : Path extends "" ? Whole
    : Path extends `/${infer Token}/${infer Rest}` ? Inside<Whole, Key<Token>, `/${Rest}`>
    : Path extends `/${infer Token}` ? Inside<Whole, Key<Token>, "">
    : never

type Inside<Whole, Token extends string, Rest extends string> = unknown extends Whole ? unknown
    : null extends Whole ? Possible<Inside<Exclude<Whole, null>, Token, Rest>>
    : Whole extends readonly (infer Element)[] ? Possible<At<Element, Rest>>
    : Whole extends object ? Member<Whole, Token, Rest>
    : never

type Member<Whole, Token extends string, Rest extends string> = Token extends Names<Whole> & keyof Whole
    ? {} extends Pick<Whole, Token> ? Possible<At<Exclude<Whole[Token], undefined>, Rest>> : At<Whole[Token], Rest>
    : string extends keyof Whole ? Possible<At<Whole[string & keyof Whole], Rest>>
    : never

/** The names of an object's declared members, where it can have others as well. */
type Names<Whole> = keyof {
    [Name in keyof Whole as string extends Name ? never : number extends Name ? never : Name]: true
}

type Possible<Found> = [Found] extends [never] ? never : Found | undefined

type Key<Token extends string> = Token extends `${infer Before}~1${infer Behind}` ? Key<`${Before}/${Behind}`> : Token
