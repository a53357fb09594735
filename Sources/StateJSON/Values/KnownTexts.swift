/// The known encodings of parts of a value, by the pointers of the parts.
///
/// A lookup is O(n) in the number of parts; a state has few parts that are encoded as one value.
struct KnownTexts: Sendable {
    /// The pointer of each part as the content of a JSON string, and its encoding.
    private var parts: [(place: [UInt8], text: [UInt8])] = []

    func index(of place: [UInt8]) -> Int? { parts.firstIndex { $0.place == place } }

    subscript(index: Int) -> [UInt8] {
        get { parts[index].text }
        set { parts[index].text = newValue }
    }

    /// - Returns: its index.
    mutating func append(_ text: [UInt8], of place: [UInt8]) -> Int {
        parts.append((place, text))
        return parts.count - 1
    }
}
