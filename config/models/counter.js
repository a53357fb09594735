// A counter that does not go below zero.
//
//     $ storekeeper model test counter.js counter.tests.jsonl
//     6 passed, 0 failed
import { createSlice } from '@reduxjs/toolkit';
import { reject } from 'storekeeper';

const counter = createSlice({
  name: 'counter',
  initialState: { value: 0 },
  reducers: {
    add: {
      payload: { type: 'object', required: ['amount'], properties: { amount: { type: 'integer' } } },
      reducer(state, action) {
        const sum = state.value + action.payload.amount;
        if (sum < 0) reject('counter.negative', 'the counter would be negative', '/amount');
        if (!Number.isSafeInteger(sum)) reject('counter.overflow', 'the counter holds no more than 53 bits', '/amount');
        state.value = sum;
      },
    },
    reset: (state) => { state.value = 0; },
  },
});

export default counter.reducer;
