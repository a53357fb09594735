// The world of a model: what would make a replay differ is gone or says what to use instead, and all else is frozen.

const sayings = [];   // what the model has written to console since the last answer
const SAYINGS_MAX = 100, SAYING_MAX = 500;

function say(level, values) {
  if (sayings.length >= SAYINGS_MAX) return;
  const text = values.map((value) => {
    if (typeof value === 'string') return value;
    try { return JSON.stringify(value) ?? String(value); } catch { return `a ${typeof value}`; }
  }).join(' ');
  sayings.push({ level, text: cut(text, SAYING_MAX) });
}

const KEPT = new Set(`NaN undefined Infinity isNaN isFinite escape unescape decodeURI decodeURIComponent encodeURI encodeURIComponent globalThis
  parseInt parseFloat ArrayBuffer EvalError RangeError ReferenceError SyntaxError TypeError URIError AggregateError Proxy Reflect JSON Math
  Int8Array Int16Array Int32Array Uint8Array Uint8ClampedArray Uint16Array Uint32Array Float16Array Float32Array Float64Array BigInt64Array
  BigUint64Array DataView Date Error Boolean Map Number Set WeakMap WeakSet Object Array RegExp Iterator String BigInt Symbol`.split(/\s+/));

const forbidden = (sentence) => function () { throw new ModelFault(sentence); };
const define = (object, name, value) => Object.defineProperty(object, name, { value, writable: true, enumerable: false, configurable: true });

function restrictDates() {
  const Native = Date, nativeParse = Date.parse;
  const NOW = 'the present time differs when an action is replayed; use action.meta.time';
  // As JSON has it, also with a space for the T, and as HTTP has it: the same instant on every machine.
  const check = (text) => {
    if (typeof text !== 'string') return text;
    const known = text.replace(/^(\d{4}-\d\d-\d\d) (?=\d\d:)/, '$1T');
    if (!/^\d{4}(-\d\d(-\d\d(T.*(Z|[+-]\d\d:?\d\d))?)?)?$|^\w{3}, \d\d \w{3} \d{4} \d\d:\d\d:\d\d GMT$/.test(known)) {
      throw new ModelFault('a Date is read from a text with its time zone, such as 2030-01-31T12:00:00Z');
    }
    return known;
  };
  const Restricted = function Date(...values) {
    if (!new.target || values.length === 0) throw new ModelFault(NOW);
    if (values.length > 1)
      throw new ModelFault('a Date of several numbers depends on the local time zone; use new Date(Date.UTC(...))');
    return Reflect.construct(Native, [check(values[0])], new.target);
  };
  Restricted.prototype = Native.prototype;
  define(Restricted, 'UTC', Native.UTC);
  define(Restricted, 'parse', (text) => nativeParse(check(String(text))));
  define(Restricted, 'now', forbidden(NOW));
  define(Native.prototype, 'constructor', Restricted);
  define(globalThis, 'Date', Restricted);
  const local = /^([gs]et)(Date|Day|FullYear|Hours|Milliseconds|Minutes|Month|Seconds|Year|TimezoneOffset)$|^to(Date|Time|GMT)?String$/;
  for (const name of Object.getOwnPropertyNames(Native.prototype)) {
    const other = /^[gs]et/.test(name) ? name.replace(/^([gs]et)/, '$1UTC') : 'toISOString';
    if (local.test(name)) define(Native.prototype, name, forbidden(`${name} depends on the local time zone; use ${other}`));
  }
}

const KEEPS = 'the state does not record what a variable of the file keeps';

/** Makes methods that change an object in place refuse what a variable of the file leads to, which is frozen. */
function guardFrozen(prototype, names) {
  for (const name of names) {
    const native = prototype[name];
    if (native === undefined) continue;
    define(prototype, name, function (...values) {
      if (frozen.has(this)) throw new ModelFault(KEEPS);
      return native.apply(this, values);
    });
  }
}

function restrict() {
  restrictDates();
  guardFrozen(Date.prototype, Object.getOwnPropertyNames(Date.prototype).filter((name) => /^set(UTC|Time$)/.test(name)));
  for (const { prototype } of [Map, Set, WeakMap, WeakSet]) guardFrozen(prototype, ['set', 'add', 'delete', 'clear', 'getOrInsert', 'getOrInsertComputed']);
  define(Math, 'random', forbidden('a random number would be another one when an action is replayed; derive it from action.meta.id'));
  for (const prototype of [Array, Number, String, BigInt, Date, Object.getPrototypeOf(Uint8Array)].map((each) => each.prototype)) {
    for (const name of Object.getOwnPropertyNames(prototype)) {
      if (name.startsWith('toLocale')) define(prototype, name, forbidden(`${name} depends on the locale of the machine`));
    }
  }
  // RTK's own examples sort by it; here it compares code units, which is the same on every machine.
  define(String.prototype, 'localeCompare', function localeCompare(other) {
    const one = String(this), two = String(other);
    return one < two ? -1 : one > two ? 1 : 0;
  });
  for (const name of Object.getOwnPropertyNames(RegExp)) {
    if (!['length', 'name', 'prototype', 'escape'].includes(name)) delete RegExp[name];   // RegExp.$1 remembers
  }
  // Names that clients send are data: an object has no more of its own than what is named here.
  for (const name of Object.getOwnPropertyNames(Object.prototype)) {
    if (!['hasOwnProperty', 'toString', 'valueOf'].includes(name)) delete Object.prototype[name];
  }
  delete Function.prototype.constructor;   // gone with the global, which JSGlobalContextSetEvalEnabled has switched off
  for (const name of Object.getOwnPropertyNames(globalThis)) if (!KEPT.has(name)) delete globalThis[name];
  for (const name of ['setTimeout', 'setInterval', 'setImmediate', 'queueMicrotask', 'fetch', 'requestAnimationFrame']) {
    define(globalThis, name, forbidden(`${name}: ${client}`));
  }
  const console = Object.fromEntries(['log', 'info', 'warn', 'error', 'debug'].map((level) => [level, (...values) => say(level, values)]));
  define(globalThis, 'console', console);
  for (const name of Object.keys(toolkit)) define(globalThis, name, toolkit[name]);
  define(globalThis, 'structuredClone', structuredClone);
  for (const name of Object.keys(advice)) define(globalThis, name, forbidden(advice[name]));
  // `this.name = ...` in a class of errors would throw, because the prototype is frozen; here it makes a member, as ever.
  // (The same for Object.prototype makes every object slow: there an assignment to `toString` throws.)
  for (const { prototype } of [Error, TypeError, RangeError, SyntaxError, ReferenceError]) {
    for (const name of Object.getOwnPropertyNames(prototype)) {
      const { value } = Object.getOwnPropertyDescriptor(prototype, name);
      Object.defineProperty(prototype, name, {
        get: () => value,
        set(own) {
          if (this === prototype) throw new TypeError(`${name} of a prototype cannot be changed`);
          Object.defineProperty(this, name, { value: own, writable: true, enumerable: true, configurable: true });
        },
        configurable: true,
      });
    }
  }
  for (const each of [globalThis, toolkit, ModelFault, Rejection]) freeze(each);
  // What only syntax reaches.
  const iterators = [[], new Map(), new Set(), ''].map((each) => each[Symbol.iterator]());
  for (const hidden of [function* () {}, /a/[Symbol.matchAll](''), ...iterators]) {
    freeze(Object.getPrototypeOf(hidden));
  }
}

const frozen = new WeakSet();
const prototypes = new WeakSet();   // of functions, which look like what the functions make
const { isPrototypeOf } = Object.prototype;
const everyIterator = Object.getPrototypeOf(Object.getPrototypeOf([][Symbol.iterator]()));
const textOfFunction = Function.prototype.toString;

/** @returns what a value is that keeps something which cannot be frozen; undefined for any other. */
function unfreezable(value) {
  if (ArrayBuffer.isView(value) || value instanceof ArrayBuffer) return value instanceof ArrayBuffer ? 'an ArrayBuffer' : `a ${value.constructor.name}`;
  if (typeof value === 'function') return hasPrivateField(value, true) ? 'a class with a private static field' : undefined;
  if (prototypes.has(value)) return undefined;
  if (isPrototypeOf.call(everyIterator, value)) return 'an iterator';
  for (let each = Object.getPrototypeOf(value); each !== null; each = Object.getPrototypeOf(each)) {
    const made = Object.getOwnPropertyDescriptor(each, 'constructor')?.value;
    if (typeof made === 'function' && hasPrivateField(made, false)) return 'an object with a private field';
  }
  return undefined;
}

/** Whether a class declares a private field that is no method: only its text tells. */
function hasPrivateField(made, isStatic) {
  const text = textOfFunction.call(made);
  if (!text.startsWith('class') || !text.includes('#')) return false;
  const found = tokens(text);
  return found.some(({ kind, text: name, depth }, index) => kind === 'name' && name[0] === '#' && depth === 1
    && !['.', '?.'].includes(found[index - 1].text) && found[index + 1]?.text !== '(' && (found[index - 1].text === 'static') === isStatic);
}

/** The keys and values of a map or a set; none of any other value. */
function membersOf(value) {
  const found = [];
  for (const { prototype } of [Map, Set]) {
    try { prototype.forEach.call(value, (member, key) => found.push(key, member)); } catch { /* It is no such thing. */ }
  }
  return found;
}

/** Freezes a value and all that it leads to; what cannot be frozen is refused, with its owner where that is the model's file. */
function freeze(value, owner = undefined) {
  if ((typeof value !== 'object' && typeof value !== 'function') || value === null || frozen.has(value)) return;
  frozen.add(value);
  if (typeof value === 'function' && isObject(value.prototype)) prototypes.add(value.prototype);
  const what = owner === undefined ? undefined : unfreezable(value);
  if (what !== undefined) refuse(`${owner} has ${what}: ${KEEPS}, and that cannot be frozen; keep it in a member of a slice, or in a constant array or object`);
  Object.freeze(value);
  if (owner !== undefined) for (const member of membersOf(value)) freeze(member, owner);
  freeze(Object.getPrototypeOf(value), owner);
  for (const key of Reflect.ownKeys(value)) {
    const { value: member, get, set } = Object.getOwnPropertyDescriptor(value, key);
    freeze(member, owner);
    freeze(get, owner);
    freeze(set, owner);
  }
}
