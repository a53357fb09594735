// A board of deployments: what runs where, and who holds the lock of an environment.
//
//     $ storekeeper model test deployments.js deployments.tests.jsonl
//     8 passed, 0 failed
import { createSlice } from '@reduxjs/toolkit';
import { reject, view } from 'storekeeper';

const HISTORY_MAX = 20;
const text = { type: 'string', minLength: 1, maxLength: 200 };
const texts = (...names) => ({ type: 'object', required: names, properties: Object.fromEntries(names.map((name) => [name, text])) });

// Without a prototype, so that a service may be named toString.
const environmentOf = (state, name) => (state[name] ??= { lock: null, services: Object.create(null), history: [] });

function demandLock(name, { lock }, owner) {
  if (lock !== null && lock.owner !== owner) reject('board.locked', `${lock.owner} holds the lock of ${name}: ${lock.reason}`, '/owner');
}

const board = createSlice({
  name: 'board',
  initialState: {},
  reducers: {
    lock: {
      payload: texts('environment', 'owner', 'reason'),
      reducer(state, { payload: { environment: name, owner, reason }, meta }) {
        const environment = environmentOf(state, name);
        demandLock(name, environment, owner);
        environment.lock = { owner, reason, since: environment.lock?.since ?? meta.time };
      },
    },
    unlock: {
      payload: texts('environment', 'owner'),
      reducer(state, { payload: { environment: name, owner } }) {
        const environment = environmentOf(state, name);
        if (environment.lock === null) reject('board.unlocked', `nothing holds the lock of ${name}`, '/environment');
        demandLock(name, environment, owner);
        environment.lock = null;
      },
    },
    deploy: {
      payload: texts('environment', 'service', 'version', 'owner'),
      reducer(state, { payload: { environment: name, service, version, owner }, meta }) {
        const environment = environmentOf(state, name);
        demandLock(name, environment, owner);
        const was = environment.services[service]?.version ?? null;
        environment.services[service] = { version, owner, since: meta.time };
        environment.history.unshift({ service, version, was, owner, at: meta.time });
        if (environment.history.length > HISTORY_MAX) environment.history.pop();
      },
    },
  },
});

view('locks', (state) => Object.fromEntries(Object.entries(state.board).filter(([, { lock }]) => lock !== null).map(([name, { lock }]) => [name, lock])));

export default board.reducer;
