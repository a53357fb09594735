// What a model file is written with: the part of Redux Toolkit that describes a state, its actions and its reducers.

const model = { slices: [], actions: new Map(), views: new Map(), root: null, isLoading: true };

/** A sentence for the author of the file, with the line of the call. */
const refuse = (sentence) => { throw new ModelFault(sentence); };

const CODE_MAX = 100, SENTENCE_MAX = 1000;
const isText = (value, most, form) => typeof value === 'string' && value.length <= most && form.test(value);

/** What reject throws. A reducer can catch it and cannot change it, nor make one of its own. */
class Rejection {
  #members;
  constructor(code, detail, pointer) {
    if (!isText(code, CODE_MAX, /^[\p{L}\p{N}_-]+([.\/][\p{L}\p{N}_-]+)*\.[\p{L}\p{N}_-]+$/u))
      refuse(`reject takes a code with a dot, such as todos.full, of letters, digits, - and _, at most ${CODE_MAX}: codes without a dot are the server's`);
    if (!isText(detail, SENTENCE_MAX, /^[^\0-\x08\x0b\x0c\x0e-\x1f]+$/))
      refuse(`reject takes a sentence of 1 to ${SENTENCE_MAX} characters, without control characters`);
    if (pointer !== undefined && !isText(pointer, SENTENCE_MAX, /^(?:\/(?:[^~\/]|~[01])*)*$/))
      refuse(`reject takes as its third argument a JSON Pointer into the payload, such as /amount, of at most ${SENTENCE_MAX} characters`);
    this.#members = { code, detail, ...(pointer === undefined ? {} : { pointer }) };
  }

  static membersOf(value) { return isObject(value) && #members in value ? { ...value.#members } : undefined; }
}

function reject(code, detail = code, pointer = undefined) {
  throw new Rejection(code, detail, pointer ?? undefined);
}

/** What the reducer that runs wants to happen later; null while none runs. */
const later = { requests: null };

function laterOf(what) {
  if (later.requests === null) refuse(`${what} must be called by a reducer`);
  return later.requests;
}

function schedule(action, when) {
  const requests = laterOf('schedule');
  if (!isObject(action) || !isName(action.type)) refuse('schedule takes an action with a type, such as remind({ id: 1 })');
  if (!isObject(when)) refuse('schedule takes as its second argument { after: seconds } or { at: time }');
  const { after, at, name } = when;
  if ((after === undefined) === (at === undefined)) refuse('schedule takes one of after, in seconds, and at, a time');
  if (after !== undefined && !(typeof after === 'number' && after >= 0 && after < 1e11)) refuse('after must be a number of seconds, 0 or more');
  if (at !== undefined && typeof at !== 'string') refuse('at must be a text such as 2030-01-31T12:00:00Z');
  if (name !== undefined && !(isName(name) && name.length <= 255)) refuse('name must be a text of 1 to 255 characters');
  requests.push(JSON.parse(JSON.stringify({ action: { type: action.type, payload: action.payload }, after, at, name })));
}

function unschedule(name) {
  const requests = laterOf('unschedule');
  if (!isName(name)) refuse('unschedule takes the name of what was scheduled, a text');
  requests.push({ unschedule: name });
}

/** A name that clients can send. */
const isName = (value) => typeof value === 'string' && value !== '' && value.isWellFormed() && !value.includes('\0');

function loadingOnly(what) {
  if (!model.isLoading) refuse(`${what} must be called when the file is loaded, not by a reducer or a view`);
}

function declareAction(type, { payload, internal = false } = {}, slice = null) {
  const schema = schemaOf(payload, type);
  if (typeof internal !== 'boolean') refuse(`${type}: internal must be true or false`);
  let known = model.actions.get(type);
  if (known === undefined) model.actions.set(type, known = { type, schema: null, slice, takesAction: true, internal: false });
  known.schema = schema ?? known.schema;
  known.internal ||= internal;
}

function schemaOf(schema, where) {
  if (schema !== undefined && !isObject(schema) && typeof schema !== 'boolean')
    refuse(`${where}: a schema must be a JSON Schema, an object`);
  return schema;
}

function createAction(type, options = {}) {
  if (!isName(type)) refuse('createAction takes the type of the action, a text');
  if (typeof options === 'function')
    refuse(`${type}: an action is what a client sends, so the server has no prepare callback; let the client send the payload as it is to be`);
  if (model.isLoading) declareAction(type, options);
  return creator(type);
}

function creator(type) {
  const create = (payload) => ({ type, payload });
  define(create, 'toString', () => type);
  return Object.assign(create, { type, match: (action) => action?.type === type });
}

const typeOf = (matched) => {
  const type = typeof matched === 'string' ? matched : matched?.type;
  if (!isName(type)) refuse('addCase takes an action creator or the type of an action');
  return type;
};

/** The condition of a matcher: a function of an action, or the one of an action creator. */
function conditionOf(matcher, where) {
  const condition = typeof matcher === 'string' ? undefined : matcher?.match ?? matcher;
  if (typeof condition !== 'function')
    refuse(`${where} takes action creators or functions of an action${typeof matcher === 'string' ? ', not a text; addCase takes one' : ''}`);
  return condition;
}

/** The cases of a reducer: by type, by a condition, and for everything else. */
class Cases {
  byType = new Map();
  matchers = [];
  otherwise = null;
  /** Adds more cases when they are first wanted: it may name what the file declares further down. */
  build = null;

  complete() {
    const { build } = this;
    if (build === null) return;
    this.build = null;
    build(this);
  }

  addCase(matched, reducer) {
    const type = typeOf(matched);
    if (this.byType.has(type)) refuse(`two cases for ${type}`);
    if (typeof reducer !== 'function') refuse(`the case of ${type} is not a function`);
    if (typeof matched !== 'function' && !model.actions.has(type)) declareAction(type);
    this.byType.set(type, reducer);
    return this;
  }

  addMatcher(matcher, reducer) {
    if (typeof reducer !== 'function') refuse('addMatcher takes a matcher and a reducer, a function');
    this.matchers.push({ matches: conditionOf(matcher, 'addMatcher'), reducer });
    return this;
  }

  addDefaultCase(reducer) {
    if (typeof reducer !== 'function') refuse('addDefaultCase takes a reducer, a function');
    this.otherwise = reducer;
    return this;
  }

  addAsyncThunk() { refuse(advice.createAsyncThunk); }

  mayHandle(type) {
    this.complete();
    return this.byType.has(type) || this.matchers.length > 0 || this.otherwise !== null;
  }

  reducersFor(action) {
    this.complete();
    const found = [];
    const reducer = this.byType.get(action.type);
    if (reducer !== undefined) found.push(reducer);
    for (const matcher of this.matchers) if (matcher.matches(action)) found.push(matcher.reducer);
    if (found.length === 0 && this.otherwise !== null) found.push(this.otherwise);
    return found;
  }
}

/** Runs a case in one of Redux's manners: it changes the draft, or returns a new state. */
function runCase(reducer, state, action) {
  const { writes } = run;
  const result = reducer(state, action);
  if (result === undefined) {
    if (!isObject(state) && state !== null)
      refuse(`the reducer of ${action.type} returned undefined, and its state is not an object that it could have changed`);
    return state;
  }
  if (result !== state && isObject(state) && run.writes !== writes) {
    refuse(`the reducer of ${action.type} changed its draft and returned another value; it does one of the two (an arrow function whose body is an assignment needs braces)`);
  }
  return result;
}

/** Runs cases one after the other; each gets what the one before has made as if it were the state, so that it can change it. */
function runCases(reducers, state, action) {
  const bases = new Map();
  openCopies.push(bases);
  try {
    reducers.forEach((reducer, index) => {
      if (index > 0) state = changeable(state, bases);
      state = runCase(reducer, state, action);
    });
    return state;
  } finally {
    openCopies.pop();
  }
}

/** A state whose parts can all be changed: what a case has put into it is copied, as it may be a constant of the file. */
function changeable(state, bases) {
  if (draftOf(state) === undefined) return copyOfNew(state, bases);
  for (const { raw, old, before } of run.changed) {
    for (const key of before !== null ? raw.keys() : old.keys()) {
      if (!run.fresh.has(raw[key])) continue;
      raw[key] = copyOfNew(raw[key], bases);
      run.fresh.add(raw[key]);
    }
  }
  return state;
}

/** A copy of what is new in a value; drafts in it stay. What cannot be in the state is left for its fault. */
function copyOfNew(value, bases, above = []) {
  if (!isObject(value) || draftOf(value) !== undefined || above.includes(value)) return value;
  if (!Array.isArray(value) && !isPlain(value)) return value;
  const copy = Array.isArray(value) ? [] : {};
  bases.set(copy, value);
  above.push(value);
  if (Array.isArray(value)) for (const element of value) copy.push(copyOfNew(element, bases, above));
  else for (const key of Reflect.ownKeys(value)) put(copy, key, copyOfNew(value[key], bases, above));
  above.pop();
  return copy;
}

/** The objects and arrays of the copies that recipes change now, each with what it is a copy of; a map for each call in another. */
const openCopies = [];
const baseOf = (value) => openCopies.find((bases) => bases.has(value))?.get(value);

/** What a slice's reducer does when another function calls it: it changes a draft, and leaves any other state as it is. */
function changeDraft(state, recipe) {
  const target = draftOf(state);
  if ((target && !target.locked) || baseOf(state) !== undefined) return recipe(state);
  return produce(state, recipe);
}

/** Runs the recipe on a copy, also where the state is a draft; of a function alone it makes a reducer. */
function produce(state, recipe) {
  if (typeof state === 'function' && typeof recipe !== 'function')
    return (now = recipe, ...values) => produce(now, (draft) => state(draft, ...values));
  if (!isObject(state)) return recipe(state);
  const bases = new Map();
  const copy = plainCopy(state, undefined, bases);
  openCopies.push(bases);
  try {
    const result = recipe(copy);
    return shareEqual(state, result === undefined ? copy : result);
  } finally {
    openCopies.pop();
  }
}

/** @param bases takes each object and array of the copy, with what it is a copy of. */
function plainCopy(value, values = (raw, key) => raw[key], bases = undefined) {
  const raw = run === null ? value : unwrap(value);
  if (!isObject(raw)) return raw;
  const copy = Array.isArray(raw) ? [] : {};
  bases?.set(copy, raw);
  if (Array.isArray(raw)) {
    for (const element of values === originalAt ? originalArray(raw) : raw) copy.push(plainCopy(element, values, bases));
  } else {
    for (const key of values === originalAt ? originalKeys(raw).sort() : sortedKeys(raw)) put(copy, key, plainCopy(values(raw, key), values, bases));
  }
  return copy;
}

/** `now`, with each part that equals that of `was` being the very one, so that identity tells what has changed. */
function shareEqual(was, now) {
  if (was === now || !isObject(was) || !isObject(now) || Array.isArray(was) !== Array.isArray(now)) return now;
  const keys = Object.keys(now);
  let isSame = keys.length === Object.keys(was).length;
  const shared = Array.isArray(now) ? [] : {};
  for (const key of keys) {
    put(shared, key, hasOwn(was, key) ? shareEqual(was[key], now[key]) : now[key]);
    if (!hasOwn(was, key) || shared[key] !== was[key]) isSame = false;
  }
  return isSame ? was : shared;
}

function reducerOf(cases, initialState) {
  const initial = typeof initialState === 'function' ? initialState : () => initialState;
  const reducer = (state = plainCopy(initial()), action) => {
    for (const each of cases.reducersFor(action)) {
      state = changeDraft(state, (now) => runCase(each, now, action));
    }
    return state;
  };
  return Object.assign(reducer, { cases, getInitialState: () => plainCopy(initial()), isTable: () => tables.has(initial()) });
}

function createReducer(initialState, build) {
  loadingOnly('createReducer');
  if (typeof build !== 'function')
    refuse('createReducer takes a function of a builder: createReducer(initialState, (builder) => builder.addCase(...))');
  const cases = new Cases();
  build(cases);
  return reducerOf(cases, initialState);
}

/** Which members of the state a selector reads, where that is known: it gets no others. */
const readsOf = new WeakMap();
function reading(selector, reads) {
  if (reads !== undefined) readsOf.set(selector, reads);
  return selector;
}

/** What `reducers` gets where it is a function. */
const reducerCreators = {
  reducer: (reducer) => reducer,
  preparedReducer: (prepare, reducer) => ({ prepare, reducer }),   // refused with the name of its action
  asyncThunk: () => refuse(advice.createAsyncThunk),
};

const SLICE_MEMBERS = ['name', 'initialState', 'reducers', 'extraReducers', 'selectors', 'schema', 'reducerPath'];
const REDUCER_MEMBERS = ['payload', 'internal', 'reducer'];

/** Refuses a member of an object that means nothing; it may be a mistyped one. */
function refuseMember(owner, missing, known) {
  throw Object.assign(new ModelFault(`${owner} has a member '${missing}', which is not known here`), { missing, known });
}

function createSlice({ name, initialState, reducers = {}, extraReducers, selectors = {}, schema, reducerPath = name, ...others } = {}) {
  loadingOnly('createSlice');
  if (!isName(name)) refuse('createSlice needs a name');
  for (const key of Object.keys(others)) refuseMember(`the slice ${name}`, key, SLICE_MEMBERS);
  if (initialState === undefined) refuse(`the slice ${name} needs an initialState`);
  if (typeof reducers === 'function') reducers = reducers(reducerCreators);
  const cases = new Cases();
  const actions = {}, caseReducers = {};
  for (const key of Object.keys(reducers)) {
    const type = `${name}/${key}`;
    const declared = typeof reducers[key] === 'function' ? { reducer: reducers[key] } : reducers[key];
    if (declared?.prepare !== undefined)
      refuse(`${type} has a prepare callback: an action is what a client sends, so the client prepares it; IDs and times are action.meta.id and action.meta.time`);
    for (const member of Object.keys(declared ?? {})) {
      if (!REDUCER_MEMBERS.includes(member)) refuseMember(type, member, REDUCER_MEMBERS);
    }
    if (typeof declared?.reducer !== 'function') refuse(`${type} has no reducer function`);
    declareAction(type, declared, name);
    model.actions.get(type).takesAction = declared.reducer.length !== 1;
    actions[key] = creator(type);
    caseReducers[key] = declared.reducer;
    cases.addCase(actions[key], declared.reducer);
  }
  if (extraReducers !== undefined && typeof extraReducers !== 'function')
    refuse(`the slice ${name}: extraReducers must be a function of a builder`);
  if (extraReducers !== undefined) cases.build = extraReducers;
  const reducer = Object.assign(reducerOf(cases, initialState), { sliceName: name, schema: schemaOf(schema, `the slice ${name}`) ?? null });
  const selectSlice = reading((state) => state[reducerPath], [reducerPath]);
  const getSelectors = (select = (state) => state) =>
    Object.fromEntries(Object.entries(selectors).map(([key, selector]) =>
      [key, reading((state, ...rest) => selector(select(state), ...rest), readsOf.get(select))]));
  const { getInitialState } = reducer;
  const slice = {
    name, reducerPath, reducer, actions, caseReducers, selectSlice, getSelectors, getInitialState,
    selectors: getSelectors(selectSlice),
  };
  model.slices.push(slice);
  return slice;
}

function combineReducers(reducers) {
  loadingOnly('combineReducers');
  const keys = Object.keys(reducers);
  for (const key of keys) if (typeof reducers[key] !== 'function') refuse(`combineReducers: '${key}' is not a reducer`);
  const combined = (state = {}, action) => {
    const next = {};
    for (const key of keys) next[key] = reducers[key](state[key], action);
    const result = keys.some((key) => next[key] !== state[key]) || keys.length !== Object.keys(state).length ? next : state;
    if (model.isLoading) combinations.set(result, combined);
    return result;
  };
  Object.assign(combined, { mounted: reducers });
  if (!model.isConfigured) model.root = combined;
  return combined;
}

/** The initial states of combined reducers. */
const combinations = new WeakMap();

function combineSlices(...parts) {
  const reducers = parts.map((part) => (typeof part?.reducer === 'function' ? { [part.reducerPath]: part.reducer } : part));
  return combineReducers(Object.assign({}, ...reducers));
}

function configureStore({ reducer, middleware, preloadedState, enhancers } = {}) {
  loadingOnly('configureStore');
  if (middleware !== undefined || enhancers !== undefined)
    refuse('the server has the store: a model has no middleware and no enhancers');
  if (preloadedState !== undefined)
    refuse('the server keeps the state: give each slice its initialState instead of a preloadedState');
  if (typeof reducer !== 'function' && !isObject(reducer)) refuse('configureStore needs a reducer');
  const root = typeof reducer === 'function' ? reducer : combineReducers(reducer);
  model.root = root;
  model.isConfigured = true;
  const serverHasIt = () => refuse('the server has the store: clients dispatch to it and read its state over HTTP');
  return { dispatch: serverHasIt, getState: serverHasIt, subscribe: serverHasIt, replaceReducer: serverHasIt };
}

const VIEW_MEMBERS = ['reads', 'parameters', 'subject'];

/**
 * A value that clients read at /v1/views/<name>, computed from the state, or from those members of it that `reads` names.
 *
 * The function gets the parameters of the request where they have a schema, and then `{ subject }` where it has a third
 * parameter, or where `subject` says so.
 */
function view(name, select, options = {}) {
  loadingOnly('view');
  if (!isName(name) || typeof select !== 'function')
    refuse('view takes a name and a function of the state');
  for (const key of Object.keys(options)) if (!VIEW_MEMBERS.includes(key)) refuseMember(`the view ${name}`, key, VIEW_MEMBERS);
  const { reads = readsOf.get(select) ?? null, parameters, subject = select.length > 2 } = options;
  if (parameters !== undefined && !isObject(parameters)) refuse(`the view ${name}: parameters must be a JSON Schema, an object`);
  if (typeof subject !== 'boolean') refuse(`the view ${name}: subject must be true or false`);
  if (parameters === undefined && !subject && select.length > 1)
    refuse(`the view ${name}: its function takes parameters, which need a schema: view(name, select, { parameters: { type: 'object', properties: { ... } } })`);
  if (reads !== null && !(Array.isArray(reads) && reads.every((each) => typeof each === 'string')))
    refuse(`the view ${name}: reads must be an array of names of members of the state`);
  if (model.views.has(name)) refuse(`two views have the name ${name}`);
  model.views.set(name, { select, reads, parameters: parameters ?? null, subject });
}

/** Selectors do not remember results here: what a function remembers would not be in the state. */
function createSelector(...parts) {
  const combine = parts.pop();
  const inputs = parts.flat();
  if ([combine, ...inputs].some((part) => typeof part !== 'function'))
    refuse('createSelector takes functions; its options are of no use here');
  const reads = inputs.map((input) => readsOf.get(input));
  const selector = (...values) => combine(...inputs.map((input) => input(...values)));
  return reading(selector, reads.includes(undefined) ? undefined : [...new Set(reads.flat())]);
}

const conditions = (matchers, where) => matchers.map((matcher) => conditionOf(matcher, where));
function isAnyOf(...matchers) {
  const found = conditions(matchers, 'isAnyOf');
  return (action) => found.some((matches) => matches(action));
}
function isAllOf(...matchers) {
  const found = conditions(matchers, 'isAllOf');
  return (action) => found.every((matches) => matches(action));
}
const isDraft = (value) => draftOf(value) !== undefined || baseOf(value) !== undefined;
const current = (value) => plainCopy(value);
const original = (value) => (draftOf(value) ? plainCopy(value, originalAt) : plainCopy(baseOf(value)));

/** A copy of plain data, as of the function that browsers have. */
function structuredClone(value) {
  room = answerMax;
  try {
    return adopt(value, '');
  } catch (error) {
    return refuse(`structuredClone copies JSON here: ${error.message}`);
  }
}

const toolkit = {
  configureStore, combineReducers, combineSlices, createAction, createEntityAdapter, createReducer, createSelector, createSlice, current, isAllOf,
  isAnyOf, isDraft, original, produce, reject, schedule, unschedule, view, createNextState: produce,
};

const client = 'the server reduces actions at once; what is asynchronous happens in a client, which then sends an action with the result';
const advice = {
  createAsyncThunk: `createAsyncThunk: ${client}`,
  asyncThunkCreator: `asyncThunkCreator: ${client}`,
  createListenerMiddleware: `createListenerMiddleware: ${client}`,
  createApi: `createApi: ${client}`,
  applyMiddleware: 'applyMiddleware: a model has no middleware',
  createStore: 'createStore: use configureStore, or let each slice mount under its name',
  nanoid: 'nanoid would give another ID when an action is replayed; use action.meta.id',
};
