internal import Synchronization

/// The encoding of a value, and its large arrays, from which the encoding of a later value takes what is the same.
package struct KnownText: Sendable {
    /// Compact UTF-8 JSON.
    package let bytes: [UInt8]
    /// The outermost arrays of ``EncodedArray/countMin`` elements and more, in the order of the bytes.
    let arrays: [EncodedArray]

    /// Encodes a value to the bytes of ``JSON/encode(_:)``.
    ///
    /// An element of a large array costs a comparison of its memory where it is the same as in an earlier value, and its
    /// encoding where not. ``ValueShape`` says what is the same; the encoding of a value is taken to depend on the value alone.
    ///
    /// - Parameters:
    ///   - known: the encoding of an earlier value of the same type.
    ///   - spare: a session that earlier encodings have used.
    /// - Throws: what ``JSON/encode(_:)`` throws.
    package init(
        _ value: some Encodable, after known: KnownText? = nil, in spare: SpareEncodingSession = SpareEncodingSession()
    ) throws {
        var writer = JSONWriter(capacity: (known?.bytes.count ?? 0) + 256)
        arrays = try spare.use { session in
            session.begin(taking: &writer)
            defer { session.giveBack(&writer) }
            session.collectArrays(after: known)
            try session.encode(value)
            try session.finish()
            return session.takeArrays()
        }
        bytes = writer.bytes
    }
}

/// A large array and where its elements lie in the encoding.
///
/// `@unchecked Sendable`: the elements are part of a state, which is `Sendable`, and nobody changes them.
struct EncodedArray: @unchecked Sendable {
    /// How many elements an array has at least for which the places of its elements are kept.
    static let countMin = 32

    /// The array, which keeps what its elements refer to, so that no other value can get the same address.
    let elements: Any
    /// The shape of its elements; nil where it is not known.
    let shape: ValueShape?
    /// Which element has been looked at for the shape, counted on from encoding to encoding.
    let sampled: Int
    /// The range of the array in the bytes.
    let span: Range<Int>
    /// Where its elements begin.
    let starts: [Int]

    /// The range of an element in the bytes.
    func span(of index: Int) -> Range<Int> {
        starts[index]..<(index + 1 < starts.count ? starts[index + 1] : span.upperBound) - 1
    }

    /// The index of the first element that begins at an offset or behind it.
    func firstIndex(from offset: Int) -> Int {
        var (low, high) = (0, starts.count)
        while low < high {
            let middle = (low + high) / 2
            if starts[middle] < offset { low = middle + 1 } else { high = middle }
        }
        return low
    }
}

/// A session that one encoding after the other uses, so that its memory stays.
///
/// `@unchecked Sendable`: an atomic step claims the session, and who does not get it makes one of its own.
package final class SpareEncodingSession: @unchecked Sendable {
    private let session = JSONEncodingSession()
    private let isTaken = Atomic(false)

    /// Makes a session that no encoding has used.
    package init() { session.outermost = OutermostContainer(isKept: true) }

    // The container and the session refer to each other.
    deinit { session.outermost = OutermostContainer(isKept: false) }

    func use<Result>(_ body: (JSONEncodingSession) throws -> Result) rethrows -> Result {
        guard !isTaken.exchange(true, ordering: .acquiring) else { return try body(JSONEncodingSession()) }
        defer { isTaken.store(false, ordering: .releasing) }
        return try body(session)
    }
}
