// Reads lines {"state","words"} and answers each with what the program makes of a plain copy: {"state"}, or {"fails":why}.
const { readFileSync } = require('node:fs');
const runProgram = new Function(`${readFileSync(`${__dirname}/random_program.js`)}; return runProgram;`)();
delete Object.prototype.__proto__;

function problem(value, above = []) {
  if (value === undefined || Number.isNaN(value)) return 'no JSON';
  if (typeof value !== 'object' || value === null) return null;
  if (above.includes(value)) return 'cycle';
  if (Array.isArray(value)) {
    for (let index = 0; index < value.length; index += 1) {
      const found = problem(value[index], [...above, value]);
      if (found) return found;
    }
    return null;
  }
  for (const each of Object.values(value)) {
    const found = problem(each, [...above, value]);
    if (found) return found;
  }
  return null;
}

require('node:readline').createInterface({ input: process.stdin }).on('line', (line) => {
  const { state, words } = JSON.parse(line);
  let answer;
  try {
    const result = runProgram(state, words) ?? state;
    const found = problem(result);
    answer = found ? { fails: found } : { state: result };
  } catch (error) {
    answer = { fails: error.message };
  }
  console.log(JSON.stringify(answer));
});
