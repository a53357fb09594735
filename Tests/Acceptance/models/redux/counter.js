import { createSlice } from '@reduxjs/toolkit'

// A state that is a number: each case returns a new one.
const counter = createSlice({
  name: 'counter',
  initialState: 0,
  reducers: {
    increment: (state) => state + 1,
    decrement: (state) => state - 1,
    incrementIfOdd: (state) => (state % 2 !== 0 ? state + 1 : state),
    incrementBy: (state, action) => state + action.payload,
  },
})

export const { increment, decrement } = counter.actions
export default counter.reducer
