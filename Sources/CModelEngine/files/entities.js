// Tables of entities, {ids, entities}: each verb changes a draft and costs what it touches.

/** The first states of adapters: a slice that begins with one is a table. */
const tables = new WeakSet();

function createEntityAdapter({ selectId = (entity) => entity.id, sortComparer = false } = {}) {
  const entry = (entity) => {
    const id = selectId(entity);
    if (typeof id !== 'string' && typeof id !== 'number')
      refuse('an entity of a table has no ID that is a text or a number; a payload schema with the ID as a required member tells a client so');
    return id;
  };
  const list = (entities) => (Array.isArray(entities) ? entities : Object.values(entities));
  // The place behind all that do not come after the entity: of equal ones the newer is the later.
  const place = (state, entity) => {
    let low = 0, high = state.ids.length;
    while (low < high) {
      const middle = (low + high) >> 1;
      if (sortComparer(entity, state.entities[state.ids[middle]]) < 0) high = middle;
      else low = middle + 1;
    }
    return low;
  };
  const position = (state, id) => {
    const index = state.ids.indexOf(id);
    return index >= 0 ? index : state.ids.findIndex((each) => String(each) === String(id));
  };
  const insert = (state, id, entity) => {
    if (sortComparer) state.ids.splice(place(state, entity), 0, id);
    else state.ids.push(id);
    state.entities[id] = entity;
  };
  // An entity that has changed moves only where its neighbours demand it.
  const settle = (state, id) => {
    if (!sortComparer) return;
    const { ids, entities } = state;
    const index = position(state, id);
    const isBehind = index === 0 || sortComparer(entities[ids[index - 1]], entities[id]) <= 0;
    const isBefore = index === ids.length - 1 || sortComparer(entities[id], entities[ids[index + 1]]) <= 0;
    if (isBehind && isBefore) return;
    ids.splice(index, 1);
    ids.splice(place(state, entities[id]), 0, id);
  };

  const setOne = (state, entity) => {
    const id = entry(entity);
    if (!(id in state.entities)) return insert(state, id, entity);
    state.entities[id] = entity;
    settle(state, id);
  };
  const addOne = (state, entity) => {
    const id = entry(entity);
    if (!(id in state.entities)) insert(state, id, entity);
  };
  const upsertOne = (state, entity) => {
    const id = entry(entity);
    if (!(id in state.entities)) return insert(state, id, entity);
    Object.assign(state.entities[id], entity);
    settle(state, id);
  };
  const removeOne = (state, id) => {
    if (!(id in state.entities)) return;
    delete state.entities[id];
    state.ids.splice(position(state, id), 1);
  };
  const removeMany = (state, ids) => {
    const gone = new Set(list(ids).map(String).filter((id) => id in state.entities));
    if (gone.size === 1) return removeOne(state, [...gone][0]);
    if (gone.size === 0) return;
    for (const id of gone) delete state.entities[id];
    state.ids = state.ids.filter((id) => !gone.has(String(id)));
  };
  const removeAll = (state) => Object.assign(state, { ids: [], entities: {} });
  const updateOne = (state, { id, changes }) => {
    const entity = state.entities[id];
    if (entity === undefined) return;
    const newID = entry({ ...entity, ...changes });
    if (String(newID) === String(id)) {
      Object.assign(entity, changes);
      return settle(state, newID);
    }
    // Another ID: the entity keeps its place, and takes that of an entity which has the ID already.
    const changed = { ...entity, ...changes };
    removeOne(state, newID);
    state.ids.splice(position(state, id), 1, newID);
    delete state.entities[id];
    state.entities[newID] = changed;
    settle(state, newID);
  };
  const each = (verb) => (state, entities) => { for (const entity of list(entities)) verb(state, entity); };

  // A verb is called with a value, or is the case reducer itself and is called with an action.
  const verb = (change) => (state, argument) =>
    produce(state, (now) => {
      const isAction = isObject(argument) && typeof argument.type === 'string' && hasOwn(argument, 'payload');
      change(now, isAction ? argument.payload : argument);
      return now;
    });
  const verbs = {
    addOne, addMany: each(addOne), setOne, setMany: each(setOne), upsertOne, upsertMany: each(upsertOne),
    setAll: (state, entities) => { removeAll(state); each(addOne)(state, entities); },
    removeOne, removeMany, removeAll, updateOne, updateMany: each(updateOne),
  };
  const adapter = Object.fromEntries(Object.entries(verbs).map(([name, change]) => [name, verb(change)]));

  const select = {
    selectIds: (table) => table.ids,
    selectEntities: (table) => table.entities,
    selectAll: (table) => table.ids.map((id) => table.entities[id]),
    selectTotal: (table) => table.ids.length,
    selectById: (table, id) => table.entities[id],
  };
  return Object.assign(adapter, {
    selectId, sortComparer,
    getInitialState: (others = {}, entities = []) => {
      const state = { ids: [], entities: {}, ...others };
      const table = adapter.addMany(state, entities);
      tables.add(table);
      return table;
    },
    getSelectors: (selectTable = (state) => state) =>
      Object.fromEntries(Object.entries(select).map(([name, selector]) => 
        [name, reading((state, ...values) => selector(selectTable(state), ...values), readsOf.get(selectTable))])),
  });
}
