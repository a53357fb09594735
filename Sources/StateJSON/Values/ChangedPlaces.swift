/// Pointers, with their spelling as the content of a JSON string, by which they are compared without looking at tokens.
struct ChangedPlaces: Sendable {
    private(set) var pointers: [JSONPointer] = []
    /// The spellings one behind the other.
    private var text: [UInt8] = []
    /// Where the spelling of each pointer ends.
    private var ends: [Int] = []

    var count: Int { pointers.count }

    /// Whether the pointer at an index has this spelling.
    func has(_ place: [UInt8], at index: Int) -> Bool {
        let range = (index == 0 ? 0 : ends[index - 1])..<ends[index]
        return text.withUnsafeBufferPointer { text in
            place.withUnsafeBufferPointer { UnsafeBufferPointer(rebasing: text[range]).hasBytes(of: $0) }
        }
    }

    /// Whether the last pointer has this spelling.
    func isLast(_ place: [UInt8]) -> Bool { count > 0 && has(place, at: count - 1) }

    /// Adds the pointer with a spelling.
    mutating func append(_ place: [UInt8]) {
        let spelling = place.withUnsafeBufferPointer { JSONText($0).string(0..<$0.count) }
        guard let pointer = JSONPointer(text: spelling) else { preconditionFailure("a place is spelled as a pointer") }
        pointers.append(pointer)
        text.append(contentsOf: place)
        ends.append(text.count)
    }

    /// Removes the pointers behind the first ones.
    mutating func keepFirst(_ count: Int) {
        guard count < self.count else { return }
        pointers.removeLast(self.count - count)
        ends.removeLast(ends.count - count)
        text.removeLast(text.count - (ends.last ?? 0))
    }
}
