/// RFC 6902.
package struct JSONPatch: Sendable {
    /// Lacks the bracket at its end.
    private var operations = [UInt8(ascii: "[")]
    private var takenCount = 0
    /// The places of the patch before come last: the next patch often changes them again, and to make a pointer takes
    /// as long as a tenth of a POST.
    private var places: [(spelling: [UInt8], pointer: JSONPointer)] = []
    private var changesCount = 0
    /// Made when somebody asks: patches of the same places share them.
    private var pointers: [JSONPointer] = []
    /// Content of a JSON string, such as `/tasks/entities`.
    private var place: [UInt8] = []
    /// Negative where the value has fewer bytes behind the patch.
    package private(set) var growth = 0
    private var differencesLeft = 0

    package init() {}

    /// Keeps its memory.
    package mutating func begin() {
        // A comparison that has thrown may have left a part of a pointer.
        if !place.isEmpty { place.removeAll(keepingCapacity: true) }
        if operations.isEmpty {
            operations.reserveCapacity(min(takenCount, 1024) + 16)
            operations.append(UInt8(ascii: "["))
        } else {
            operations.removeLast(operations.count - 1)
        }
        if places.count > changesCount {
            places.removeLast(places.count - changesCount)
            if pointers.count > changesCount { pointers.removeLast(pointers.count - changesCount) }
        }
        (changesCount, growth) = (0, 0)
    }

    /// For a change that shifts the elements of an array, the pointer is that of the array.
    package var changedPointers: [JSONPointer] {
        mutating get {
            while pointers.count < changesCount { pointers.append(places[pointers.count].pointer) }
            return pointers.count == changesCount ? pointers : Array(pointers[..<changesCount])
        }
    }

    package var isEmpty: Bool { operations.count == 1 }

    /// ``begin()`` comes next.
    package mutating func takeText() -> [UInt8] {
        operations.append(UInt8(ascii: "]"))
        takenCount = operations.count
        return Swift.exchange(&operations, with: []).trimmed
    }

    package var text: [UInt8] { operations + [UInt8(ascii: "]")] }

    /// The path is the content of a JSON string.
    @inline(__always)
    package mutating func enter(_ path: [UInt8]) { place.append(contentsOf: path) }

    @inline(__always)
    package mutating func leave(_ path: [UInt8]) { place.removeLast(path.count) }

    package static func path(_ token: String) -> [UInt8] {
        var patch = JSONPatch()
        patch.push(token)
        return patch.place
    }

    package mutating func replace(_ count: Int, with value: some Collection<UInt8>) {
        append(#"{"op":"replace","path":""#, value)
        growth += value.count - count
        noteChange()
    }

    package mutating func add(member token: String, value: some Collection<UInt8>) {
        let length = place.count
        push(token)
        append(#"{"op":"add","path":""#, value)
        // The member has quotes, a colon and a comma besides the key, and the pointer a solidus.
        growth += value.count + place.count - length + 3
        noteChange()
        pop(to: length)
    }

    package mutating func remove(member token: String, _ count: Int) {
        let length = place.count
        push(token)
        append(#"{"op":"remove","path":""#, nil as [UInt8]?)
        growth -= count + place.count - length + 3
        noteChange()
        pop(to: length)
    }

    package mutating func insert(at index: Int, value: some Collection<UInt8>) {
        descend(String(index)) { $0.append(#"{"op":"add","path":""#, value) }
        growth += value.count + 1
        noteArray()
    }

    package mutating func remove(at index: Int, _ count: Int) {
        descend(String(index)) { $0.append(#"{"op":"remove","path":""#, nil as [UInt8]?) }
        growth -= count + 1
        noteArray()
    }

    /// `beginning` is the operation's text up to the pointer.
    private mutating func append(_ beginning: StaticString, _ value: (some Collection<UInt8>)?) {
        if operations.count > 1 { operations.append(UInt8(ascii: ",")) }
        operations.append(contentsOf: beginning)
        operations.append(contentsOf: place)
        if let value {
            operations.append(contentsOf: #"","value":"#)
            operations.append(contentsOf: value)
            operations.append(UInt8(ascii: "}"))
        } else {
            operations.append(contentsOf: #""}"#)
        }
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

    private mutating func noteArray() {
        if changesCount == 0 || places[changesCount - 1].spelling != place { noteChange() }
    }

    private mutating func push(_ token: String) {
        var writer = JSONWriter(capacity: token.utf8.count + 4)
        writer.string(token)
        // The token has its escapes for JSON already, and those of RFC 6901 are of other bytes.
        writer.bytes.withUnsafeBufferPointer {
            Self.append(UnsafeBufferPointer(rebasing: $0.dropFirst().dropLast()), to: &place)
        }
    }

    /// RFC 6901.
    static func append(_ token: UnsafeBufferPointer<UInt8>, to text: inout [UInt8]) {
        text.append(UInt8(ascii: "/"))
        for byte in token {
            switch byte {
            case UInt8(ascii: "~"): text.append(contentsOf: "~0".utf8)
            case UInt8(ascii: "/"): text.append(contentsOf: "~1".utf8)
            default: text.append(byte)
            }
        }
    }

    private mutating func pop(to length: Int) { place.removeLast(place.count - length) }

    /// Above it, the whole value is replaced: a difference in each thousand bytes at least, so that few changes of a
    /// client make no patch as long as the state.
    package static func differencesMax(of bytesCount: Int) -> Int { max(1000, bytesCount / 1000) }

    package struct ManyDifferences: Error {
        package init() {}
    }

    /// Replaces the value, which had `count` bytes, where the comparison throws.
    package mutating func compareChildren<Value: Collection<UInt8>>(
        _ count: Int, _ new: () -> Value, _ compare: (inout JSONPatch) throws(ManyDifferences) -> Void
    ) {
        let (before, differencesLeftBefore) = (mark, differencesLeft)
        differencesLeft = Self.differencesMax(of: count)
        defer { differencesLeft = differencesLeftBefore }
        do throws(ManyDifferences) {
            try compare(&self)
        } catch {
            goBack(to: before)
            replace(count, with: new())
        }
    }

    package mutating func compareChild(_ compare: (inout JSONPatch) -> Void) throws(ManyDifferences) {
        let before = operations.count
        compare(&self)
        guard operations.count > before else { return }
        guard differencesLeft > 0 else { throw ManyDifferences() }
        differencesLeft -= 1
    }

    package mutating func descend<Failure: Error>(
        _ token: String, _ compare: (inout JSONPatch) throws(Failure) -> Void
    ) throws(Failure) {
        let length = place.count
        push(token)
        defer { pop(to: length) }
        try compare(&self)
    }

    private typealias Mark = (operationsCount: Int, changesCount: Int, growth: Int)

    private var mark: Mark { (operations.count, changesCount, growth) }

    private mutating func goBack(to mark: Mark) {
        operations.removeLast(operations.count - mark.operationsCount)
        (changesCount, growth) = (mark.changesCount, mark.growth)
    }

    /// O(n) in both encodings, which come from ``JSON/encode(_:)``: equal values have equal bytes, and with another
    /// escape of `/` or `~` in a key, its pointer would be wrong.
    package mutating func compare(_ old: [UInt8], _ new: [UInt8]) {
        let (whole, newWhole) = (0..<old.count, 0..<new.count)
        old.withUnsafeBufferPointer { old in
            new.withUnsafeBufferPointer { compare(.init(old), whole, .init($0), newWhole) }
        }
    }

    private mutating func compare(_ old: JSONText, _ oldSpan: JSONText.Span, _ new: JSONText, _ newSpan: JSONText.Span)
    {
        guard !old.matches(oldSpan, new, newSpan) else { return }
        let before = mark
        let isListed =
            switch (old.kind(oldSpan), new.kind(newSpan)) {
            case (UInt8(ascii: "{"), UInt8(ascii: "{")): compareMembers(old, oldSpan, new, newSpan)
            case (UInt8(ascii: "["), UInt8(ascii: "[")): compareElements(old, oldSpan, new, newSpan)
            default: false
            }
        // Members that differ only in their order leave no operation: none on members can express that.
        if isListed, operations.count > before.operationsCount { return }
        goBack(to: before)
        replace(oldSpan.count, with: new.slice(newSpan))
    }

    /// In order, nearly always to the end, then by key; false, with some operations, where many differ.
    private mutating func compareMembers(
        _ old: JSONText, _ oldSpan: JSONText.Span, _ new: JSONText, _ newSpan: JSONText.Span
    ) -> Bool {
        var differencesLeft = Self.differencesMax(of: oldSpan.count)
        var (oldMembers, newMembers) = (old.memberIterator(oldSpan), new.memberIterator(newSpan))
        while true {
            let (oldIndex, newIndex) = (oldMembers.index, newMembers.index)
            let (next, newNext) = (oldMembers.next(), newMembers.next())
            if next == nil, newNext == nil { return true }
            guard let oldMember = next, let newMember = newNext, old.matches(oldMember.key, new, newMember.key) else {
                (oldMembers.index, newMembers.index) = (oldIndex, newIndex)
                let (olds, news) = (Array(IteratorSequence(oldMembers)), Array(IteratorSequence(newMembers)))
                return compareByKey(old, olds, new, news, differencesLeft)
            }
            if old.matches(oldMember.value, new, newMember.value) { continue }
            guard differencesLeft > 0 else { return false }
            differencesLeft -= 1
            compareMember(old, oldMember.value, new, newMember)
        }
    }

    private mutating func compareMember(
        _ old: JSONText, _ oldValue: JSONText.Span, _ new: JSONText, _ member: JSONText.Member
    ) {
        let length = place.count
        Self.append(new.slice(member.key), to: &place)
        compare(old, oldValue, new, member.value)
        pop(to: length)
    }

    private mutating func compareByKey(
        _ old: JSONText, _ oldMembers: [JSONText.Member], _ new: JSONText, _ newMembers: [JSONText.Member],
        _ differencesMax: Int
    ) -> Bool {
        var differencesLeft = differencesMax
        var values: [ArraySlice<UInt8>: JSONText.Span] = [:]
        for member in oldMembers { values[Array(old.slice(member.key))[...]] = member.value }
        var added: [JSONText.Member] = []
        for member in newMembers {
            guard let oldValue = values.removeValue(forKey: Array(new.slice(member.key))[...]) else {
                added.append(member)
                continue
            }
            if old.matches(oldValue, new, member.value) { continue }
            guard differencesLeft > 0 else { return false }
            differencesLeft -= 1
            compareMember(old, oldValue, new, member)
        }
        guard values.count + added.count <= differencesLeft else { return false }
        for member in oldMembers where values[Array(old.slice(member.key))[...]] != nil {
            remove(member: old.string(member.key), member.value.count)
        }
        for member in added { add(member: new.string(member.key), value: new.slice(member.value)) }
        return true
    }

    /// False, with some operations, where too many elements differ.
    private mutating func compareElements(
        _ old: JSONText, _ oldSpan: JSONText.Span, _ new: JSONText, _ newSpan: JSONText.Span
    ) -> Bool {
        let (oldElements, newElements) = (old.elements(oldSpan), new.elements(newSpan))
        let shorter = min(oldElements.count, newElements.count)
        var start = 0
        while start < shorter, old.matches(oldElements[start], new, newElements[start]) { start += 1 }
        var tail = 0
        while tail < shorter - start,
            old.matches(oldElements[oldElements.count - 1 - tail], new, newElements[newElements.count - 1 - tail])
        { tail += 1 }

        let (oldEnd, newEnd) = (oldElements.count - tail, newElements.count - tail)
        let common = min(oldEnd, newEnd)
        let different = (start..<common).filter { !old.matches(oldElements[$0], new, newElements[$0]) }
        guard different.count + max(oldEnd, newEnd) - common <= Self.differencesMax(of: oldSpan.count) else {
            return false
        }
        for index in different {
            descend(String(index)) { $0.compare(old, oldElements[index], new, newElements[index]) }
        }
        for index in stride(from: oldEnd - 1, through: common, by: -1) { remove(at: index, oldElements[index].count) }
        for index in common..<max(common, newEnd) { insert(at: index, value: new.slice(newElements[index])) }
        return true
    }
}

extension [UInt8] {
    fileprivate mutating func append(contentsOf text: StaticString) { text.withUTF8Buffer { append(contentsOf: $0) } }

    /// An array that has grown has up to as much room again.
    var trimmed: [UInt8] { capacity > count + count / 8 + 64 ? withUnsafeBufferPointer { Array($0) } : self }
}
