// A counter that does not go below zero.
//
//     $ storekeeper serve --model counter.js
//     $ curl --json '{"type":"counter/add","payload":{"amount":2}}' localhost:8080/v1/actions
//     {"cursor":"k3v9q7m2abcdefgh.1","version":1,"id":"k3v9q7m2abcdefgh.1","changed":true}
//     $ curl localhost:8080/v1/state/counter
//     {"value":2}
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
