// Patches (RFC 6902): from the notes of a run, and into the state.

/** The operations that lead from the state at the beginning of the run to what it is now, with values of their own. */
function difference() {
  const operations = [];
  room = answerMax;
  compare(originalAt(holder, 'state'), holder.state, '', operations);
  const odd = operations.find(({ path }) => !path.isWellFormed());
  if (odd !== undefined) throw new ModelFault('half of a surrogate pair is not a name', odd.path);
  return operations;
}

/** @param was an object as it was, or another value. @param value what is in its place now. */
function compare(was, value, path, operations) {
  const now = unwrap(value);
  if (was === now) {
    if (isObject(now) && run.drafts.get(now)?.touched) compareTouched(run.drafts.get(now), path, operations);
  } else if (!isObject(was) || !isObject(now) || Array.isArray(was) !== Array.isArray(now)) {
    operations.push({ op: 'replace', path, value: adopt(value, path) });
  } else if (Array.isArray(was)) compareArrays(originalArray(was), now, path, operations);
  else if (!isPlain(now)) operations.push({ op: 'replace', path, value: adopt(value, path) });
  else {
    for (const key of originalKeys(was)) {
      if (!hasOwn(now, key)) operations.push({ op: 'remove', path: `${path}/${escaped(key)}` });
      else compare(originalAt(was, key), now[key], `${path}/${escaped(key)}`, operations);
    }
    for (const key of sortedKeys(now)) {
      if (originalAt(was, key) === ABSENT) add(`${path}/${escaped(key)}`, now[key], operations);
    }
    if (Object.getOwnPropertySymbols(now).length > 0) adopt(now, path);
  }
}

const isPlain = (raw) => [Object.prototype, null].includes(Object.getPrototypeOf(raw));
const add = (path, value, operations) => {
  spend(path.length);
  operations.push({ op: 'add', path, value: adopt(value, path) });
};

/** The same object as before, with its notes: only what they name is looked at. */
function compareTouched(target, path, operations) {
  const { raw, old, before, children, length } = target;
  if (before !== null) return compareArrays(before, raw, path, operations);
  if (old !== null) {
    if (Array.isArray(raw)) {
      for (let index = length - 1; index >= raw.length; index -= 1) operations.push({ op: 'remove', path: `${path}/${index}` });
      for (const [key, was] of old) if (was !== ABSENT && Number(key) < raw.length) compare(was, raw[key], `${path}/${key}`, operations);
      for (let index = length; index < raw.length; index += 1) add(`${path}/${index}`, raw[index], operations);
    } else {
      old.forEach((was, key) => {
        const at = `${path}/${escaped(key)}`;
        if (!hasOwn(raw, key)) was === ABSENT || operations.push({ op: 'remove', path: at });
        else if (was === ABSENT) add(at, raw[key], operations);
        else compare(was, raw[key], at, operations);
      });
    }
  }
  if (children !== null) {
    for (const child of children) {
      if (child.touched && raw[child.key] === child.raw && !old?.has(child.key)) compareTouched(child, `${path}/${escaped(child.key)}`, operations);
    }
  }
}

/** Two arrays: what they have in common at both ends stays, and between them equal elements are kept in order. */
function compareArrays(was, now, path, operations) {
  const same = (index, other) => was[index] === unwrap(now[other]);
  const mark = operations.length;
  let start = 0, end = was.length, newEnd = now.length;
  while (start < end && start < newEnd && same(start, start)) start += 1;
  while (end > start && newEnd > start && same(end - 1, newEnd - 1)) { end -= 1; newEnd -= 1; }
  const lastOld = new Map(), lastNew = new Map(), kept = [];
  for (let index = start; index < end; index += 1) lastOld.set(was[index], index);
  for (let index = start; index < newEnd; index += 1) lastNew.set(unwrap(now[index]), index);
  let index = start;
  for (let old = start; old < end || index < newEnd;) {
    if (old < end && index < newEnd && same(old, index)) {
      kept.push(index);
      old += 1; index += 1;
      continue;
    }
    const isGone = old < end && !(lastNew.get(was[old]) >= index);
    const isNew = index < newEnd && !(lastOld.get(unwrap(now[index])) >= old);
    if (isGone && isNew) {
      compare(was[old], now[index], `${path}/${index}`, operations);
      old += 1; index += 1;
    } else if (isNew) {
      add(`${path}/${index}`, now[index], operations);
      index += 1;
    } else {
      operations.push({ op: 'remove', path: `${path}/${index}` });
      old += 1;
    }
  }
  // Each insertion into a long array moves what is behind it: beyond some, the whole array is shorter and faster.
  if (operations.length - mark > 64 + now.length / 16) {
    operations.length = mark;
    operations.push({ op: 'replace', path, value: adopt(now, path) });
    return;
  }
  const descend = (at) => {
    const target = run.drafts.get(unwrap(now[at]));
    if (target?.touched) compareTouched(target, `${path}/${at}`, operations);
  };
  for (let at = 0; at < start; at += 1) descend(at);
  for (const at of kept) descend(at);
  for (let at = newEnd; at < now.length; at += 1) descend(at);
}

/** Carries out one operation on the state, and notes first what takes it back. */
function apply({ op, path, value }, undo) {
  const keys = `/state${path}`.split('/');
  let target = holder;
  for (let level = 1; level < keys.length - 1; level += 1) target = target[unescaped(keys[level])];
  const key = unescaped(keys[keys.length - 1]);
  if (Array.isArray(target) && op !== 'replace') {
    const index = key === '-' ? target.length : Number(key);
    undo.push({ target, index, isInserted: op === 'add', was: target[index] });
    target.splice(index, op === 'add' ? 0 : 1, ...(op === 'add' ? [value] : []));
    return;
  }
  undo.push({ target, key, was: hasOwn(target, key) ? target[key] : ABSENT });
  if (op === 'remove') delete target[key];
  else put(target, key, value);
}

function takeBack(undo) {
  for (const { target, key, index, isInserted, was } of undo.reverse()) {
    if (index !== undefined) target.splice(index, isInserted ? 1 : 0, ...(isInserted ? [] : [was]));
    else if (was === ABSENT) delete target[key];
    else put(target, key, was);
  }
}

/** Applies operations; all of them, or none. */
function change(operations) {
  const undo = [];
  try {
    for (const operation of operations) apply(operation, undo);
  } catch (error) {
    takeBack(undo);
    throw error;
  }
}
