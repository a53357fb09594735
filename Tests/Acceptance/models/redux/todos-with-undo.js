import { combineReducers, createSlice, createAction } from '@reduxjs/toolkit'

const undo = createAction('UNDO')
const redo = createAction('REDO')

// A reducer around another one: it keeps the states before and after the present one.
const undoable = (reducer, limit = 5) => (state = { past: [], present: reducer(undefined, {}), future: [] }, action) => {
  const { past, present, future } = state
  switch (action.type) {
    case 'UNDO':
      if (past.length === 0) return state
      return { past: past.slice(0, past.length - 1), present: past[past.length - 1], future: [present, ...future] }
    case 'REDO':
      if (future.length === 0) return state
      return { past: [...past, present], present: future[0], future: future.slice(1) }
    default: {
      const next = reducer(present, action)
      return next === present ? state : { past: [...past, present].slice(-limit), present: next, future: [] }
    }
  }
}

const todos = createSlice({
  name: 'todos',
  initialState: [],
  reducers: {
    add: (state, action) => { state.push({ ...action.payload, completed: false }) },
    toggle: (state, action) => {
      const todo = state.find((each) => each.id === action.payload.id)
      if (todo) todo.completed = !todo.completed
    },
    clear: (state) => state.filter((each) => !each.completed),
    sort: (state) => { state.sort((one, other) => (one.text < other.text ? -1 : one.text > other.text ? 1 : 0)) },
  },
})

export default combineReducers({ todos: undoable(todos.reducer) })
