// A model file becomes a script: imports of what is here anyway and `export` are taken out, and lines stay where they are.

/** What a model can import from, each with a name to show how. */
const EXAMPLES = new Map([
  ['@reduxjs/toolkit', 'createSlice'], ['redux', 'combineReducers'], ['immer', 'produce'], ['reselect', 'createSelector'], ['storekeeper', 'reject'],
]);
const SOURCES = [...EXAMPLES.keys()];
const REGEX_BEFORE = new Set(['return', 'typeof', 'case', 'in', 'of', 'delete', 'void', 'throw', 'new', 'do', 'else', 'instanceof', 'yield']);
const TOKEN = new RegExp([
  /(?<space>\s+|\/\/[^\n\u2028\u2029]*|\/\*[^]*?\*\/)/u,
  /(?<name>[#@]?[\p{ID_Start}$_\\][\p{ID_Continue}$\u200c\u200d\\]*)/u,
  /(?<number>\.?[0-9](?:[eE][+-]?|[\w.])*)/u,
  /(?<text>"(?:[^"\\\n]|\\[^])*"|'(?:[^'\\\n]|\\[^])*')/u,
  /(?<sign>=>|\.\.\.|\?\.|[{}()[\];,<>=+\-*%&|^!~?:.@#\/`])/u,
  /(?<other>[^])/u,
].map((each) => each.source).join('|'), 'uy');
const REGEX = /\/(?:[^\/\\[\n]|\\.|\[(?:[^\]\\\n]|\\.)*\])+\/[\w$]*/uy;
const TEMPLATE = /(?:[^`\\$]|\\[^]|\$(?!\{))*(`|\$\{)/uy;

/** What sets the name before it. */
const SET_BEHIND = /^\s*(=(?![=>])|\+\+|--|(\*\*|<<|>>>?|&&|\|\||\?\?|[-+*/%&|^])=)/;

/** Tokens with their depth in brackets; comments and white space are left out. */
function tokens(source) {
  const found = [];
  const open = [];
  let at = 0, depth = 0, hasLineBefore = false;
  const take = (pattern) => {
    pattern.lastIndex = at;
    const match = pattern.exec(source);
    if (match !== null) at = pattern.lastIndex;
    return match;
  };
  const push = (kind, text, start) => {
    found.push({ kind, text, start, end: at, depth, hasLineBefore });
    hasLineBefore = false;
  };
  while (at < source.length) {
    const start = at, last = found[found.length - 1];
    const isValueBefore = last !== undefined && (['number', 'text', 'regex', 'template'].includes(last.kind)
      || (last.kind === 'name' && !REGEX_BEFORE.has(last.text)) || last.text === ']'
      || (last.text === '}' && !hasLineBefore) || (last.text === ')' && !last.isCondition));
    if (source[at] === '/' && source[at + 1] !== '/' && source[at + 1] !== '*' && !isValueBefore && take(REGEX)) {
      push('regex', '', start);
      continue;
    }
    const { space, name, number, text, sign, other } = take(TOKEN).groups;
    if (space !== undefined) hasLineBefore ||= /[\n\u2028\u2029]/.test(space);
    else if (name !== undefined) push('name', name, start);
    else if (number !== undefined) push('number', number, start);
    else if (text !== undefined) push('text', text, start);
    else if (other !== undefined) push('sign', other, start);
    else if (sign === '`' || (sign === '}' && open[open.length - 1] === '`')) {
      if (sign === '}') { open.pop(); depth -= 1; }
      if (take(TEMPLATE)?.[1] === '${') { open.push('`'); depth += 1; push('sign', '${', start); }
      else push('template', '', start);
    } else {
      if ('([{'.includes(sign)) open.push(sign === '(' && ['if', 'while', 'for', 'with'].includes(last?.text) ? 'condition' : sign);
      if (')]}'.includes(sign)) {
        const isCondition = open.pop() === 'condition';
        depth = Math.max(0, depth - 1);
        push('sign', sign, start);
        found[found.length - 1].isCondition = isCondition;
      } else push('sign', sign, start);
      if ('([{'.includes(sign)) depth += 1;
    }
  }
  return found;
}

/** @returns the text of the script, the names that the file declares at depth zero with their lines, and that of its default export. */
function scriptOf(source) {
  const found = tokens(source);
  const pieces = [], names = new Map();
  let copied = 0, defaultName = null;
  const lineOf = (token) => source.slice(0, token.start).split('\n').length;
  const stop = (token, sentence, mistyped = {}) => {
    const error = new ModelFault(sentence);
    Object.assign(error, mistyped, { at: { line: lineOf(token), column: token.start - source.lastIndexOf('\n', token.start - 1) } });
    throw error;
  };
  const replace = (first, last, text) => {
    const gone = source.slice(first.start, last.end);
    const lines = gone.split('\n');
    const columns = lines.length > 1 ? lines[lines.length - 1].length : Math.max(0, gone.length - text.length);
    const rest = '\n'.repeat(lines.length - 1) + ' '.repeat(columns);
    pieces.push(source.slice(copied, first.start), text, rest);
    copied = last.end;
  };
  const typescript = (token) => stop(token, 'this is TypeScript: a model is plain JavaScript (`tsc` or `esbuild --format=esm` make it)');
  const clause = (from, end) => found.slice(from, end).map((token) => (token.text === 'as' ? ':' : token.text)).join('');

  for (let index = 0; index < found.length; index += 1) {
    const token = found[index], next = found[index + 1] ?? { text: '' }, before = found[index - 1] ?? { text: '' };
    if (token.kind !== 'name' || before.text === '.' || before.text === '?.') continue;
    if (token.text === 'await' && next.text !== ':') stop(token, `await: ${client}`);
    if (token.text === 'async' && !next.hasLineBefore && (next.kind === 'name' || next.text === '(')) stop(token, `async: ${client}`);
    if (token.text === 'import' && (next.text === '(' || next.text === '.')) stop(token, 'a model is one file: it has no import() and no import.meta');
    if (token.depth > 0) continue;
    if (token.text === 'import') {
      let end = index + 1;
      while (end < found.length && found[end].kind !== 'text') end += 1;
      if (next.text === 'type' && found[index + 2]?.text !== 'from') typescript(token);
      const from = found[end]?.text.slice(1, -1);
      if (!SOURCES.includes(from))
        stop(token, `a model is one file, and imports only what is built in (${SOURCES.join(', ')}): put what '${from}' has into this file`);
      if (next.text !== '{') stop(token, `import by name: import { ${EXAMPLES.get(from)} } from '${from}'`);
      for (let at = index + 2; found[at].text !== '}'; at += 1) {
        const name = found[at];
        const isName = name.kind === 'name' && (found[at - 1].text === '{' || found[at - 1].text === ',');
        if (isName && name.text === 'type' && found[at + 1].kind === 'name') typescript(name);
        if (isName && !hasOwn(toolkit, name.text))
          stop(name, advice[name.text] ?? `'${name.text}' is not available in a model`,
            hasOwn(advice, name.text) ? {} : { missing: name.text, known: Object.keys(toolkit) });
      }
      const last = found[end + 1]?.text === ';' ? end + 1 : end;
      replace(token, found[last], `const${clause(index + 1, end - 1)}=$toolkit;`);
      index = last;
    } else if (token.text === 'export') {
      const beyond = found[index + 2] ?? { text: '' };
      if (next.text === 'default') {
        const name = found[index + (found[index + 3]?.text === '*' ? 4 : 3)];
        const isNamed = ['function', 'class'].includes(beyond.text) && name?.kind === 'name';
        if (isNamed) defaultName = name.text;
        replace(token, next, isNamed ? '' : '$default=');
        index += 1;
      } else if (next.text === '{' || next.text === '*') {
        let end = index + 1;
        while (end < found.length - 1 && found[end].text !== '}' && next.text === '{') end += 1;
        if (next.text === '*' || found[end + 1]?.text === 'from')
          stop(token, 'a model is one file: it exports nothing of another one');
        const as = found.findIndex(({ text }, at) => at > index && at < end && text === 'as' && found[at + 1].text === 'default');
        if (as >= 0) defaultName = found[as - 1].text;
        replace(token, found[end + 1]?.text === ';' ? found[end + 1] : found[end], '');
        index = end;
      } else {
        if (['type', 'interface', 'enum', 'declare', 'namespace', 'abstract'].includes(next.text)) typescript(token);
        replace(token, token, '');
      }
    } else if (token.text === 'let' || token.text === 'var') {
      const isConstant = next.kind === 'name' && found[index + 2]?.text === '=';
      const changed = isConstant ? changedName(source, found, index) : token;
      if (changed !== undefined) {
        const where = isConstant ? `; '${changed.text}' is set in line ${lineOf(changed)}` : '';
        stop(token, `write const: the state does not record what a variable of the file keeps (keep it in a member of a slice)${where}`);
      }
      replace(token, token, 'const');
      declared(found, index + 1, names);
    } else if (['interface', 'enum', 'declare', 'namespace', 'type', 'abstract'].includes(token.text) && next.kind === 'name' && !next.hasLineBefore) typescript(token);
    else if (token.text === 'function' || token.text === 'class') {
      const name = next.text === '*' ? found[index + 2] : next;
      if (name?.kind === 'name') names.set(name.text, name.start);
    } else if (token.text === 'const') declared(found, index + 1, names);
  }
  pieces.push(source.slice(copied));
  return { text: pieces.join(''), names: new Map([...names].map(([name, start]) => [name, lineOf({ start })])), defaultName };
}

/** @returns the first place where a variable that `let` or `var` declares at this index is set again, if there is one. */
function changedName(source, found, index) {
  const names = new Map();
  declared(found, index + 1, names);
  return found.find(({ kind, text, start, end, depth }, at) => {
    if (kind !== 'name' || !names.has(text)) return false;
    const before = found[at - 1]?.text;
    if (before === '.' || before === '?.' || (depth === 0 && ['let', 'var', ','].includes(before))) return false;
    return /(\+\+|--)\s*$/.test(source.slice(0, start)) || SET_BEHIND.test(source.slice(end));
  });
}

/** Adds the names of one `const`; of a pattern, all that a value can be bound to. */
function declared(found, index, names) {
  for (; index < found.length; index += 1) {
    const depth = found[index].depth;
    for (; index < found.length && !(found[index].depth === depth && ['=', ';'].includes(found[index].text)); index += 1) {
      const token = found[index];
      if (token.kind === 'name' && found[index + 1]?.text !== ':' && found[index - 1].text !== '=') names.set(token.text, token.start);
    }
    const isEnd = ({ kind, text, hasLineBefore }) => text === ',' || text === ';' || (hasLineBefore && kind === 'name');
    while (index < found.length && !(found[index].depth === depth && isEnd(found[index]))) index += 1;
    if (found[index]?.text !== ',') return;
  }
}
