extension JSON {
    /// Encodes a value as compact UTF-8 JSON in a stable order: fields as the type encodes them, dictionaries and sets sorted.
    ///
    /// Equal values have equal bytes, in every process.
    ///
    /// - Throws: `EncodingError` for NaN and the infinities, and for a type that writes to two of its containers alternately.
    package static func encode(_ value: some Encodable) throws -> [UInt8] {
        var writer = JSONWriter()
        try write(value, to: &writer)
        return writer.bytes
    }

    /// Appends the encoding of a value; the bytes and errors are those of ``encode(_:)``.
    package static func write(_ value: some Encodable, to writer: inout JSONWriter) throws {
        let session = JSONEncodingSession(taking: &writer)
        defer { session.giveBack(&writer) }
        try session.encode(value)
        try session.finish()
    }
}

/// One call to encode: the bytes so far and the open containers.
///
/// All containers write into one buffer. The session closes a nested container when its parent is written to again.
final class JSONEncodingSession {
    // One thread uses a session, from one call to the next. Only `write` lends a variable, the writer, and no closure that it
    // lends it to calls the session. The run-time checks of exclusive access can therefore find nothing.
    @exclusivity(unchecked)
    private var writer: JSONWriter
    @exclusivity(unchecked)
    private var open: [OpenContainer] = []
    @exclusivity(unchecked)
    private var nextID = 0
    /// Whether a key has been written whose value has not.
    ///
    /// A value that encodes nothing becomes `{}`.
    @exclusivity(unchecked)
    private var isValueDue = true
    private var misuse: String?
    @exclusivity(unchecked)
    var outermost = OutermostContainer(isKept: false)
    /// The outermost large arrays that it has encoded, where the caller has asked for them.
    @exclusivity(unchecked)
    private(set) var arrays: [EncodedArray] = []
    /// Whether it keeps the next large array: not where the caller has not asked, nor inside another one.
    @exclusivity(unchecked)
    private var collectsArrays = false
    /// The encoding of an earlier value, for the elements that are the same.
    @exclusivity(unchecked)
    private var known: KnownText?

    private struct OpenContainer {
        let id: Int
        let isObject: Bool
        var count = 0
        /// The offsets at which the members of a dictionary begin; the session sorts the members when it closes the container.
        var memberStarts: [Int]?
    }

    init() { writer = JSONWriter(capacity: 0) }

    /// Takes the writer's buffer without copying; ``giveBack(_:)`` returns it.
    convenience init(taking other: inout JSONWriter) {
        self.init()
        begin(taking: &other)
    }

    /// Begins an encoding, behind one that may have thrown.
    func begin(taking other: inout JSONWriter) {
        swap(&writer, &other)
        if !open.isEmpty { open.removeAll(keepingCapacity: true) }
        (nextID, isValueDue, misuse) = (0, true, nil)
    }

    /// Ends an encoding, and forgets what it has kept for its arrays.
    func giveBack(_ other: inout JSONWriter) {
        swap(&writer, &other)
        (collectsArrays, known, arrays) = (false, nil, [])
    }

    /// Takes the large arrays that the encoding has kept.
    func takeArrays() -> [EncodedArray] { exchange(&arrays, with: []) }

    /// Has the session keep the outermost large arrays, and take from the encoding of an earlier value what is the same.
    func collectArrays(after known: KnownText?) {
        collectsArrays = true
        self.known = known
    }

    /// The array of the earlier value in the place of the next array.
    ///
    /// It need not be an earlier form of the same array: whatever is taken from it is compared first.
    private var formerArray: EncodedArray? {
        guard let known, arrays.count < known.arrays.count else { return nil }
        return known.arrays[arrays.count]
    }

    var depth: Int { open.count }

    func finish() throws {
        close(to: 0)
        fillDueValue()
        if let misuse { throw EncodingError.invalidValue((), .init(codingPath: [], debugDescription: misuse)) }
    }

    func encode<Value: Encodable>(_ value: Value) throws {
        if Value.self == [Int].self, let integers = value as? [Int] { return write { $0.integers(integers) } }
        if try encodeFoundation(value) { return }
        // A collection has the size of a pointer and counts references: that spares other types the slower cast.
        if MemoryLayout<Value>.size == MemoryLayout<Int>.size, !_isPOD(Value.self),
            let collection = value as? any CollectionEncodable, try collection.encodeElements(in: self)
        {
            return
        }
        try value.encode(to: JSONValueEncoder(self))
    }

    func write(_ body: (inout JSONWriter) throws -> Void) rethrows {
        isValueDue = false
        try body(&writer)
    }

    func number<Number: BinaryFloatingPoint & CustomStringConvertible>(_ value: Number) throws {
        isValueDue = false
        guard writer.number(value) else {
            throw EncodingError.invalidValue(
                value, .init(codingPath: [], debugDescription: "JSON has no number for \(value)"))
        }
    }

    /// Opens a container for the next value, or returns the one that the value has already opened at this depth.
    func container(atDepth depth: Int, isObject: Bool, isSorted: Bool) -> Int {
        if open.count > depth {
            close(to: depth + 1)
            if open[depth].isObject != isObject { misuse = "one value asked for two kinds of container" }
            return open[depth].id
        }
        isValueDue = false
        nextID += 1
        writer.byte(isObject ? UInt8(ascii: "{") : UInt8(ascii: "["))
        open.append(OpenContainer(id: nextID, isObject: isObject, memberStarts: isSorted ? [] : nil))
        return nextID
    }

    /// Begins the next member or element of a container, after closing the containers inside it.
    func beginElement(_ id: Int, depth: Int, key: String? = nil) {
        close(to: depth + 1)
        guard open.count == depth + 1, open[depth].id == id else {
            misuse = "a container was written to after the one around it"
            return
        }
        fillDueValue()
        if open[depth].count > 0 { writer.byte(UInt8(ascii: ",")) }
        open[depth].count += 1
        open[depth].memberStarts?.append(writer.bytes.count)
        if let key {
            writer.string(key)
            writer.byte(UInt8(ascii: ":"))
        }
        isValueDue = true
    }

    func count(_ id: Int, depth: Int) -> Int {
        open.count > depth && open[depth].id == id ? open[depth].count : 0
    }

    /// Closes the containers beyond a depth.
    func close(to depth: Int) {
        while open.count > depth {
            fillDueValue()
            let container = open.removeLast()
            if let starts = container.memberStarts { sort(starts) }
            writer.byte(container.isObject ? UInt8(ascii: "}") : UInt8(ascii: "]"))
        }
    }

    private func fillDueValue() {
        guard isValueDue else { return }
        isValueDue = false
        writer.raw("{}")
    }

    /// Sorts the members of the dictionary at the end of the buffer by their bytes.
    private func sort(_ starts: [Int]) {
        guard starts.count > 1, let first = starts.first else { return }
        let ends = starts.dropFirst().map { $0 - 1 } + [writer.bytes.count]
        let members = zip(starts, ends).map { writer.bytes[$0..<$1] }
        let sorted = members.sorted { $0.lexicographicallyPrecedes($1) }
        writer.bytes.replaceSubrange(first..., with: Array(sorted.joined(separator: [UInt8(ascii: ",")])))
    }
}

/// A collection that the session encodes in another way than the collection itself would: one whose order differs from process
/// to process, or a large array.
private protocol CollectionEncodable {
    /// Encodes the elements as an array, those of a set or a dictionary sorted by their bytes.
    ///
    /// - Returns: false where the collection has to encode itself; the session sorts the members of a dictionary when it closes
    ///   the object.
    func encodeElements(in session: JSONEncodingSession) throws -> Bool
}

extension JSONEncodingSession {
    /// Encodes a large array: runs of elements that are the same as in the earlier value keep their bytes.
    ///
    /// - Returns: false, without having encoded anything, where the array is none of those that the encoding collects.
    fileprivate func array<Element: Encodable>(_ elements: [Element]) throws -> Bool {
        guard collectsArrays, elements.count >= EncodedArray.countMin,
            // The members of a dictionary move when they are sorted.
            open.allSatisfy({ $0.memberStarts == nil })
        else { return false }
        collectsArrays = false
        defer { collectsArrays = true }
        let former = formerArray
        let formerElements = former?.elements as? [Element]
        // Each encoding looks at another element, because one with empty parts does not tell the shape.
        let sampled = former.map { $0.sampled + 1 } ?? 0
        let knownShape = formerElements == nil ? nil : former?.shape
        let shape = knownShape ?? ValueShape(of: elements[sampled % elements.count])
        let runs = formerElements.flatMap { shape?.equalRuns($0, elements) } ?? []

        let (depth, start) = (depth, writer.bytes.count)
        let id = container(atDepth: depth, isObject: false, isSorted: false)
        var starts: [Int] = []
        starts.reserveCapacity(elements.count)
        func encode(_ range: Range<Int>) throws {
            for index in range {
                beginElement(id, depth: depth)
                starts.append(writer.bytes.count)
                try self.encode(elements[index])
                close(to: depth + 1)
                fillDueValue()
            }
        }
        var next = 0
        for run in runs {
            try encode(next..<run.range.lowerBound)
            if let former, let known {
                let (first, last) = (run.range.lowerBound + run.shift, run.range.upperBound - 1 + run.shift)
                beginElement(id, depth: depth)
                isValueDue = false
                let distance = writer.bytes.count - former.starts[first]
                starts.append(contentsOf: former.starts[first...last].lazy.map { $0 + distance })
                writer.raw(known.bytes[former.starts[first]..<former.span(of: last).upperBound])
            }
            next = run.range.upperBound
        }
        try encode(next..<elements.count)
        close(to: depth)
        arrays.append(
            EncodedArray(
                elements: elements, shape: shape, sampled: sampled, span: start..<writer.bytes.count, starts: starts))
        return true
    }

    fileprivate func array(of elements: [[UInt8]]) {
        write { writer in
            writer.byte(UInt8(ascii: "["))
            var isFirst = true
            for element in elements.sorted(by: { $0.lexicographicallyPrecedes($1) }) {
                writer.separator(&isFirst)
                writer.raw(element)
            }
            writer.byte(UInt8(ascii: "]"))
        }
    }
}

extension Array: CollectionEncodable where Element: Encodable {
    fileprivate func encodeElements(in session: JSONEncodingSession) throws -> Bool { try session.array(self) }
}

extension Set: CollectionEncodable where Element: Encodable {
    fileprivate func encodeElements(in session: JSONEncodingSession) throws -> Bool {
        session.array(of: try map { try JSON.encode($0) })
        return true
    }
}

extension Dictionary: CollectionEncodable where Key: Encodable, Value: Encodable {
    fileprivate func encodeElements(in session: JSONEncodingSession) throws -> Bool {
        if Key.self == String.self || Key.self == Int.self || Key.self is any CodingKeyRepresentable.Type {
            return false
        }
        // The standard library encodes a dictionary with other keys as an array of alternating keys and values.
        session.array(of: try map { try JSON.encode($0) + [UInt8(ascii: ",")] + JSON.encode($1) })
        return true
    }
}
