// What the host calls. Each function returns JSON text, and none throws.

const routes = new Map();   // action type -> the mounts whose reducers handle it
const RUNNING = 1, SETTLING = 2;

let mounts = [];            // {tokens, key, reducer, name}: where in the state each reducer has its part
let lines = [], fileName = '', firstColumn = 0, definitions = {};
const texts = { plain: '', script: '' };

/** What to do instead of a name that a file for Node or a browser has. */
const builtIn = 'a model has neither Node nor a browser around it: what it may use is built in and needs no import';
const ELSEWHERE = {
  require: builtIn, module: builtIn, exports: builtIn, process: builtIn, Buffer: builtIn, window: builtIn, document: builtIn,
  localStorage: builtIn, Promise: client, crypto: 'a random ID would be another one when an action is replayed: use action.meta.id',
};
const isFrozen = /readonly property|not extensible|unconfigurable property/;

/** Where in the model's file an error comes from, and what it says. */
function faultOf(error) {
  const fault = { message: 'the model threw a value that is no Error' };
  let at = null;
  try {
    if (error instanceof Error) {
      fault.message = error instanceof ModelFault ? error.message : `${error.name}: ${error.message}`;
      if (error.pointer !== undefined) fault.pointer = error.pointer;
      const missing = /^Can't find variable: (.+)$/.exec(error.message)?.[1];
      if (missing !== undefined && hasOwn(ELSEWHERE, missing)) fault.message += ` (${ELSEWHERE[missing]})`;
      else if (missing !== undefined) Object.assign(fault, { missing, known: Object.keys(toolkit) });
      else if (error.known !== undefined) Object.assign(fault, { missing: error.missing, known: error.known });
      else if (error instanceof TypeError && isFrozen.test(error.message))
        fault.message += ' (a reducer changes the state that it gets: what is outside of it is frozen, and a text or a number has no members)';
      const frames = String(error.stack ?? '').split('\n').map((each) => /^(?:.*@)?(.*):(\d+):(\d+)$/.exec(each));
      const frame = frames.find((each) => each?.[1] === fileName);
      if (error.at !== undefined) at = error.at;
      else if (frame) at = { line: Number(frame[2]), column: Number(frame[3]) - (frame[2] === '1' ? firstColumn : 0) };
      else if (error instanceof SyntaxError && error.line > 0) at = { line: error.line, column: columnOf(error) };
    } else if (typeof error !== 'object' && typeof error !== 'function') {
      fault.message = `the model threw ${JSON.stringify(String(error)).slice(0, 200)}, which is no Error`;
    } else if (error === null) fault.message = 'the model threw null, which is no Error';
    else if (error instanceof Rejection) fault.message = `reject('${error.code}') was called outside a reducer`;
  } catch { /* The error object itself is hostile: it has no more to say. */ }
  if (at !== null) Object.assign(fault, { file: fileName, ...at, source: (lines[at.line - 1] ?? '').slice(0, 200) });
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

function answer(result) {
  if (sayings.length > 0) result.console = sayings.splice(0);
  return JSON.stringify(result);
}

/** Runs what may fail; afterwards nothing of a failed run is left. */
function guarded(work) {
  try {
    return answer(work());
  } catch (error) {
    abandon();
    if (error instanceof Rejection) {
      const { code, detail, pointer } = error;
      return answer({ rejected: { code, detail, ...(typeof pointer === 'string' ? { pointer } : {}) } });
    }
    return answer({ fault: faultOf(error) });
  }
}

/** Ends a run that has failed or was stopped. */
function abandon() {
  if (run !== null) {
    phase[0] = SETTLING;
    rollBack();
    run = null;
  }
  phase[0] = 0;
}

/** Ends a run whose patch is known: the state goes back, and from there to the new one by the patch that the host gets. */
function settle(operations) {
  phase[0] = SETTLING;
  rollBack();
  run = null;
  change(operations);
  phase[0] = 0;
}

function start() {
  begin();
  phase[0] = RUNNING;
}

// Loading.

/** The first half of loading: the file as a script, and as an expression for a function. */
const prepare = (source, name) => guarded(() => {
  lines = source.split('\n');
  fileName = name;
  restrict();
  const { text, names } = scriptOf(source);
  const prefix = '(function($toolkit,$default){"use strict";';
  firstColumn = prefix.length;
  start();
  texts.plain = text;
  const members = names.map((each) => `,${each}:typeof ${each}==='undefined'?undefined:${each}`).join('');
  texts.script = `${prefix}${text}\n;return{$default${members}}})`;
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
  const root = rootReducer();
  mounts = [];
  mount(root, [], 'state');
  model.isLoading = false;
  if (model.actions.size === 0) refuse('the file declares no action: createSlice or createAction name them');
  holder.state = adopt(initialOf(root), '');
  if (!isObject(holder.state)) refuse('the reducer of the whole state returns an object');
  const { version = null, migrate } = definitions;
  if (version !== null && !(Number.isSafeInteger(version) && version >= 0)) refuse('version is a whole number');
  if (migrate !== undefined && typeof migrate !== 'function') refuse('migrate is a function of a state and a version');
  run = null;
  phase[0] = 0;
  freeze(definitions, new Set());
  checkReads();
  for (const each of [...mounts.map(({ reducer }) => reducer), ...model.slices, ...model.views.values()]) freeze(each, new Set());
  return {
    version,
    migrates: migrate !== undefined,
    slices: mounts.map(({ tokens, reducer, name }) => {
      return { name, mount: tokens.map((token) => `/${escaped(token)}`).join(''), schema: reducer.schema ?? null, table: reducer.isTable?.() ?? false };
    }),
    actions: [...model.actions.values()],
    views: [...model.views].map(([name, { reads }]) => ({ name, reads })),
    initial: holder.state,
  };
});

function rootReducer() {
  if (model.root !== null) return model.root;
  if (model.slices.length > 0) {
    const reducers = {};
    for (const { name, reducerPath, reducer } of model.slices) {
      if (hasOwn(reducers, reducerPath)) refuse(`two slices have the name ${name}`);
      reducers[reducerPath] = reducer;
    }
    return combineReducers(reducers);
  }
  if (typeof definitions.$default === 'function') return definitions.$default;
  return refuse('the file has no reducer: it has to call createSlice, combineReducers or configureStore, or to have `export default` before a reducer');
}

function checkReads() {
  const parts = new Set(mounts.map(({ tokens }) => tokens[0]));
  for (const [name, { reads }] of model.views) {
    for (const read of reads ?? []) {
      if (parts.has(read)) continue;
      const known = [...parts].filter((part) => part !== undefined);
      throw Object.assign(new ModelFault(`the view ${name} reads '${read}', and no slice is mounted there`), { missing: read, known });
    }
  }
}

function mount(reducer, tokens, key) {
  if (reducer.mounted === undefined) mounts.push({ tokens, key, reducer, name: reducer.sliceName ?? tokens.at(-1) ?? null });
  else for (const name of Object.keys(reducer.mounted)) mount(reducer.mounted[name], [...tokens, name], name);
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

function runMount({ tokens, key, reducer }, action) {
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
  } else for (const each of reducer.cases.reducersFor(action)) state = runCase(each, state, action);
  if (state !== before) container.set(container.raw, key, state);
}

const reduce = (text) => guarded(() => {
  const action = JSON.parse(text);
  start();
  for (const mount of routeOf(action.type)) runMount(mount, action);
  const patch = difference();
  settle(patch);
  return { patch };
});

/** The members of the state that a view names; another one is a fault, because its change would not reach the view. */
function narrowed(state, name, reads) {
  const part = {};
  for (const key of Object.keys(state)) {
    if (reads.includes(key)) put(part, key, state[key]);
    else Object.defineProperty(part, key, { get: () => refuse(`the view ${name} reads '${key}', which is not among its reads`) });
  }
  return part;
}

const viewOf = (name) => guarded(() => {
  const view = model.views.get(name);
  if (view === undefined) refuse(`the model has no view '${name}'`);
  start();
  const { proxy } = draft(holder.state, null, '', true);
  const selected = view.select(view.reads === null ? proxy : narrowed(proxy, name, view.reads)) ?? null;
  const value = draftOf(selected)?.raw ?? adopt(selected, '');   // a part of the state is JSON already
  run = null;
  phase[0] = 0;
  return { value };
});

const migrated = (text, from) => guarded(() => {
  const { migrate } = definitions;
  if (migrate === undefined) refuse('the model has no migrate(state, fromVersion)');
  const state = JSON.parse(text);
  start();
  const result = adopt(migrate(state, from) ?? state, '');
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
  phase[0] = 0;
  return {};
});

return {
  prepare, syntaxFault, load, reduce, setState, follow, view: viewOf, migrate: migrated,
  plain: () => texts.plain,
  script: () => texts.script,
  state: () => JSON.stringify({ state: holder.state }),
  abandon: () => { abandon(); sayings.length = 0; return '{}'; },
  fault: (error) => answer({ fault: faultOf(error) }),
};
