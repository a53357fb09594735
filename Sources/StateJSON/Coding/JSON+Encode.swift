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
    // exclusivity unchecked: one call to encode uses the variables, and a check takes as long as ten accesses.

    @exclusivity(unchecked) private var writer: JSONWriter
    @exclusivity(unchecked) private var open: [OpenContainer] = []
    @exclusivity(unchecked) private var nextID = 0
    /// Whether a key has been written whose value has not.
    ///
    /// A value that encodes nothing becomes `{}`.
    @exclusivity(unchecked) private var isValueDue = true
    @exclusivity(unchecked) private var misuse: String?

    private struct OpenContainer {
        let id: Int
        let isObject: Bool
        var count = 0
        /// The offsets at which the members of a dictionary begin; the session sorts the members when it closes the container.
        var memberStarts: [Int]?
    }

    init() { writer = JSONWriter() }

    /// Encodes a value in place of what the session has encoded before.
    func encodeAlone(_ value: some Encodable) throws {
        writer.bytes.removeAll(keepingCapacity: true)
        // It is not empty behind a failure.
        if !open.isEmpty { open.removeAll(keepingCapacity: true) }
        (isValueDue, misuse) = (true, nil)
        try encode(value)
        try finish()
    }

    var bytes: [UInt8] { writer.bytes }

    /// Gives the bytes away for others, whose memory it uses again, unless they are long.
    func swapBytes(with other: inout [UInt8]) {
        swap(&writer.bytes, &other)
        if writer.bytes.count > 64 << 10 { writer.bytes = [] }
    }

    /// Takes the writer's buffer without copying; ``giveBack(_:)`` returns it.
    init(taking other: inout JSONWriter) {
        writer = JSONWriter(capacity: 0)
        swap(&writer, &other)
    }

    func giveBack(_ other: inout JSONWriter) { swap(&writer, &other) }

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

/// A collection whose order differs from process to process, which the session therefore encodes in another way than the
/// collection itself would.
private protocol CollectionEncodable {
    /// Encodes the elements as an array, those of a set or a dictionary sorted by their bytes.
    ///
    /// - Returns: false where the collection has to encode itself; the session sorts the members of a dictionary when it closes
    ///   the object.
    func encodeElements(in session: JSONEncodingSession) throws -> Bool
}

extension JSONEncodingSession {
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
