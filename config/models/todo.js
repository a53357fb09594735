// A list of things to do, in a table of entities: a change of one entry costs the same among a hundred and a hundred thousand.
//
//     $ storekeeper model test todo.js todo.tests.jsonl
//     5 passed, 0 failed
import { createEntityAdapter, createSlice } from '@reduxjs/toolkit';
import { reject, view } from 'storekeeper';

const adapter = createEntityAdapter();
const { selectAll } = adapter.getSelectors((state) => state.todos);
const id = { type: 'string', minLength: 1 };
const title = { type: 'string', minLength: 1, maxLength: 500 };

const todos = createSlice({
  name: 'todos',
  initialState: adapter.getInitialState(),
  reducers: {
    added: {
      payload: { type: 'object', required: ['title'], properties: { title } },
      // The ID of the action is there only once: it makes a good ID of what the action adds.
      reducer: (state, action) => adapter.addOne(state, { id: action.meta.id, title: action.payload.title, done: false }),
    },
    changed: {
      payload: {
        type: 'object', required: ['id', 'changes'],
        properties: { id, changes: { type: 'object', properties: { title, done: { type: 'boolean' } }, additionalProperties: false } },
      },
      reducer(state, action) {
        if (!(action.payload.id in state.entities)) reject('todos.unknown', `there is no entry ${action.payload.id}`, '/id');
        adapter.updateOne(state, action.payload);
      },
    },
    removed: { payload: id, reducer: adapter.removeOne },
    doneRemoved: (state) => adapter.removeMany(state, state.ids.filter((id) => state.entities[id].done)),
  },
});

view('open-todos', (state) => selectAll(state).filter((todo) => !todo.done));

export default todos.reducer;
