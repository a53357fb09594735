import Foundation

@testable import StateJSON

/// What parses is equal to itself when it is written and parsed again; the parser accepts what RFC 8259 accepts.
@Sendable func checkJSON(_ bytes: [UInt8]) {
    let value: JSONValue
    do throws(JSONFault) {
        value = try JSONValue(parsing: bytes, depthMax: 500)
    } catch {
        checkRefusal(of: bytes, error)
        return
    }
    expect(RFC8259.accepts(bytes), "taken, and not JSON: \(quoted(bytes))")
    expect(isAcceptedByFoundation(bytes), "taken, and refused by Foundation: \(quoted(bytes))")
    let text = value.text
    let again = parse(text)
    expect(again == value, "written as \(quoted(text)), which is another value")
    expect(again.text == text, "written in two ways: \(quoted(text)) and \(quoted(again.text))")
    let indented = JSONText.indented(text)
    expect(parse(indented).text == text, "indented as \(quoted(indented))")
    expect(value.firstDifference(from: again) == nil, "a value differs from itself")
    checkNodes(bytes, value)
}

private func parse(_ bytes: [UInt8]) -> JSONValue {
    require(try? JSONValue(parsing: bytes, depthMax: 500), "cannot be parsed: \(quoted(bytes))")
}

private func checkRefusal(of bytes: [UInt8], _ fault: JSONFault) {
    expect(!fault.detail.isEmpty, "refused without a sentence")
    switch fault.kind {
    // These are JSON; the server takes less than RFC 8259 allows.
    case .duplicateKey, .numberOutOfRange, .tooDeep: break
    case .mismatch, .schema: expect(false, "a parser does not know what is expected")
    case .malformed:
        // An escape of half a surrogate pair is in the grammar, and no text.
        guard !bytes.contains(UInt8(ascii: "\\")) else { return }
        expect(!RFC8259.accepts(bytes), "refused, and JSON: \(quoted(bytes)): \(fault.detail)")
    }
}

/// Foundation takes UTF-16 and byte order marks, too, so that only what it refuses is of interest.
private func isAcceptedByFoundation(_ bytes: [UInt8]) -> Bool {
    // It has fewer levels, and reads some long numbers as out of range.
    (try? JSONSerialization.jsonObject(with: Data(bytes), options: [.fragmentsAllowed])) != nil
        || bytes.contains { (0x30...0x39).contains($0) }
}

/// The reader of the tape, the reader of compact text and the tree find the same value at the same pointer.
private func checkNodes(_ bytes: [UInt8], _ value: JSONValue) {
    let text = value.text
    var (pointer, current) = (JSONPointer.root, value)
    for _ in 0..<8 {
        switch current {
        case .object(let object):
            guard let member = object.members.last else { return }
            pointer = pointer.appending(member.key)
            current = member.value
        case .array(let elements):
            guard let element = elements.last else { return }
            pointer = pointer.appending(String(elements.count - 1))
            current = element
        default: return
        }
        expect(value[pointer: pointer] == current, "another value is at \(pointer)")
        let selected = require(JSONText.select(pointer.tokens[...], in: text), "no text is at \(pointer)")
        expect(selected == current.text, "the text at \(pointer) is \(quoted(selected))")
    }
}

/// A pointer is its text, and its text is the pointer.
@Sendable func checkPointer(_ bytes: [UInt8]) {
    let text = String(decoding: bytes, as: UTF8.self)
    let tokens = text.split(separator: "|", omittingEmptySubsequences: false).map(String.init)
    let made = JSONPointer(tokens)
    let read = require(JSONPointer(text: made.description), "\(made) is no pointer")
    expect(read == made, "the tokens \(tokens) became \(read.tokens)")
    expect(read.hashValue == made.hashValue && read.overlaps(made), "equal pointers differ")
    guard let pointer = JSONPointer(text: text) else {
        expect(!isPointer(bytes), "refused: \(quoted(bytes))")
        return
    }
    expect(isPointer(Array(text.utf8)), "taken: \(quoted(bytes))")
    expect(pointer.description.utf8.elementsEqual(text.utf8), "\(quoted(bytes)) became \(pointer)")
    for token in pointer.tokens {
        if let index = JSONPointer.index(token) { expect(String(index) == token, "\(token) is index \(index)") }
    }
}

/// The grammar of RFC 6901, section 3.
private func isPointer(_ bytes: [UInt8]) -> Bool {
    guard let first = bytes.first else { return true }
    guard first == UInt8(ascii: "/") else { return false }
    return bytes.indices.allSatisfy { index in
        bytes[index] != UInt8(ascii: "~") || index + 1 < bytes.count && [0x30, 0x31].contains(bytes[index + 1])
    }
}

/// The difference of two values, applied to the first, gives the second.
@Sendable func checkPatch(_ bytes: [UInt8]) {
    let (old, new) = twoValues(bytes)
    var patch = JSONPatch()
    patch.compare(old.text, new.text)
    let operations = parse(patch.text)
    var patched = old
    let places = (try? old.places(changing: operations)) ?? []
    do throws(PatchMismatch) {
        try patched.apply(patch: operations)
    } catch {
        expect(false, "\(quoted(patch.text)) from \(quoted(old.text)): \(error.detail)")
    }
    expect(patched == new, "\(quoted(patch.text)) made \(quoted(patched.text)), not \(quoted(new.text))")
    expect(places == patch.changedPointers, "\(places) are not \(patch.changedPointers)")
    expect(patch.isEmpty == (old.text == new.text), "the patch of equal texts is not empty, or of others is")
    // Every difference is below a changed pointer.
    if let difference = old.firstDifference(from: new) {
        expect(patch.changedPointers.contains { $0.overlaps(difference) }, "\(difference) has not changed")
    }
    // A patch of a client is refused or applied, and leaves JSON.
    var foreign = old
    if (try? foreign.apply(patch: new)) != nil {
        expect(parse(foreign.text) == foreign, "a patch left what is no JSON")
    }
    _ = try? old.places(changing: new)
}

/// Two JSON texts with a line feed between them, or else values made of the bytes.
private func twoValues(_ bytes: [UInt8]) -> (JSONValue, JSONValue) {
    let lines = bytes.split(separator: UInt8(ascii: "\n"), maxSplits: 1).map(Array.init)
    if lines.count == 2, let first = try? JSONValue(parsing: lines[0]), let second = try? JSONValue(parsing: lines[1]) {
        return (first, second)
    }
    var decisions = Decisions(bytes)
    let first = value(&decisions, depth: 0)
    return (first, changed(first, &decisions))
}

private func value(_ decisions: inout Decisions, depth: Int) -> JSONValue {
    switch decisions.number(below: depth < 4 ? 8 : 5) {
    case 0: return .null
    case 1: return .bool(decisions.byte() & 1 == 0)
    case 2: return .integer(Int64(decisions.byte()) - 100)
    case 3: return .double(Double(decisions.byte()) / 7)
    case 4: return .string(key(&decisions))
    case 5: return .array((0..<decisions.number(below: 6)).map { _ in value(&decisions, depth: depth + 1) })
    default:
        var object = JSONObject()
        for _ in 0..<decisions.number(below: 12) { object[key(&decisions)] = value(&decisions, depth: depth + 1) }
        return .object(object)
    }
}

private func key(_ decisions: inout Decisions) -> String {
    let names = ["", "a", "b", "~", "/", "~1", "\"", "\\", "\u{0}", "é", "e\u{301}", "🙂", "0", "-", "01"]
    let index = decisions.number(below: names.count + 3)
    return index < names.count ? names[index] : String(decoding: decisions.bytes(index - names.count), as: UTF8.self)
}

/// A value with some changes, so that most parts stay.
private func changed(_ old: JSONValue, _ decisions: inout Decisions) -> JSONValue {
    let choice = decisions.number(below: 4)
    switch old {
    case .object(var object) where choice > 0:
        for (key, member) in object.members where decisions.byte() & 1 == 0 {
            object[key] = decisions.number(below: 5) == 0 ? nil : changed(member, &decisions)
        }
        if choice == 2 { object[key(&decisions)] = value(&decisions, depth: 3) }
        return .object(object)
    case .array(var elements) where choice > 0:
        for index in elements.indices.reversed() where decisions.byte() & 1 == 0 {
            switch decisions.number(below: 4) {
            case 0: elements.remove(at: index)
            case 1: elements.insert(value(&decisions, depth: 3), at: index)
            default: elements[index] = changed(elements[index], &decisions)
            }
        }
        return .array(elements)
    default: return value(&decisions, depth: 2)
    }
}
