// What the host calls. Each function returns JSON text, and none throws.

const routes = new Map();   // action type -> the mounts whose reducers handle it
const RUNNING = 1, SETTLING = 2;

let mounts = [];            // {tokens, key, reducer, name}: where in the state each reducer has its part
let lines = [], lineOfName = new Map(), fileName = '', firstColumn = 0, definitions = {};
const texts = { plain: '', script: '' };

/** What to do instead of a name that a file for Node or a browser has. */
const builtIn = 'a model has neither Node nor a browser around it: what it may use is built in and needs no import';
const ELSEWHERE = {
  require: builtIn, module: builtIn, exports: builtIn, process: builtIn, Buffer: builtIn, window: builtIn, document: builtIn,
  localStorage: builtIn, Promise: client, crypto: 'a random ID would be another one when an action is replayed: use action.meta.id',
};
const isFrozen = /readonly property|not extensible|unconfigurable property/;

const TEXT_MAX = 2000, QUOTED_MAX = 200;

/** The beginning of a text; one that is very long is not even put together from its pieces. */
const cut = (value, most) => {
  const text = String(value);
  return text.length > 1_000_000 ? `a text of ${text.length} characters` : text.slice(0, most);
};

/** Where in the model's file an error comes from, and what it says: texts and numbers, whatever the error has as its members. */
function faultOf(error) {
  const fault = { message: 'the model threw a value that is not an Error' };
  let at = null;
  try {
    if (error instanceof Error) {
      const message = cut(error.message, TEXT_MAX);
      fault.message = error instanceof ModelFault ? message : `${cut(error.name, QUOTED_MAX)}: ${message}`;
      if (error instanceof ModelFault && error.isTooLarge) fault.size = true;
      if (error instanceof RangeError && /stack|memory/.test(message)) fault.engine = true;
      if (typeof error.pointer === 'string') fault.pointer = cut(error.pointer, TEXT_MAX);
      const missing = /^Can't find variable: (.+)$/.exec(message)?.[1];
      if (missing !== undefined && hasOwn(ELSEWHERE, missing)) fault.message += ` (${ELSEWHERE[missing]})`;
      else if (missing !== undefined) Object.assign(fault, { missing, known: Object.keys(toolkit) });
      else if (Array.isArray(error.known)) {
        Object.assign(fault, { missing: cut(error.missing, QUOTED_MAX), known: error.known.slice(0, 100).map((each) => cut(each, QUOTED_MAX)) });
      } else if (error instanceof TypeError && isFrozen.test(message))
        fault.message += ' (a reducer changes the state that it gets: what is outside of it is frozen, and a text or a number has no members)';
      const frames = cut(error.stack ?? '', 100_000).split('\n').map((each) => /^(?:.*@)?(.*):(\d+):(\d+)$/.exec(each));
      const frame = frames.find((each) => each?.[1] === fileName);
      if (isObject(error.at)) at = { line: Number(error.at.line), column: Number(error.at.column) };
      else if (frame) at = { line: Number(frame[2]), column: Number(frame[3]) - (frame[2] === '1' ? firstColumn : 0) };
      else if (error instanceof SyntaxError && error.line > 0) at = { line: error.line, column: columnOf(error) };
    } else if (typeof error !== 'object' && typeof error !== 'function') {
      fault.message = `the model threw ${JSON.stringify(cut(error, QUOTED_MAX))}, which is not an Error`;
    } else if (error === null) fault.message = 'the model threw null, which is not an Error';
    else if (Rejection.membersOf(error)) fault.message = `reject('${Rejection.membersOf(error).code}') was called outside a reducer`;
  } catch { /* The error object itself is hostile: it has no more to say. */ }
  if (at !== null) Object.assign(fault, { file: fileName, ...at, source: (lines[at.line - 1] ?? '').slice(0, QUOTED_MAX) });
  return fault;
}

/** A syntax error has no column; it has the text that the parser did not expect, and often the line has that once. */
function columnOf({ message, line }) {
  const token = /'([^']+)'/.exec(message)?.[1];
  const source = lines[line - 1] ?? '';
  const first = token === undefined ? -1 : source.indexOf(token);
  return first >= 0 && source.indexOf(token, first + 1) < 0 ? first + 1 : undefined;
}

const isTypeScript = (line) =>
  /\b(PayloadAction|interface|as const|satisfies|readonly)\b|\w<\w+(\[\])?>/.test(line)
  || /[\w\])?]\s*:\s*(string|number|boolean|any|unknown|void|[A-Z]\w*)\b/.test(line);

/** The text of an answer. Half of a surrogate pair, which JSON.stringify escapes and JSON has not, is U+FFFD. */
function answer(result) {
  if (sayings.length > 0) result.console = sayings.splice(0);
  const text = JSON.stringify(result);
  return text.includes('\\ud') ? text.replace(/\\(?:ud[0-9a-f]{3}|.)/g, (each) => (each.length === 2 ? each : '\ufffd')) : text;
}

/**
 * Runs what may fail; afterwards nothing of a failed run is left.
 *
 * @param keep makes the result that of the engine's copy. By then the text of the answer is there, so that nothing fails any more.
 */
function guarded(work, keep = () => {}) {
  try {
    const result = work(), text = answer(result);
    keep(result);
    return text;
  } catch (error) {
    const isBroken = phase[0] === SETTLING;
    abandon();
    const rejected = Rejection.membersOf(error);
    if (rejected !== undefined && keep === settle) return answer({ rejected });
    const fault = faultOf(error);
    if (isBroken) fault.engine = true;
    return answer({ fault });
  }
}

/** Ends a run that has failed or was stopped. */
function abandon() {
  later.requests = null;
  if (run !== null) {
    phase[0] = SETTLING;
    rollBack();
    run = null;
  }
  phase[0] = 0;
}

/**
 * Ends a run whose patch is known: the state goes back, and from there to the new one by the patch that the host gets.
 *
 * The phase stays until the next call, so that no time limit ends this one behind the change.
 */
function settle({ patch }) {
  phase[0] = SETTLING;
  rollBack();
  run = null;
  change(patch);
}

function start() {
  begin();
  phase[0] = RUNNING;
}

// Loading.

/** The first half of loading: the file as a script, and as an expression for a function. */
const prepare = (file, name, bytesMax) => guarded(() => {
  const source = file.replace(/^#!/, '//');   // the line for a shell is a comment
  lines = source.split('\n');
  fileName = name;
  answerMax = bytesMax;
  restrict();
  const { text, names, defaultName } = scriptOf(source);
  const prefix = '(function($toolkit,$default){"use strict";';
  firstColumn = prefix.length;
  start();
  texts.plain = text;
  lineOfName = names;
  const members = [...names.keys()].map((each) => `,${each}:typeof ${each}==='undefined'?undefined:${each}`).join('');
  texts.script = `${prefix}${text}\n;return{$default${defaultName === null ? '' : `:${defaultName}`}${members}}})`;
  return {};
});

const syntaxFault = (error) => {
  const fault = faultOf(error);
  if (isTypeScript(fault.source ?? '')) {
    fault.message += ' (this looks like TypeScript: a model is plain JavaScript, and `tsc` or `esbuild --format=esm` make it)';
  }
  abandon();
  return answer({ fault });
};

/** The second half: what the function declares. */
const load = (script) => guarded(() => {
  definitions = script(toolkit, undefined);
  for (const { reducer } of model.slices) reducer.cases.complete();
  const root = rootReducer(), inside = combinedBy(root);
  mounts = mountsOf(root);
  const parts = inside === undefined ? mounts : mountsOf(inside);
  if (inside !== undefined) mounts[0].names = Object.keys(inside.mounted);
  model.isLoading = false;
  if (model.actions.size === 0) refuse('the file declares no action: createSlice or createAction name them');
  const initial = initialOf(root);
  if (!isObject(initial)) refuse(`the reducer of the whole state${root === definitions.$default ? ', which `export default` names,' : ''} returns an object`);
  holder.state = adopt(initial, '');
  const { version = null, migrate } = definitions;
  if (version !== null && !(Number.isSafeInteger(version) && version >= 0)) refuse('version must be a whole number');
  if (migrate !== undefined && typeof migrate !== 'function') refuse('migrate must be a function of a state and a version');
  run = null;
  phase[0] = 0;
  for (const name of Object.keys(definitions)) freezeVariable(name);
  checkReads(parts);
  for (const each of [...mounts.map(({ reducer }) => reducer), ...model.slices, ...model.views.values()]) freeze(each, 'the file');
  return {
    version,
    migrates: migrate !== undefined,
    slices: parts.map(({ tokens, reducer, name }) => {
      return { name, mount: tokens.map((token) => `/${escaped(token)}`).join(''), schema: reducer.schema ?? null, table: reducer.isTable?.() ?? false };
    }),
    actions: [...model.actions.values()],
    views: [...model.views].map(([name, { reads, parameters, subject }]) => ({ name, reads, parameters, subject })),
    initial: holder.state,
  };
});

function freezeVariable(name) {
  try {
    freeze(definitions[name], name === '$default' ? 'the default export' : `the variable ${name}`);
  } catch (error) {
    throw lineOfName.has(name) ? Object.assign(error, { at: { line: lineOfName.get(name) } }) : error;
  }
}

function rootReducer() {
  const { $default } = definitions;
  // The file of a slice often exports its reducer, which is not that of the whole state.
  const isRoot = typeof $default === 'function' && !model.slices.some(({ reducer }) => reducer === $default);
  if (isRoot && !model.isConfigured) return $default;
  if (model.root !== null) return model.root;
  if (model.slices.length > 0) {
    const reducers = {};
    for (const { name, reducerPath, reducer } of model.slices) {
      if (hasOwn(reducers, reducerPath)) refuse(`two slices have the name ${name}`);
      reducers[reducerPath] = reducer;
    }
    return combineReducers(reducers);
  }
  return refuse('the file has no reducer: it has to call createSlice, combineReducers or configureStore, or to have `export default` before a reducer');
}

function checkReads(parts) {
  const names = new Set(parts.map(({ tokens }) => tokens[0]));
  for (const [name, { reads }] of model.views) {
    for (const read of reads ?? []) {
      if (names.has(read)) continue;
      const known = [...names].filter((part) => part !== undefined);
      throw Object.assign(new ModelFault(`the view ${name} reads '${read}', and no slice is mounted there`), { missing: read, known });
    }
  }
}

function mountsOf(reducer, tokens = [], key = 'state') {
  if (reducer.mounted === undefined) return [{ tokens, key, reducer, name: reducer.sliceName ?? tokens.at(-1) ?? '', names: null }];
  return Object.keys(reducer.mounted).flatMap((name) => mountsOf(reducer.mounted[name], [...tokens, name], name));
}

/** The combined reducer that a function around it calls, if the state is its own: it says what is mounted where. */
function combinedBy(root) {
  if (root.mounted !== undefined || root.cases !== undefined) return undefined;
  const initial = initialOf(root);
  return isObject(initial) ? combinations.get(initial) : undefined;
}

function initialOf(reducer) {
  if (reducer.mounted) return Object.fromEntries(Object.entries(reducer.mounted).map(([key, each]) => [key, initialOf(each)]));
  if (reducer.getInitialState) return reducer.getInitialState();
  const initial = reducer(undefined, { type: '@@storekeeper/initial' });
  return initial === undefined ? refuse('a reducer returns its initial state when it is called with undefined') : initial;
}

// Running.

function routeOf(type) {
  let route = routes.get(type);
  if (route === undefined) {
    route = mounts.filter(({ reducer: { cases } }) => cases === undefined || cases.mayHandle(type));
    if (model.actions.has(type)) routes.set(type, route);
  }
  return route;
}

function runMount({ tokens, key, reducer, names }, action) {
  let container = draft(holder, null, '', false);
  for (let level = 0; level < tokens.length; level += 1) {
    const name = level === 0 ? 'state' : tokens[level - 1];
    container = draft(container.raw[name], container, name, false);
  }
  const isPlain = reducer.cases === undefined;
  const raw = container.raw[key];
  const before = isObject(raw) ? draft(raw, container, key, isPlain).proxy : raw;
  let state = before;
  if (isPlain) {
    state = reducer(before, action);
    if (state === undefined)
      refuse(`a reducer returned undefined for ${action.type}; a plain function returns a state`);
    if (names !== null && isObject(state) && (names.length !== Object.keys(state).length || !names.every((name) => hasOwn(state, name))))
      refuse(`the reducer of the whole state returned other members than ${names.join(', ')}, which its combined reducers have`);
  } else state = runCases(reducer.cases.reducersFor(action), state, action);
  if (state !== before) container.set(container.raw, key, state);
}

const reduce = (text) => guarded(() => {
  const action = JSON.parse(text);
  start();
  later.requests = [];
  for (const mount of routeOf(action.type)) runMount(mount, action);
  const { requests } = later;
  later.requests = null;
  return { patch: difference(), ...(requests.length > 0 ? { later: requests } : {}) };
}, settle);

/** The members of the state that a view names; another one is a fault, because its change would not reach the view. */
function narrowed(state, name, reads) {
  const part = {};
  for (const key of Object.keys(state)) {
    if (reads.includes(key)) put(part, key, state[key]);
    else Object.defineProperty(part, key, { get: () => refuse(`the view ${name} reads '${key}', which is not among its reads`) });
  }
  return part;
}

const viewOf = (name, text) => guarded(() => {
  const view = model.views.get(name);
  if (view === undefined) refuse(`the model has no view '${name}'`);
  start();
  const { proxy } = draft(holder.state, null, '', true);
  const part = view.reads === null ? proxy : narrowed(proxy, name, view.reads);
  const context = JSON.parse(text), takesMore = view.parameters !== null || view.subject;
  const given = view.subject ? [context.parameters, { subject: context.subject }] : [context.parameters];
  const selected = (takesMore ? view.select(part, ...given) : view.select(part)) ?? null;
  room = answerMax;
  // A part of the state is JSON already; its names come in one order, however it came about.
  const value = draftOf(selected) === undefined ? adopt(selected, '') : plainCopy(selected);
  run = null;
  phase[0] = 0;
  return { value };
});

const migrated = (text, from) => guarded(() => {
  const { migrate } = definitions;
  if (migrate === undefined) refuse('the model has no migrate(state, fromVersion)');
  const state = JSON.parse(text);
  start();
  const migrated = migrate(state, from) ?? state;
  room = Infinity;
  const result = adopt(migrated, '');
  run = null;
  phase[0] = 0;
  return { state: result };
});

const setState = (text) => guarded(() => {
  holder.state = JSON.parse(text);
  return {};
});

const follow = (text) => guarded(() => {
  phase[0] = SETTLING;
  change(JSON.parse(text));
  return {};
});

return {
  prepare, syntaxFault, load, reduce, setState, follow, view: viewOf, migrate: migrated,
  plain: () => texts.plain,
  script: () => texts.script,
  state: () => answer({ state: holder.state }),
  abandon: () => { abandon(); sayings.length = 0; return '{}'; },
  fault: (error) => answer({ fault: { ...faultOf(error), engine: true } }),
};
