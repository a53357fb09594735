// Tables of entities, {ids, entities}: each verb changes a draft and costs what it touches.

/** The first states of adapters: a slice that begins with one is a table. */
const tables = new WeakSet();

function createEntityAdapter({ selectId = (entity) => entity.id, sortComparer = false } = {}) {
  const entry = (entity) => {
    const id = selectId(entity);
    if (typeof id !== 'string' && typeof id !== 'number')
      refuse('an entity of a table has no ID, or one that is neither a text nor a number; make the ID a required member of the payload schema, to tell clients');
    return id;
  };
  const list = (entities) => (Array.isArray(entities) ? entities : Object.values(entities));
  // The place of an entity: behind those that equal it, because of equal ones the newer is the later, or before them.
  const place = (state, entity, isBehindEqual = true) => {
    let low = 0, high = state.ids.length;
    while (low < high) {
      const middle = (low + high) >> 1;
      const order = sortComparer(entity, state.entities[state.ids[middle]]);
      if (order < 0 || (order === 0 && !isBehindEqual)) high = middle;
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
  // An entity that has changed moves only where its neighbours demand it: as in a stable sort past no equal one, and
  // behind all of them where another entity has taken its place.
  const settle = (state, id, isReplaced = false) => {
    if (!sortComparer) return;
    const { ids, entities } = state;
    const index = position(state, id);
    const isBehind = index === 0 || sortComparer(entities[ids[index - 1]], entities[id]) <= 0;
    const order = index === ids.length - 1 ? -1 : sortComparer(entities[id], entities[ids[index + 1]]);
    const isBefore = order < 0 || (order === 0 && !isReplaced);
    if (isBehind && isBefore) return;
    ids.splice(index, 1);
    ids.splice(place(state, entities[id], isBefore || isReplaced), 0, id);
  };

  const setOne = (state, entity) => {
    const id = entry(entity);
    if (!(id in state.entities)) return insert(state, id, entity);
    state.entities[id] = entity;
    settle(state, id, true);
  };
  const addOne = (state, entity) => {
    const id = entry(entity);
    if (!(id in state.entities)) insert(state, id, entity);
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
  /** Changes an entity where it is, and returns its ID afterwards. */
  const applyUpdate = (state, { id, changes }) => {
    const entity = state.entities[id];
    const changed = { ...entity, ...changes }, newID = entry(changed);
    if (String(newID) === String(id)) {
      Object.assign(entity, changes);
      return newID;
    }
    // Another ID: the entity keeps its place, and an entity which has the ID already goes.
    removeOne(state, newID);
    state.ids.splice(position(state, id), 1, newID);
    delete state.entities[id];
    state.entities[newID] = changed;
    return newID;
  };
  const updateOne = (state, update) => {
    if (update.id in state.entities) settle(state, applyUpdate(state, update));
  };
  // Of several changes of one entity the later ones win, also where one of them gives it another ID.
  const updateMany = (state, updates) => {
    const merged = new Map();
    for (const { id, changes } of list(updates)) {
      if (id in state.entities) merged.set(String(id), { id, changes: { ...merged.get(String(id))?.changes, ...changes } });
    }
    if (merged.size === 1) return updateOne(state, [...merged.values()][0]);
    for (const update of merged.values()) if (update.id in state.entities) applyUpdate(state, update);
    if (sortComparer && merged.size > 0) state.ids.sort((one, other) => sortComparer(state.entities[one], state.entities[other]));
  };
  const upsertMany = (state, entities) => {
    const updates = [];
    for (const entity of list(entities)) {
      const id = entry(entity);
      if (id in state.entities) updates.push({ id, changes: entity });
      else insert(state, id, entity);
    }
    updateMany(state, updates);
  };
  const each = (verb) => (state, entities) => { for (const entity of list(entities)) verb(state, entity); };
  const setMany = (state, entities) => {
    if (!sortComparer) return each(setOne)(state, entities);
    const last = {};
    for (const entity of list(entities)) put(last, entry(entity), entity);
    each(setOne)(state, last);
  };

  // A verb is called with a value, or is the case reducer itself and is called with an action.
  const verb = (work) => (state, argument) =>
    changeDraft(state, (now) => {
      const isAction = isObject(argument) && typeof argument.type === 'string' && hasOwn(argument, 'payload');
      work(now, isAction ? argument.payload : argument);
      return now;
    });
  const verbs = {
    addOne, addMany: each(addOne), setOne, setMany, upsertOne: (state, entity) => upsertMany(state, [entity]), upsertMany,
    setAll: (state, entities) => { removeAll(state); setMany(state, entities); },
    removeOne, removeMany, removeAll, updateOne, updateMany,
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
