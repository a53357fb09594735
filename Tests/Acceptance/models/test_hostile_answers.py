"""What a model says is data of an adversary: each answer of the engine is JSON that its host can read, however hostile it is."""

import json
import re

import pytest

from harness.expectations import expect, expect_equal

# `half` is one half of a surrogate pair, and `deep` is nested as deeply as one likes.
FRAME = """const half = '\\ud83d', deep = (levels) => { let at = {}; for (let level = 0; level < levels; level += 1) at = { at }; return at };
const it = createSlice({ name: 'it', initialState: { n: 0, of: {}, list: [{}] }, reducers: { run: %s } });
view('it', %s);
"""
TEXTS = {
    "an error": "throw new Error(half)",
    "a name of an error": "throw Object.assign(new Error('x'), { name: half })",
    "a text": "throw half",
    "a symbol": "throw Symbol(half)",
    "a long text": "throw '\\u{1f600}'.repeat(150)",
    "a variable that is missing": "throw new ReferenceError(`Can't find variable: ${half}`)",
    "a pointer": "throw Object.assign(new Error('x'), { pointer: half })",
    "a deep pointer": "throw Object.assign(new Error('x'), { pointer: deep(3000) })",
    "a deep place": "throw Object.assign(new Error('x'), { at: deep(3000) })",
    "a deep line": "throw Object.assign(new Error('x'), { at: { line: deep(3000), column: half } })",
    "deep known names": "throw Object.assign(new Error('x'), { known: [deep(3000), half], missing: deep(3000) })",
    "a pointer that fails": "throw Object.assign(new Error('x'), { pointer: { toJSON() { throw new Error('y') } } })",
    "a BigInt in each place": "throw Object.assign(new Error('x'), { pointer: 1n, at: 1n, known: 1n, missing: 1n })",
    "a message that fails": "throw Object.defineProperty(new Error('x'), 'message', { get() { throw half } })",
    "a message of 10 MB": "throw Object.assign(new Error('x'), { message: 'x'.repeat(1e7) })",
    "a stack that is half a pair": "throw Object.defineProperty(new Error('x'), 'stack', { get: () => half })",
    "a stack of 10 MB": "throw Object.defineProperty(new Error('x'), 'stack', { get: () => 'model.js:1:1\\n'.repeat(1e6) })",
    "a proxy of an error": "throw new Proxy(new Error('x'), { get: () => deep(3000) })",
    "a proxy that fails": "throw new Proxy({}, { getPrototypeOf() { throw half } })",
    "a sentence of ours with members": "try { Date.now() } catch (error) { throw Object.assign(error, { pointer: deep(3000), at: deep(3000), known: [half], missing: half }) }",
    "a name": "state.of[half] = 1; return state",
    "a name in a new object": "state.of = { a: { [half]: 1 } }; return state",
    "a name in a copy": "return { ...state, [half]: 1 }",
    "a name in an element": "state.list[0][half] = 1; return state",
    "a value": "state.list.push(half); return state",
    "a deep value": "state.n = deep(3000); return state",
    "half a pair instead of a state": "return half",
}


def read(answer):
    """The answer, which is UTF-8 JSON without half a surrogate pair, nested less deeply than a thousand levels."""
    expect(not re.search(r"(?<!\\)(\\\\)*\\ud[89a-f]", answer), "half a surrogate pair:", answer[:300])
    depth = most = 0
    for sign in re.sub(r'"(?:[^"\\]|\\.)*"', "", answer):
        depth += (sign in "[{") - (sign in "]}")
        most = max(most, depth)
    expect(most < 1000, "levels:", most)
    return json.loads(answer)


def ask(model, *words):
    model.process.stdin.write("\t".join(words) + "\n")
    model.process.stdin.flush()
    return read(model.process.stdout.readline())


@pytest.mark.parametrize("what", TEXTS)
def test_a_fault_can_be_read_when_the_model_throws_or_keeps(what, load):
    model = load(FRAME % (f"(state) => {{ {TEXTS[what]} }}", f"(state) => {{ {TEXTS[what]} }}"))

    for call in (("reduce", "it/run", '{"type":"it/run","payload":{},"meta":{}}'), ("view", "it")):
        found = ask(model, *call)
        expect("fault" in found, found)
        expect(len(json.dumps(found)) < 20_000, "its length:", len(json.dumps(found)))
        expect_equal(model.state, {"it": {"n": 0, "of": {}, "list": [{}]}}, "the state")


def test_a_refusal_in_a_view_is_a_fault(load):
    found = ask(load(FRAME % ("() => {}", "() => reject('it.x', half)")), "view", "it")

    expect_equal(found["fault"]["message"], "reject('it.x') was called outside a reducer", "the fault")


def test_what_is_printed_can_be_read(load):
    model = load(FRAME % ("(state) => { console.log(half, { half }, [half]); console.log('\\u{1f600}'.repeat(600)); console.log(Object.create(null, { toJSON: { value() { throw half } } })); console.log('x'.repeat(1e7)); state.n = 1 }", "() => 1"))

    lines = ask(model, "reduce", "it/run", '{"type":"it/run","payload":{},"meta":{}}')["console"]

    expect_equal(lines[0]["text"], '\ufffd {"half":"\\ud83d"} ["\\ud83d"]', "the first line")
    expect_equal([len(line["text"]) <= 500 for line in lines], [True] * 4, "the lengths")


def test_a_text_that_looks_like_half_a_pair_is_kept(load):
    model = load(FRAME % ("(state, { payload }) => { state.of[payload] = payload }", "(state) => state.it.of"))
    text = "\\ud83d \\\\udc00 \U0001f600 \\u0041 \\\""

    found = ask(model, "reduce", "it/run", json.dumps({"type": "it/run", "payload": text, "meta": {}}))

    expect_equal(found["patch"], [{"op": "add", "path": f"/it/of/{text}", "value": text}], "the patch")
    expect_equal(ask(model, "view", "it")["value"], {text: text}, "a view")
