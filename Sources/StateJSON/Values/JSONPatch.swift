/// A JSON Patch (RFC 6902) under construction: the encoded operations, and the pointers that they change.
package struct JSONPatch: Sendable {
    /// The encoded operations with commas between them, as an array without the bracket at its end.
    private var operations = [UInt8(ascii: "[")]
    /// The changed places, and behind them those of the patch before, which the next patch often changes again: to make a
    /// pointer takes as long as a tenth of a POST.
    private var places: [(spelling: [UInt8], pointer: JSONPointer)] = []
    /// How many of the places this patch changes.
    private var changesCount = 0
    /// The pointers of the first places, as far as somebody has asked: patches of the same places share them.
    private var pointers: [JSONPointer] = []
    /// The current pointer, to which the next operation applies, as the content of a JSON string, such as
    /// `/tasks/entities`.
    private var place: [UInt8] = []
    /// How many bytes of compact JSON the value has more behind the patch; negative where it has fewer.
    package private(set) var growth = 0
    /// The length of ``place`` at each level above.
    private var lengths: [Int] = []
    /// How many children of the object or the array that is being compared may still differ.
    private var differencesLeft = 0

    /// The known encodings of parts of the old value; a comparison replaces them by those of the new value.
    private var texts = KnownTexts()
    /// The encoder of the new values, with its memory; nil before the first.
    ///
    /// unsafe: a copy of the patch makes its own before it encodes.
    nonisolated(unsafe) private var encoder: JSONEncodingSession?

    /// Makes a patch that changes nothing.
    package init() {}

    /// Makes this patch one that changes nothing, of a value of which nothing is known, and keeps its memory.
    package mutating func begin() {
        texts = KnownTexts()
        // A comparison that has thrown may have left a part of a pointer.
        place.removeAll(keepingCapacity: true)
        lengths.removeAll(keepingCapacity: true)
        beginNext()
    }

    /// Makes this patch one that changes nothing, of the new value of the patch before, whose encodings it knows.
    package mutating func beginNext() {
        operations.removeLast(operations.count - 1)
        if places.count > changesCount {
            places.removeLast(places.count - changesCount)
            if pointers.count > changesCount { pointers.removeLast(pointers.count - changesCount) }
        }
        (changesCount, growth) = (0, 0)
    }

    /// The pointers to the values that differ after the patch.
    ///
    /// For a change that shifts the elements of an array, the pointer is that of the array.
    package var changedPointers: [JSONPointer] {
        mutating get {
            while pointers.count < changesCount { pointers.append(places[pointers.count].pointer) }
            return pointers.count == changesCount ? pointers : Array(pointers[..<changesCount])
        }
    }

    /// Whether there is no operation.
    package var isEmpty: Bool { operations.count == 1 }

    /// The operations as a JSON array, UTF-8.
    package var text: [UInt8] {
        var bytes: [UInt8] = []
        bytes.reserveCapacity(operations.count + 1)
        bytes.append(contentsOf: operations)
        bytes.append(UInt8(ascii: "]"))
        return bytes
    }

    /// Goes to a place below the current pointer, for the comparisons until ``leave(_:)``.
    ///
    /// - Parameter path: the rest of the pointer, as the content of a JSON string.
    @inline(__always)
    package mutating func enter(_ path: [UInt8]) {
        place.append(contentsOf: path)
    }

    /// Goes back from the place of ``enter(_:)``.
    @inline(__always)
    package mutating func leave(_ path: [UInt8]) {
        place.removeLast(path.count)
    }

    /// A token as ``enter(_:)`` takes it.
    package static func path(_ token: String) -> [UInt8] {
        var patch = JSONPatch()
        patch.push(token)
        return patch.place
    }

    /// Runs a comparison of a member or an element of the value at the current pointer.
    package mutating func descend<Failure: Error>(
        _ token: String, _ compare: (inout JSONPatch) throws(Failure) -> Void
    ) throws(Failure) {
        push(token)
        defer { pop() }
        try compare(&self)
    }

    /// How many children of one object or array a patch changes one by one; above it, the patch replaces the whole.
    ///
    /// A whole value is replaced for a difference in each thousand bytes at least: few changes of a client make no patch as
    /// long as the state.
    ///
    /// - Parameter bytesCount: the bytes of the old value.
    package static func differencesMax(of bytesCount: Int) -> Int { max(1000, bytesCount / 1000) }

    /// More than ``differencesMax(of:)`` children differ.
    package struct ManyDifferences: Error {
        package init() {}
    }

    /// Runs a comparison of the children of the value at the current pointer, and replaces the value where it throws.
    ///
    /// - Parameters:
    ///   - count: the bytes of the old value.
    ///   - new: makes the encoding of the new value.
    package mutating func compareChildren<Value: Collection<UInt8>>(
        _ count: Int, _ new: () -> Value, _ compare: (inout JSONPatch) throws(ManyDifferences) -> Void
    ) {
        let before = (operations.count, changesCount, growth, differencesLeft)
        differencesLeft = Self.differencesMax(of: count)
        defer { differencesLeft = before.3 }
        do throws(ManyDifferences) {
            try compare(&self)
        } catch {
            operations.removeLast(operations.count - before.0)
            (changesCount, growth) = (before.1, before.2)
            replace(count, with: new())
        }
    }

    /// Runs a comparison of one child, and counts it if it differs.
    package mutating func compareChild(_ compare: (inout JSONPatch) -> Void) throws(ManyDifferences) {
        let before = operations.count
        compare(&self)
        guard operations.count > before else { return }
        guard differencesLeft > 0 else { throw ManyDifferences() }
        differencesLeft -= 1
    }

    /// Runs a comparison of a member of the object at the current pointer.
    private mutating func descend(_ text: JSONText, _ key: JSONText.Span, _ compare: (inout JSONPatch) -> Void) {
        let bytes = text.slice(key)
        if Self.isPlain(bytes) { push(plain: bytes) } else { push(text.string(key)) }
        compare(&self)
        pop()
    }

    private mutating func noteChange() {
        if changesCount >= places.count || places[changesCount].spelling != place {
            let spelling = place.withUnsafeBufferPointer { JSONText($0).string(0..<$0.count) }
            guard let pointer = JSONPointer(text: spelling) else { preconditionFailure("a place is not a pointer") }
            places.replaceSubrange(changesCount..., with: CollectionOfOne((spelling: place, pointer: pointer)))
            if pointers.count > changesCount { pointers.removeLast(pointers.count - changesCount) }
        }
        changesCount += 1
    }

    /// Whether a token, or a key in JSON, is the same in a pointer inside a JSON string, as most names are.
    private static func isPlain(_ bytes: UnsafeBufferPointer<UInt8>) -> Bool {
        for byte in bytes where byte < 0x20 || byte == 0x22 || byte == 0x2F || byte == 0x5C || byte == 0x7E {
            return false
        }
        return true
    }

    private mutating func push(_ token: String) {
        let isPlain = token.withBytes { utf8 in
            guard Self.isPlain(utf8) else { return false }
            push(plain: utf8)
            return true
        }
        guard !isPlain else { return }
        // A token is escaped twice: for RFC 6901, then for the JSON string that holds the pointer.
        var writer = JSONWriter(capacity: token.utf8.count + 4)
        writer.string(JSONPointer([token]).description)
        // Without the quotes, and without the first solidus, which is there already.
        writer.bytes.withUnsafeBufferPointer { push(plain: UnsafeBufferPointer(rebasing: $0.dropFirst(2).dropLast())) }
    }

    private mutating func push(plain bytes: UnsafeBufferPointer<UInt8>) {
        lengths.append(place.count)
        place.append(UInt8(ascii: "/"))
        place.append(contentsOf: bytes)
    }

    private mutating func pop() {
        place.removeLast(place.count - lengths.removeLast())
    }

    private mutating func begin(_ head: StaticString) {
        if operations.count > 1 { operations.append(UInt8(ascii: ",")) }
        operations.append(contentsOf: UnsafeBufferPointer(start: head.utf8Start, count: head.utf8CodeUnitCount))
        operations.append(contentsOf: place)
        operations.append(UInt8(ascii: "\""))
    }

    private mutating func end(value: some Collection<UInt8>) {
        operations.append(contentsOf: #","value":"#.utf8)
        operations.append(contentsOf: value)
        operations.append(UInt8(ascii: "}"))
    }

    /// Adds the operation that replaces the value at the current pointer, which had `count` bytes.
    package mutating func replace(_ count: Int, with value: some Collection<UInt8>) {
        begin("{\"op\":\"replace\",\"path\":\"")
        end(value: value)
        growth += value.count - count
        noteChange()
    }

    /// Adds the operation that adds a member to the object at the current pointer.
    package mutating func add(member key: String, value: some Collection<UInt8>) {
        push(key)
        begin("{\"op\":\"add\",\"path\":\"")
        end(value: value)
        growth += value.count + memberBytesCount
        noteChange()
        pop()
    }

    /// Adds the operation that removes a member, whose value had `count` bytes, from the object at the current pointer.
    package mutating func remove(member key: String, _ count: Int) {
        push(key)
        begin("{\"op\":\"remove\",\"path\":\"")
        operations.append(UInt8(ascii: "}"))
        growth -= count + memberBytesCount
        noteChange()
        pop()
    }

    /// The bytes of a member at the current pointer without its value: the key, its quotes, a colon and a comma.
    private var memberBytesCount: Int { place.count - (lengths.last ?? 0) + 3 }

    /// Adds the operation that inserts an element before the one at `index` into the array at the current pointer.
    package mutating func insert(at index: Int, value: some Collection<UInt8>) {
        push(String(index))
        begin("{\"op\":\"add\",\"path\":\"")
        end(value: value)
        growth += value.count + 1
        pop()
        noteArray()
    }

    /// Adds the operation that removes an element, which had `count` bytes, from the array at the current pointer.
    package mutating func remove(at index: Int, _ count: Int) {
        push(String(index))
        begin("{\"op\":\"remove\",\"path\":\"")
        operations.append(UInt8(ascii: "}"))
        growth -= count + 1
        pop()
        noteArray()
    }

    /// Adds the current pointer to the changed ones, where it is not the last of them.
    private mutating func noteArray() {
        if changesCount == 0 || places[changesCount - 1].spelling != place { noteChange() }
    }
}

extension JSONPatch {
    /// Adds the operations that turn one encoded value at the current pointer into another.
    ///
    /// O(n) in both encodings, which come from ``JSON/encode(_:)``, so that equal values have equal bytes.
    package mutating func compare(_ old: [UInt8], _ new: [UInt8]) {
        old.withUnsafeBufferPointer { oldBytes in
            new.withUnsafeBufferPointer { newBytes in
                let (old, new) = (JSONText(oldBytes), JSONText(newBytes))
                compare(old, old.whole, new, new.whole)
            }
        }
    }

    /// Adds the operations that turn an old value at the current pointer into a new one.
    ///
    /// The old value is encoded only where its encoding is not known.
    ///
    /// - Returns: the bytes of the new value's encoding.
    /// - Throws: what ``JSON/encode(_:)`` throws.
    @discardableResult
    package mutating func compare<Value: Encodable>(_ old: Value, to new: Value) throws -> Int {
        let encoder = ownEncoder()
        let index = try texts.index(of: place) ?? texts.append(JSON.encode(old), of: place)
        try encoder.encodeAlone(new)
        compare(texts[index], encoder.bytes)
        // The memory of the old encoding is that of the next new one.
        encoder.swapBytes(with: &texts[index])
        return texts[index].count
    }

    private mutating func ownEncoder() -> JSONEncodingSession {
        if isKnownUniquelyReferenced(&encoder), let encoder { return encoder }
        let made = JSONEncodingSession()
        encoder = made
        return made
    }

    private mutating func compare(_ old: JSONText, _ oldSpan: JSONText.Span, _ new: JSONText, _ newSpan: JSONText.Span)
    {
        guard !old.matches(oldSpan, new, newSpan) else { return }
        switch (old.kind(oldSpan), new.kind(newSpan)) {
        case (UInt8(ascii: "{"), UInt8(ascii: "{")):
            let before = operations.count
            compareChildren(oldSpan.count, { new.slice(newSpan) }) { (patch) throws(ManyDifferences) in
                try patch.compareMembers(old, oldSpan, new, newSpan)
            }
            // The members differ only in their order: no operation on members can express that.
            if operations.count == before { replace(old.slice(oldSpan).count, with: new.slice(newSpan)) }
        case (UInt8(ascii: "["), UInt8(ascii: "[")):
            compareChildren(oldSpan.count, { new.slice(newSpan) }) { (patch) throws(ManyDifferences) in
                try patch.compareArrays(old, oldSpan, new, newSpan)
            }
        default: replace(old.slice(oldSpan).count, with: new.slice(newSpan))
        }
    }

    /// Compares the members of two objects: pairs with equal keys as long as they have the same order, which is nearly
    /// always to the end, and the rest by key.
    private mutating func compareMembers(
        _ old: JSONText, _ oldSpan: JSONText.Span, _ new: JSONText, _ newSpan: JSONText.Span
    ) throws(ManyDifferences) {
        var (oldMembers, newMembers) = (old.memberIterator(oldSpan), new.memberIterator(newSpan))
        while true {
            let (oldIndex, newIndex) = (oldMembers.index, newMembers.index)
            let (next, newNext) = (oldMembers.next(), newMembers.next())
            if next == nil, newNext == nil { return }
            guard let oldMember = next, let newMember = newNext, old.matches(oldMember.key, new, newMember.key) else {
                (oldMembers.index, newMembers.index) = (oldIndex, newIndex)
                return try compareByKey(
                    old, Array(IteratorSequence(oldMembers)), new, Array(IteratorSequence(newMembers)))
            }
            guard !old.matches(oldMember.value, new, newMember.value) else { continue }
            try compareChild {
                $0.descend(new, newMember.key) { $0.compare(old, oldMember.value, new, newMember.value) }
            }
        }
    }

    private mutating func compareByKey(
        _ old: JSONText, _ oldMembers: [JSONText.Member], _ new: JSONText, _ newMembers: [JSONText.Member]
    ) throws(ManyDifferences) {
        var values: [ArraySlice<UInt8>: JSONText.Span] = [:]
        for member in oldMembers { values[Array(old.slice(member.key))[...]] = member.value }
        var added: [JSONText.Member] = []
        for member in newMembers {
            if let oldValue = values.removeValue(forKey: Array(new.slice(member.key))[...]) {
                guard !old.matches(oldValue, new, member.value) else { continue }
                try compareChild { $0.descend(new, member.key) { $0.compare(old, oldValue, new, member.value) } }
            } else {
                added.append(member)
            }
        }
        for member in oldMembers where values[Array(old.slice(member.key))[...]] != nil {
            try compareChild { $0.remove(member: old.string(member.key), old.slice(member.value).count) }
        }
        for member in added {
            try compareChild { $0.add(member: new.string(member.key), value: new.slice(member.value)) }
        }
    }

    /// Compares the elements of two arrays between their equal beginnings and ends.
    private mutating func compareArrays(
        _ old: JSONText, _ oldSpan: JSONText.Span, _ new: JSONText, _ newSpan: JSONText.Span
    ) throws(ManyDifferences) {
        let (oldElements, newElements) = (old.elements(oldSpan), new.elements(newSpan))
        let shorter = min(oldElements.count, newElements.count)
        var start = 0
        while start < shorter, old.matches(oldElements[start], new, newElements[start]) { start += 1 }
        var tail = 0
        while tail < shorter - start,
            old.matches(oldElements[oldElements.count - 1 - tail], new, newElements[newElements.count - 1 - tail])
        { tail += 1 }

        let oldEnd = oldElements.count - tail
        let newEnd = newElements.count - tail
        let common = min(oldEnd, newEnd)
        for index in start..<common {
            try compareChild {
                $0.descend(String(index)) { $0.compare(old, oldElements[index], new, newElements[index]) }
            }
        }
        for index in stride(from: oldEnd - 1, through: common, by: -1) {
            try compareChild { $0.remove(at: index, old.slice(oldElements[index]).count) }
        }
        for index in common..<max(common, newEnd) {
            try compareChild { $0.insert(at: index, value: new.slice(newElements[index])) }
        }
    }
}
