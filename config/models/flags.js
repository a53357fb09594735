// Feature flags: on for everybody, for named keys, or for a percentage of all keys. A key is a user, a tenant, a host.
//
//     $ storekeeper model test flags.js flags.tests.jsonl
//     8 passed, 0 failed
// A client reads the flag, waits for its changes, and decides for a key as `isOn` does.
import { createSlice } from '@reduxjs/toolkit';
import { reject, view } from 'storekeeper';

const name = { type: 'string', minLength: 1, maxLength: 100 };
const key = { type: 'string', minLength: 1, maxLength: 200 };
const percent = { type: 'integer', minimum: 0, maximum: 100 };
const named = (properties) => ({ type: 'object', required: ['name', ...Object.keys(properties)], properties: { name, ...properties }, additionalProperties: false });

const flagOf = (state, { payload }) => state[payload.name] ?? reject('flags.unknown', `there is no flag '${payload.name}'`, '/name');

const flags = createSlice({
  name: 'flags',
  initialState: {},
  reducers: {
    set: {
      payload: named({ percent }),
      reducer(state, action) {
        const { name, percent } = action.payload;
        state[name] ??= { percent, keys: [], changed: '' };
        Object.assign(state[name], { percent, changed: action.meta.time });
      },
    },
    allow: {
      payload: named({ key }),
      reducer(state, action) {
        const flag = flagOf(state, action);
        if (flag.keys.includes(action.payload.key)) return;
        if (flag.keys.length >= 1000) reject('flags.full', 'a flag names at most 1000 keys');
        flag.keys.push(action.payload.key);
        flag.changed = action.meta.time;
      },
    },
    disallow: {
      payload: named({ key }),
      reducer(state, action) {
        const flag = flagOf(state, action);
        const index = flag.keys.indexOf(action.payload.key);
        if (index < 0) return;
        flag.keys.splice(index, 1);
        flag.changed = action.meta.time;
      },
    },
    remove: {
      payload: named({}),
      reducer(state, action) {
        flagOf(state, action);
        delete state[action.payload.name];
      },
    },
  },
});

/** Between 0 and 99, for a flag and a key always the same: FNV-1a of both. A greater percentage keeps those that were on. */
export function bucket(flag, key) {
  let hash = 0x811c9dc5;
  for (const character of `${flag}/${key}`) hash = Math.imul(hash ^ character.codePointAt(0), 0x01000193);
  return (hash >>> 0) % 100;
}

export const isOn = (flag, name, key) => flag.keys.includes(key) || bucket(name, key) < flag.percent;

view('flags-on', (state) => Object.keys(state.flags).filter((name) => state.flags[name].percent === 100));

export default flags.reducer;
