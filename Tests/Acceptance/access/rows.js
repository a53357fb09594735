import { createSlice } from '@reduxjs/toolkit';
import { reject, view } from 'storekeeper';

createSlice({
  name: 'rows', initialState: {},
  reducers: {
    put(state, { payload: { id, text, owner }, meta }) {
      if (id in state && state[id].owner !== (owner ?? meta.by)) reject('rows.unknown', 'there is no such row of yours', '/id');
      state[id] = { text, owner: owner ?? meta.by };
    },
    drop(state, { payload: { id }, meta }) {
      if (state[id]?.owner !== meta.by) reject('rows.unknown', 'there is no such row of yours', '/id');
      delete state[id];
    },
  },
});
createSlice({
  name: 'inbox', initialState: {},
  reducers: { send(state, { payload: { to, text } }) { (state[to] ??= []).push(text); } },
});

const of = (rows, owner) => Object.fromEntries(Object.entries(rows).filter(([, row]) => row.owner === owner));
view('mine', ({ rows }, parameters, { subject }) => of(rows, subject), { reads: ['rows'] });
view('count', ({ rows }, { text }, { subject }) => Object.values(of(rows, subject)).filter((row) => row.text === text).length, {
  parameters: { type: 'object', required: ['text'], properties: { text: { type: 'string' } } },
});
view('by', ({ rows }, { owner, first = 100 }) => Object.keys(of(rows, owner)).sort().slice(0, first), {
  reads: ['rows'],
  parameters: {
    type: 'object', required: ['owner'], additionalProperties: false,
    properties: { owner: { type: 'string', maxLength: 20 }, first: { type: 'integer', minimum: 0 } },
  },
});
view('slow', ({ rows }, { milliseconds }) => {
  // The engine has no clock: some 10,000 additions take a while.
  let sum = 0;
  for (let index = 0; index < milliseconds * 10000; index += 1) sum += index % 7;
  return { sum, count: Object.keys(rows).length };
}, { parameters: { type: 'object', required: ['milliseconds'], properties: { milliseconds: { type: 'integer' } } } });
