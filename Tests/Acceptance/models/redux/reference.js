// The reducers of a file, by plain semantics: what a case changes is a deep copy, and nothing is shared between two states.
//
//     node reference.js FILE        answers each line, an action, with the next state; the first line is the initial state
const { readFileSync } = require('node:fs');

let root = null;
const freeze = (value) => {
  if (typeof value === 'object' && value !== null && !Object.isFrozen(value)) Object.values(Object.freeze(value)).forEach(freeze);
  return value;
};
const toolkit = {
  createAction: (type) => (payload) => ({ type, payload }),
  createSlice({ name, initialState, reducers }) {
    const reducer = (state = initialState, action) => {
      const found = reducers[action.type?.startsWith(`${name}/`) ? action.type.slice(name.length + 1) : ''];
      if (found === undefined) return state;
      const copy = structuredClone(state);
      const next = found(copy, action) ?? copy;
      // As with Redux, an equal state is the same state.
      return JSON.stringify(next) === JSON.stringify(state) ? state : next;
    };
    root ??= toolkit.combineReducers({ [name]: reducer });
    return { name, reducer, actions: {} };
  },
  combineReducers(reducers) {
    root = (state = {}, action) => Object.fromEntries(Object.entries(reducers).map(([key, each]) => [key, each(state[key], action)]));
    return root;
  },
  configureStore({ reducer }) { root = reducer; },
};
const source = readFileSync(process.argv[2], 'utf8').replaceAll(/^import .*$/gm, '').replaceAll(/^export (default )?/gm, '');
new Function(...Object.keys(toolkit), source)(...Object.values(toolkit));
let state = freeze(root(undefined, { type: '@@initial' }));
console.log(JSON.stringify(state));
require('node:readline').createInterface({ input: process.stdin }).on('line', (line) => {
  state = freeze(structuredClone(root(state, JSON.parse(line))));
  console.log(JSON.stringify(state));
});
