// What a model's file finds in Storekeeper, for editors: beside the file, with `// @ts-check` in its first line.

declare module 'storekeeper' {
    /** What the server knows of an action; a replay sees the same. */
    export interface Meta {
        /** The client's own ID, which another action can have, too; otherwise that of the commit. */
        id: string
        /** The time of the commit, such as 2030-01-31T12:00:00.000Z. */
        time: string
        /** Who has sent it; undefined where the server knows nobody. */
        by?: string
    }

    export interface Action<Payload = any> { type: string; payload: Payload; meta: Meta }

    /**
     * Refuses the action: nothing changes, and the client gets 409 with the code and the sentence.
     *
     * The code has a dot, such as `todos.full`, and the sentence has at most 1,000 characters; `pointer` is one into the payload.
     */
    export function reject(code: string, sentence: string, pointer?: string): never

    /**
     * Dispatches an action later, as the sender of this one; the same name again replaces it.
     *
     * `after` is in seconds, and 0 is right behind this action; `at` is a time such as `2030-01-31T12:00:00Z`. It is part of
     * the commit: an action that is refused schedules nothing. What schedules itself comes once a second in the mean.
     */
    export function schedule(
        action: { type: string, payload?: unknown },
        when: { after: number, name?: string } | { at: string, name?: string }): void

    /** Takes back what an action of the same sender has scheduled under a name, if it is still to come. */
    export function unschedule(name: string): void

    /**
     * A value that clients read at /v1/views/<name>, and await as a part of the state.
     *
     * `reads` names the members of the state that the view gets: it is computed again after their changes only. A selector of
     * a slice, and one that createSelector makes of such, says it by itself.
     */
    export function view<State = any>(name: string, select: (state: State) => unknown, options?: { reads?: string[] }): void

    /**
     * A view with parameters, which clients give in the address: /v1/views/open?owner=ann.
     *
     * Their schema is one of an object, in which each property is a string, a number, an integer or a boolean. Where the
     * function has a third parameter, it gets the client's subject, and nobody gets a value that was computed for another one.
     */
    export function view<State = any, Parameters = any>(
        name: string, select: (state: State, parameters: Parameters, context: ViewContext) => unknown,
        options?: { reads?: string[]; parameters?: { readonly [keyword: string]: any }; subject?: boolean },
    ): void

    export interface ViewContext {
        /** The client's subject; undefined where the server knows nobody. */
        subject?: string
    }
}

declare module '@reduxjs/toolkit' {
    import type { Action } from 'storekeeper'
    /** A JSON Schema, draft 7. */
    export type Schema = boolean | { readonly [keyword: string]: any }
    export type Reducer<State = any> = (state: State | undefined, action: any) => State
    export type CaseReducer<State, Payload = any> = (state: State, action: Action<Payload>) => State | void | undefined
    export interface ActionCreator { (payload?: any): { type: string; payload: any }; type: string; match(action: any): boolean }
    type Matcher = ((action: any) => boolean) | { match(action: any): boolean }

    export interface Builder<State> {
        addCase(action: string | ActionCreator, reducer: CaseReducer<State>): Builder<State>
        addMatcher(matcher: Matcher, reducer: CaseReducer<State>): Builder<State>
        addDefaultCase(reducer: CaseReducer<State>): Builder<State>
    }

    export interface Slice<State> {
        name: string
        reducerPath: string
        reducer: Reducer<State>
        actions: { [name: string]: ActionCreator }
        caseReducers: { [name: string]: CaseReducer<State> }
        selectors: { [name: string]: (state: any, ...rest: any[]) => any }
        selectSlice(state: any): State
        getSelectors(select?: (state: any) => State): { [name: string]: (state: any, ...rest: any[]) => any }
        getInitialState(): State
    }

    /** A part of the state with its reducers: action `add` of the slice `counter` is `counter/add`. */
    export function createSlice<State = any>(slice: {
        name: string
        initialState: State | (() => State)
        /**
         * A reducer with the schema of its payload; a plain function takes any JSON object. An internal one takes what
         * reducers schedule, and hooks that may by its name, and is for no client.
         */
        reducers?: { [name: string]: CaseReducer<State> | { payload?: Schema; internal?: boolean; reducer: CaseReducer<State> } }
            | ((create: { reducer(reducer: CaseReducer<State>): CaseReducer<State> }) => { [name: string]: CaseReducer<State> })
        extraReducers?: (builder: Builder<State>) => void
        selectors?: { [name: string]: (state: State, ...rest: any[]) => any }
        /** The schema of the slice's state, which is checked after each action that changes it. */
        schema?: Schema
        reducerPath?: string
    }): Slice<State>
    export function createReducer<State>(initialState: State | (() => State), build: (builder: Builder<State>) => void): Reducer<State>
    export function createAction(type: string, options?: { payload?: Schema; internal?: boolean }): ActionCreator
    export function combineReducers(reducers: { [name: string]: Reducer }): Reducer
    export function combineSlices(...parts: (Slice<any> | { [name: string]: Reducer })[]): Reducer
    export function configureStore(options: { reducer: Reducer | { [name: string]: Reducer } }): unknown
    export function createSelector(...parts: any[]): (...values: any[]) => any
    export function isAnyOf(...matchers: Matcher[]): (action: any) => boolean
    export function isAllOf(...matchers: Matcher[]): (action: any) => boolean
    export function current<Value>(draft: Value): Value
    export function original<Value>(draft: Value): Value | undefined
    export function isDraft(value: any): boolean
    export function produce(...parts: any[]): any
    export { produce as createNextState }

    export interface EntityState<Entity = any> { ids: (string | number)[]; entities: { [id: string]: Entity } }
    type Verb<Argument> = (state: any, argument: Argument | Action<Argument>) => any
    export interface EntityAdapter<Entity> {
        addOne: Verb<Entity>; addMany: Verb<any>; setOne: Verb<Entity>; setMany: Verb<any>; setAll: Verb<any>
        removeOne: Verb<any>; removeMany: Verb<any>; removeAll(state: any): any
        updateOne: Verb<any>; updateMany: Verb<any>; upsertOne: Verb<any>; upsertMany: Verb<any>
        getInitialState(others?: object, entities?: any): EntityState<Entity> & { [name: string]: any }
        getSelectors(select?: (state: any) => any): {
            selectIds(state: any): (string | number)[]
            selectEntities(state: any): { [id: string]: Entity }
            selectAll(state: any): Entity[]
            selectTotal(state: any): number
            selectById(state: any, id: string | number): Entity
        }
    }
    /** A table {ids, entities}: a change of one entity costs the same among a hundred and a hundred thousand. */
    export function createEntityAdapter<Entity = any>(options?: {
        selectId?: (entity: Entity) => string | number
        sortComparer?: false | ((one: Entity, other: Entity) => number)
    }): EntityAdapter<Entity>
}

declare module 'redux' { export * from '@reduxjs/toolkit' }
declare module 'immer' { export * from '@reduxjs/toolkit' }
declare module 'reselect' { export * from '@reduxjs/toolkit' }
