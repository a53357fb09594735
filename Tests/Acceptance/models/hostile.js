// A model that does what none should: each reducer of the slice `evil` is a fault of its own.
import { createSlice } from '@reduxjs/toolkit';
import { view } from 'storekeeper';

const box = { value: null };

const evil = createSlice({
  name: 'evil',
  initialState: { n: 0, list: [], object: {} },
  reducers: {
    loop() { for (;;); },
    finallyLoop() { for (;;) { try { continue; } finally { continue; } } },
    allocate() { const all = []; for (;;) all.push(new Array(1000).fill(1)); },
    repeat(state) { state.object.text = 'x'.repeat(2 ** 30); },
    fill(state) { state.list = Array(1e9).fill(); },
    recurse() { const deeper = () => deeper() + 1; deeper(); },
    expression(state) { state.n = /^(a+)+$/.test(`${'a'.repeat(40)}b`) ? 1 : 2; },
    text() { throw 'a text'; },
    nothing() { throw null; },
    keep(state) { box.value = state; },
    global(state) { globalThis.kept = state; },
    pollute() { Object.prototype.polluted = 1; },
    deep(state) { let at = state.object; for (let level = 0; level < 5000; level += 1) { at.a = {}; at = at.a; } },
    member(state, { payload }) { state.object[payload.key] = payload.value; },
    cycle(state) { const a = {}; a.a = a; state.object.a = a; },
    date(state) { state.n = Date.now(); },
    random(state) { state.n = Math.random(); },
    undefinedMember(state) { state.n = undefined; },
    uninterruptible(state) { state.n = /(?:.?){200}z/.test('a'.repeat(100000)) ? 1 : 0; },
    clear(state) { for (const key of Object.keys(state)) delete state[key]; },
  },
});

const good = createSlice({ name: 'good', initialState: { n: 0 }, reducers: { add(state) { state.n += 1; } } });

view('failing', () => { throw new Error('no value'); });
view('endless', () => { for (;;); });
view('double', (state) => state.good.n * 2);
