/// A JSON Patch (RFC 6902) in the making: the operations as text, and the places that they touch.
package struct JSONPatch: Sendable {
    /// The operations, comma-separated, without the brackets around them.
    private var operations: [UInt8] = []
    /// The places whose value differs afterwards.
    ///
    /// A change that shifts an array's elements touches the array.
    package private(set) var changedPointers: [JSONPointer] = []
    /// Where the next comparison stands: unescaped tokens.
    private var path: [String] = []
    /// The same place as escaped JSON string content, such as `/tasks/entities`, with the lengths to fall back to.
    private var escapedPath: [UInt8] = []
    private var escapedLengths: [Int] = []

    /// The encodings that are known of the old value; as places are compared, of the new one.
    private var texts = KnownTexts()

    /// Makes a patch that changes nothing.
    package init(knowing texts: KnownTexts = KnownTexts()) { self.texts = texts }

    /// What is known of the new value, once everything has been compared.
    package mutating func takeTexts() -> KnownTexts { exchange(&texts, with: KnownTexts()) }

    /// Whether there is no operation.
    package var isEmpty: Bool { operations.isEmpty }

    /// The JSON array of operations.
    package var text: [UInt8] {
        var bytes: [UInt8] = []
        bytes.reserveCapacity(operations.count + 2)
        bytes.append(UInt8(ascii: "["))
        bytes.append(contentsOf: operations)
        bytes.append(UInt8(ascii: "]"))
        return bytes
    }

    /// Compares below a member or element of the present place.
    package mutating func descend<Failure: Error>(
        _ token: String, _ compare: (inout JSONPatch) throws(Failure) -> Void
    ) throws(Failure) {
        push(token)
        defer { pop() }
        try compare(&self)
    }

    private mutating func push(_ token: String) {
        path.append(token)
        escapedLengths.append(escapedPath.count)
        // Names are nearly always plain.
        if token.utf8.allSatisfy({ $0 >= 0x20 && $0 != 0x22 && $0 != 0x2F && $0 != 0x5C && $0 != 0x7E }) {
            escapedPath.append(UInt8(ascii: "/"))
            escapedPath.append(contentsOf: token.utf8)
            return
        }
        // A token is escaped twice: for RFC 6901, then for the JSON string that holds the pointer.
        var writer = JSONWriter(capacity: token.utf8.count + 4)
        writer.string(JSONPointer([token]).description)
        escapedPath.append(contentsOf: writer.bytes.dropFirst().dropLast())
    }

    private mutating func pop() {
        path.removeLast()
        escapedPath.removeLast(escapedPath.count - escapedLengths.removeLast())
    }

    private mutating func begin(_ operation: StaticString) {
        var writer = JSONWriter(capacity: 0)
        swap(&writer.bytes, &operations)
        if !writer.bytes.isEmpty { writer.byte(UInt8(ascii: ",")) }
        writer.raw("{\"op\":\"")
        writer.raw(operation)
        writer.raw("\",\"path\":\"")
        writer.raw(escapedPath)
        writer.byte(UInt8(ascii: "\""))
        swap(&writer.bytes, &operations)
    }

    private mutating func end(value: some Collection<UInt8>) {
        operations.append(contentsOf: #","value":"#.utf8)
        operations.append(contentsOf: value)
        operations.append(UInt8(ascii: "}"))
    }

    /// The present place gets another value.
    package mutating func replace(with value: some Collection<UInt8>) {
        begin("replace")
        end(value: value)
        changedPointers.append(JSONPointer(path))
    }

    /// The object at the present place gets a member.
    package mutating func add(member key: String, value: some Collection<UInt8>) {
        push(key)
        begin("add")
        end(value: value)
        changedPointers.append(JSONPointer(path))
        pop()
    }

    /// The object at the present place loses a member.
    package mutating func remove(member key: String) {
        push(key)
        begin("remove")
        operations.append(UInt8(ascii: "}"))
        changedPointers.append(JSONPointer(path))
        pop()
    }

    /// The array at the present place gets an element before the one now at `index`.
    package mutating func insert(at index: Int, value: some Collection<UInt8>) {
        push(String(index))
        begin("add")
        end(value: value)
        pop()
        touchArray()
    }

    /// The array at the present place loses an element.
    package mutating func remove(at index: Int) {
        push(String(index))
        begin("remove")
        operations.append(UInt8(ascii: "}"))
        pop()
        touchArray()
    }

    private mutating func touchArray() {
        let place = JSONPointer(path)
        if changedPointers.last != place { changedPointers.append(place) }
    }
}

extension JSONPatch {
    /// Adds the operations that turn one encoded value at the present place into another.
    ///
    /// O(n) in both texts.
    ///
    /// Both texts come from ``JSON/encode(_:)``, so equal values are equal bytes.
    package mutating func compare(_ old: [UInt8], _ new: [UInt8]) {
        guard old != new else { return }
        old.withUnsafeBufferPointer { oldBytes in
            new.withUnsafeBufferPointer { newBytes in
                let (old, new) = (JSONText(oldBytes), JSONText(newBytes))
                compare(old, old.whole, new, new.whole)
            }
        }
    }

    /// Adds the operations that turn an old value at the present place into a new one whose encoding is given.
    ///
    /// - Parameter old: encodes the old value; asked only if it is not known from before.
    package mutating func compare(to new: [UInt8], old: () throws -> [UInt8]) rethrows {
        compare(try texts[path] ?? old(), new)
        texts[path] = new
    }

    private mutating func compare(_ old: JSONText, _ oldSpan: JSONText.Span, _ new: JSONText, _ newSpan: JSONText.Span)
    {
        guard !old.matches(oldSpan, new, newSpan) else { return }
        switch (old.kind(oldSpan), new.kind(newSpan)) {
        case (UInt8(ascii: "{"), UInt8(ascii: "{")):
            let before = operations.count
            compareMembers(old, old.members(oldSpan), new, new.members(newSpan))
            // The same members in another order: no operation says so, yet the bytes differ.
            if operations.count == before { replace(with: new.slice(newSpan)) }
        case (UInt8(ascii: "["), UInt8(ascii: "[")):
            compareElements(old, old.elements(oldSpan), new, new.elements(newSpan))
        default: replace(with: new.slice(newSpan))
        }
    }

    private mutating func compareMembers(
        _ old: JSONText, _ oldMembers: [JSONText.Member], _ new: JSONText, _ newMembers: [JSONText.Member]
    ) {
        let isAligned =
            oldMembers.count == newMembers.count
            && zip(oldMembers, newMembers).allSatisfy { old.matches($0.key, new, $1.key) }
        if isAligned {
            for (oldMember, newMember) in zip(oldMembers, newMembers)
            where !old.matches(oldMember.value, new, newMember.value) {
                descend(new.string(newMember.key)) { $0.compare(old, oldMember.value, new, newMember.value) }
            }
            return
        }
        var values: [ArraySlice<UInt8>: JSONText.Span] = [:]
        for member in oldMembers { values[Array(old.slice(member.key))[...]] = member.value }
        var added: [JSONText.Member] = []
        for member in newMembers {
            if let oldValue = values.removeValue(forKey: Array(new.slice(member.key))[...]) {
                guard !old.matches(oldValue, new, member.value) else { continue }
                descend(new.string(member.key)) { $0.compare(old, oldValue, new, member.value) }
            } else {
                added.append(member)
            }
        }
        for member in oldMembers where values[Array(old.slice(member.key))[...]] != nil {
            remove(member: old.string(member.key))
        }
        for member in added { add(member: new.string(member.key), value: new.slice(member.value)) }
    }

    private mutating func compareElements(
        _ old: JSONText, _ oldElements: [JSONText.Span], _ new: JSONText, _ newElements: [JSONText.Span]
    ) {
        let shorter = min(oldElements.count, newElements.count)
        var start = 0
        while start < shorter, old.matches(oldElements[start], new, newElements[start]) { start += 1 }
        var tail = 0
        while tail < shorter - start,
            old.matches(oldElements[oldElements.count - 1 - tail], new, newElements[newElements.count - 1 - tail])
        { tail += 1 }

        let oldEnd = oldElements.count - tail
        let newEnd = newElements.count - tail
        let common = start + min(oldEnd, newEnd) - start
        for index in start..<common {
            descend(String(index)) { $0.compare(old, oldElements[index], new, newElements[index]) }
        }
        for index in stride(from: oldEnd - 1, through: common, by: -1) { remove(at: index) }
        for index in common..<max(common, newEnd) { insert(at: index, value: new.slice(newElements[index])) }
    }
}

/// The encodings of some parts of a value, by their places.
///
/// Few: a part is found by looking at each.
package struct KnownTexts: Sendable {
    private var parts: [(path: [String], text: [UInt8])] = []

    /// Knows nothing.
    package init() {}

    subscript(path: [String]) -> [UInt8]? {
        get { parts.first { $0.path == path }?.text }
        set {
            let index = parts.firstIndex { $0.path == path }
            switch (index, newValue) {
            case (let index?, let text?): parts[index].text = text
            case (nil, let text?): parts.append((path, text))
            case (let index?, nil): parts.remove(at: index)
            case (nil, nil): break
            }
        }
    }
}

extension JSONText {
    /// A key as a string, its escapes undone.
    func string(_ key: Span) -> String {
        let escaped = slice(key)
        guard escaped.contains(UInt8(ascii: "\\")) else { return String(decoding: escaped, as: UTF8.self) }
        // Rare: the writer escapes only quotes, backslashes and control characters.
        var bytes: [UInt8] = []
        var index = 0
        while index < escaped.count {
            guard escaped[index] == UInt8(ascii: "\\") else {
                bytes.append(escaped[index])
                index += 1
                continue
            }
            switch escaped[index + 1] {
            case UInt8(ascii: "b"): bytes.append(0x08)
            case UInt8(ascii: "t"): bytes.append(0x09)
            case UInt8(ascii: "n"): bytes.append(0x0A)
            case UInt8(ascii: "f"): bytes.append(0x0C)
            case UInt8(ascii: "r"): bytes.append(0x0D)
            case UInt8(ascii: "u"):
                // Only control characters are written so, all below U+0020.
                let digits = String(decoding: escaped[index + 2..<index + 6], as: UTF8.self)
                bytes.append(UInt8(digits, radix: 16) ?? UInt8(ascii: "?"))
                index += 4
            case let other: bytes.append(other)
            }
            index += 2
        }
        return String(decoding: bytes, as: UTF8.self)
    }
}
