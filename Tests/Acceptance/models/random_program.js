// A random program of changes, for a draft and for a plain object alike: numbers choose what is done to what.
function runProgram(state, words) {
  let at = 0;
  let hasWritten = false;
  const made = new Set();
  const hand = [state];
  const word = (count) => words[at++ % words.length] % count;
  const take = (value) => { if (typeof value === 'object' && value !== null) hand.push(value); return value; };
  const make = (value) => { made.add(value); return take(value); };
  const names = ['a', 'b', 'c', '', 'a/b', 'm~n', '__proto__', 'constructor', '7', '10', 'ä'];
  const literals = [() => 1, () => 0, () => 2.5, () => 'text', () => null, () => true, () => [], () => ({}), () => ({ a: 1, b: { c: [1] } }), () => [1, { a: 2 }, 'x'], () => word(8) === 0 ? undefined : 3];
  const value = () => {
    if (word(3) === 0) return hand[word(hand.length)];
    const literal = literals[word(literals.length)]();
    return typeof literal === 'object' && literal !== null ? make(literal) : literal;
  };
  // The names of a draft come in an order of their own.
  const text = (value) => JSON.stringify(value, (_, each) => (typeof each === 'object' && each !== null && !Array.isArray(each) ? Object.keys(each).sort().map((key) => [key, each[key]]) : each)) ?? '';
  const order = (one, other) => { const [x, y] = [text(one), text(other)]; return x < y ? -1 : x > y ? 1 : 0; };
  const isTree = (value, above = []) => typeof value !== 'object' || value === null || (!above.includes(value) && Object.values(value).every((each) => isTree(each, [...above, value])));
  for (let steps = 1 + word(10); steps > 0; steps -= 1) {
    const target = hand[word(hand.length)];
    const kind = word(20);
    if (kind > 3 && !made.has(target)) hasWritten = true;
    if (kind < 3) {
      const keys = Object.keys(target).sort();
      if (keys.length > 0) take(target[keys[word(keys.length)]]);
    } else if (kind === 3) {
      make(Array.isArray(target) ? [() => [...target], () => target.slice(word(3)), () => target.filter((_, index) => index % 2 === 0), () => target.map((each) => each), () => target.concat([1])][word(5)]() : { ...target });
    } else if (Array.isArray(target)) {
      const index = word(target.length + 1), count = word(3);
      if (kind < 6) target[index] = value();
      else if (kind === 6) target.push(value(), value());
      else if (kind === 7) take(target.pop());
      else if (kind === 8) take(target.shift());
      else if (kind === 9) target.unshift(value());
      else if (kind < 13) target.splice(index, count, ...Array.from({ length: word(3) }, value)).forEach(take);
      else if (kind === 13) { if (isTree(target)) target.sort(order); }
      else if (kind === 14) target.reverse();
      else if (kind === 15) target.fill(value(), index, index + count);
      else if (kind === 16) target.copyWithin(index, count);
      else if (kind === 17) target.length = Math.min(target.length, index);
      else { const other = value(); if (target.indexOf(other) < 0 && !target.includes(1)) target.push(target.length); }
    } else {
      const key = names[word(names.length)];
      if (kind < 13) target[key] = value();
      else if (kind < 17) { const keys = Object.keys(target).sort(); if (keys.length > 0) delete target[keys[word(keys.length)]]; }
      else if (kind < 19) Object.assign(target, { a: value(), z: value() });
      else for (const each of Object.keys(target).sort()) if (typeof target[each] === 'number') target[each] += 1;
    }
  }
  if (word(12) === 0) throw new Error('the program ends so');
  return hasWritten || word(2) === 0 ? undefined : hand[word(hand.length)];
}
