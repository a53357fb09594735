// Drafts: a reducer changes the state through proxies that write into it at once and note what was there before.
// Afterwards the notes give the patch, and are the way back: a change costs what it touches, whatever the size of the state.
//
// The state is a tree of plain objects and arrays of which nothing outside this file keeps a part. Objects that a reducer
// has made are not drafts; they are copied when they enter the state. A draft that is stored somewhere stays a draft until
// the end of the run, so that the same object in two places is one object for the reducer, and two for the next one.

const ABSENT = Symbol('absent');
const hasOwn = Object.hasOwn;
const LEVELS_MAX = 400;
/** How many characters of JSON an answer to a client may have, and how many are left of them. */
let answerMax = Infinity, room = Infinity;
// A hole would be no JSON; and where JavaScriptCore's splice moves one, the element that was there stays (2.50).
const NO_HOLES = 'an array in the state has no holes';

let holder = { state: null };   // the state is a member, so that its root can be replaced like any other value
let run = null;                 // what the reducer that runs now has in hand; no draft works without it

const begin = () => { run = { drafts: new Map(), byProxy: new Map(), fresh: new Set(), changed: [], writes: 0 }; };

/** What the model did wrong, in a sentence, and where in the state. */
class ModelFault extends Error {
  constructor(message, pointer) {
    super(message);
    this.pointer = pointer;
  }
}

/** Counts what an answer gets before it is looked at: a text can be made of pieces that are in no memory yet. */
function spend(length) {
  room -= length + 3;
  if (room < 0) throw Object.assign(new ModelFault(`the model makes more than ${answerMax} bytes at once`), { isTooLarge: true });
}

const escaped = (key) => (key.includes('~') || key.includes('/') ? key.replaceAll('~', '~0').replaceAll('/', '~1') : key);
const unescaped = (key) => (key.includes('~') ? key.replaceAll('~1', '/').replaceAll('~0', '~') : key);
const isObject = (value) => typeof value === 'object' && value !== null;
/** Sets a member, also one that has the name of a frozen one in Object.prototype. */
function put(object, key, value) {
  if (hasOwn(object, key) || !(key in object)) object[key] = value;
  else Object.defineProperty(object, key, { value, writable: true, enumerable: true, configurable: true });
}

/** The engine sorts names up to this one by their number, and no others (ECMA-262, section 6.1.7: an array index). */
const isIndex = (key) => /^(0|[1-9][0-9]{0,9})$/.test(key) && Number(key) < 0xFFFFFFFF;

/** The object behind a draft; any other value as it is. */
const unwrap = (value) => (isObject(value) ? run.byProxy.get(value)?.raw ?? value : value);
const draftOf = (value) => (run === null || !isObject(value) ? undefined : run.byProxy.get(value));

/** Names in one order, however the object came about: numbers first, then by code units. */
function sortedKeys(raw) {
  const keys = Object.keys(raw);
  for (let index = 1; index < keys.length; index += 1) {
    if (keys[index - 1] > keys[index]) {
      const first = keys.findIndex((key) => !isIndex(key));
      return first < 0 ? keys : [...keys.slice(0, first), ...keys.slice(first).sort()];
    }
  }
  return keys;
}

function draft(raw, parent, key, locked) {
  const known = run.drafts.get(raw);
  if (known !== undefined) return known;
  const made = new Draft(raw, parent, key, locked);
  run.drafts.set(raw, made);
  if (parent !== null) (parent.children ??= []).push(made);
  return made;
}

/** The handler of one proxy, with the notes about its object. */
class Draft {
  constructor(raw, parent, key, locked) {
    this.run = run;
    this.raw = raw;
    this.parent = parent;
    this.key = key;          // where the parent had it when it was first read
    this.locked = locked;    // a plain function may read it and not change it
    this.old = null;         // key -> what was there at the beginning, or ABSENT
    this.before = null;      // the whole array, once elements have moved
    this.length = 0;         // the array's length at the first note
    this.children = null;
    this.touched = false;    // this object, or one below it, has been changed
    this.made = null;
  }

  /** What the reducer gets; the parts of the state above its own never need one. */
  get proxy() {
    if (this.made === null) {
      this.made = new Proxy(this.raw, this);
      run.byProxy.set(this.made, this);
    }
    return this.made;
  }

  checked() {
    if (this.run !== run)
      throw new ModelFault('a draft was used after its reducer had ended; keep a copy of the values instead');
  }

  note(key, was) {
    if (this.before !== null) return;
    if (this.old === null) {
      const old = new Map();
      run.changed.push(this);   // may overflow the stack, so before anything else is another
      this.length = this.raw.length;
      this.old = old;
    }
    if (!this.old.has(key)) this.old.set(key, was);
  }

  writable() {
    this.checked();
    if (this.locked)
      throw new ModelFault('a plain function returns a new state and does not change the one that it gets; createSlice and createReducer give drafts');
    run.writes += 1;
    for (let above = this; above !== null && !above.touched; above = above.parent) above.touched = true;
    return this.raw;
  }

  /** Before elements of an array move: from here on the array is compared as a whole. */
  moving() {
    const raw = this.writable();
    if (this.before === null) {
      const original = originalArray(raw, this), before = original === raw ? raw.slice() : original;
      if (this.old === null) run.changed.push(this);
      this.before = before;
      this.old = null;
    }
    return raw;
  }

  /** What a reducer sees of a value in the state. */
  shown(value, key) {
    if (!isObject(value) || run.byProxy.has(value) || run.fresh.has(value)) return value;
    return draft(value, this, key, this.locked).proxy;
  }

  /** What the state keeps of a value that a reducer has made. */
  static taken(value) {
    if (isObject(value) && !run.byProxy.has(value)) run.fresh.add(value);
    return value;
  }

  get(raw, key) {
    this.checked();
    const value = raw[key];
    if (typeof value === 'object') return value === null ? null : this.shown(value, key);
    // An object as a text is what it is without a draft, although its toString is not seen.
    if (key === Symbol.toPrimitive && !Array.isArray(raw)) return () => '[object Object]';
    if (typeof value !== 'function' || hasOwn(raw, key)) return value;
    if (Array.isArray(raw)) return hasOwn(arrayMethods, key) ? arrayMethods[key] : value;
    // A table is asked for names that clients send: what Object.prototype has is not in it.
    return key === 'hasOwnProperty' ? value : undefined;
  }

  set(raw, key, value) {
    this.writable();
    if (typeof key === 'symbol') throw new ModelFault('a symbol cannot be a name in the state');
    if (Array.isArray(raw)) {
      if (key === 'length') {
        if (value > raw.length) throw new ModelFault(`${NO_HOLES}; push adds elements`);
        this.moving().length = value;
        return true;
      }
      if (!isIndex(key)) throw new ModelFault(`an array has no element '${key}'`);
      if (Number(key) > raw.length) throw new ModelFault(`${NO_HOLES}; push adds an element`);
    }
    const was = hasOwn(raw, key) ? raw[key] : ABSENT;
    if (was === value || (isObject(value) && was === unwrap(value))) return true;
    this.note(key, was);
    put(raw, key, Draft.taken(value));
    return true;
  }

  deleteProperty(raw, key) {
    this.writable();
    if (Array.isArray(raw)) throw new ModelFault(`${NO_HOLES}; splice takes an element out`);
    if (hasOwn(raw, key)) {
      this.note(key, raw[key]);
      delete raw[key];
    }
    return true;
  }

  has(raw, key) {
    this.checked();
    return Array.isArray(raw) ? key in raw : hasOwn(raw, key);
  }

  ownKeys(raw) {
    this.checked();
    return Array.isArray(raw) ? Reflect.ownKeys(raw) : sortedKeys(raw);
  }

  getOwnPropertyDescriptor(raw, key) {
    this.checked();
    const found = Reflect.getOwnPropertyDescriptor(raw, key);
    if (found !== undefined && isObject(found.value)) found.value = this.shown(found.value, key);
    return found;
  }

  getPrototypeOf(raw) {
    this.checked();
    return Reflect.getPrototypeOf(raw);
  }

  setPrototypeOf() { throw new ModelFault('an object in the state keeps its prototype'); }
  defineProperty() { throw new ModelFault('a member of the state is set by an assignment, not by defineProperty'); }
  preventExtensions() { throw new ModelFault('the state cannot be frozen; it is recorded as it is'); }
}

/** Array methods on the array itself; all others work through the proxy, element by element. */
const moved = (name) => function (...values) {
  draftOf(this).moving()[name](...values.map(Draft.taken));
  return this;
};
const arrayMethods = {
  push(...values) {
    const target = draftOf(this), raw = target.writable();
    for (const value of values) {
      target.note(String(raw.length), ABSENT);
      raw.push(Draft.taken(value));
    }
    return raw.length;
  },
  pop() {
    const target = draftOf(this), raw = target.writable();
    if (raw.length === 0) return undefined;
    const key = String(raw.length - 1), value = target.shown(raw[key], key);
    target.note(key, raw[key]);
    raw.pop();
    return value;
  },
  shift() { return draftOf(this).raw.length === 0 ? undefined : this.splice(0, 1)[0]; },
  unshift(...values) {
    this.splice(0, 0, ...values);
    return draftOf(this).raw.length;
  },
  splice(...values) {
    const target = draftOf(this), raw = target.moving();
    const removed = raw.splice(...values.slice(0, 2), ...values.slice(2).map(Draft.taken));
    return removed.map((value) => target.shown(value, ''));
  },
  sort(compare) {
    const target = draftOf(this), raw = target.moving();
    raw.sort(compare && ((one, other) => compare(target.shown(one, ''), target.shown(other, ''))));
    return this;
  },
  reverse: moved('reverse'),
  fill: moved('fill'),
  copyWithin: moved('copyWithin'),
  // What a text or a number is looked up among is no draft, so that needs no proxy.
  indexOf(...values) { return Array.prototype.indexOf.apply(isObject(values[0]) ? this : draftOf(this).raw, values); },
  includes(...values) { return Array.prototype.includes.apply(isObject(values[0]) ? this : draftOf(this).raw, values); },
};

// What was there at the beginning of the run.

function originalArray(raw, target = run.drafts.get(raw)) {
  if (target?.before) return target.before;
  if (!target?.old) return raw;
  const before = raw.slice(0, target.length);
  for (const [key, was] of target.old) if (was !== ABSENT) before[key] = was;
  before.length = target.length;
  return before;
}

function originalAt(raw, key) {
  const was = run.drafts.get(raw)?.old?.get(key);
  if (was !== undefined) return was;
  return hasOwn(raw, key) ? raw[key] : ABSENT;
}

function originalKeys(raw) {
  const old = run.drafts.get(raw)?.old;
  const keys = Object.keys(raw);
  if (!old) return keys;
  const gone = [...old.keys()].filter((key) => !hasOwn(raw, key));
  return [...keys, ...gone].filter((key) => old.get(key) !== ABSENT);
}

/** Takes back all that the run has done to the state. */
function rollBack() {
  for (const { raw, before, old, length } of run.changed) {
    if (before === null && old === null) continue;   // the stack was full before it was changed
    if (before !== null) {
      for (let index = 0; index < before.length; index += 1) raw[index] = before[index];
      raw.length = before.length;
      continue;
    }
    old.forEach((was, key) => {
      if (was === ABSENT) delete raw[key];
      else put(raw, key, was);
    });
    if (Array.isArray(raw)) raw.length = length;
  }
}

/** A copy of a value for the state, after a check that it is JSON. */
function adopt(value, pointer, above = []) {
  spend(typeof value === 'string' ? value.length : 0);
  if (typeof value === 'string') {
    if (!value.isWellFormed()) throw new ModelFault('half of a surrogate pair is not a text', pointer);
    return value;
  }
  if (typeof value === 'number') {
    if (!Number.isFinite(value)) throw new ModelFault(`${value} is not JSON`, pointer);
    return value === 0 ? 0 : value;
  }
  if (typeof value === 'boolean' || value === null) return value;
  if (value === undefined) throw new ModelFault('undefined is not JSON; delete the member, or use null', pointer);
  if (typeof value !== 'object') throw new ModelFault(`a ${typeof value} is not JSON`, pointer);
  const raw = unwrap(value);
  if (above.includes(raw)) throw new ModelFault('the state contains itself', pointer);
  if (above.length >= LEVELS_MAX) throw new ModelFault(`the state has more than ${LEVELS_MAX} levels`, pointer);
  above.push(raw);
  let copy;
  if (Array.isArray(raw)) {
    copy = [];
    for (let index = 0; index < raw.length; index += 1) copy.push(adopt(raw[index], `${pointer}/${index}`, above));
  } else {
    const prototype = Object.getPrototypeOf(raw);
    if (prototype !== Object.prototype && prototype !== null) {
      const name = Object.prototype.toString.call(raw).slice(8, -1);
      const what = name === 'Object' ? 'an object of a class' : `a ${name}`;
      throw new ModelFault(`${what} is not JSON${name === 'Date' ? '; store its toISOString()' : ''}`, pointer);
    }
    if (Object.getOwnPropertySymbols(raw).length > 0)
      throw new ModelFault('a symbol cannot be a name in the state', pointer);
    copy = {};
    for (const key of sortedKeys(raw)) {
      spend(key.length);
      if (!key.isWellFormed()) throw new ModelFault('half of a surrogate pair is not a name', pointer);
      put(copy, key, adopt(raw[key], `${pointer}/${escaped(key)}`, above));
    }
  }
  above.pop();
  return copy;
}
