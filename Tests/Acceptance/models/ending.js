// A model that ends the process: a regular expression that backtracks cannot be interrupted.
const ends = () => /(?:.?){200}z/.test('a'.repeat(100000));

const text = createSlice({
  name: 'text',
  initialState: { value: '', n: 0 },
  reducers: {
    set(state, action) { state.value = action.payload.value; },
    match(state, action) { if (action.payload.value === 'bad' && ends()) state.n += 1; },
  },
});

const good = createSlice({ name: 'good', initialState: { n: 0 }, reducers: { add(state) { state.n += 1; } } });

view('matches', (state) => state.text.value === 'bad' && ends(), { reads: ['text'] });
view('sum', (state) => state.good.n, { reads: ['good'] });
