internal import StateJSON

/// Takes time that grows with the document however often its parts are looked at; values are equal where their digests
/// are: 128 bits of SipHash, whose key nobody outside the process knows.
struct EqualElements {
    private var known: [Int: UInt128] = [:]

    mutating func firstTwo(of array: Int, in document: JSONDocument) -> (Int, Int)? {
        var positions: [UInt128: Int] = [:]
        for (position, element) in document.children(of: array).enumerated() {
            if let first = positions.updateValue(position, forKey: digest(of: element, in: document)) {
                return (first, position)
            }
        }
        return nil
    }

    private mutating func digest(of value: Int, in document: JSONDocument) -> UInt128 {
        if let digest = known[value] { return digest }
        let kind = document.kind(value)
        switch kind {
        case UInt8(ascii: "["):
            let digests = document.children(of: value).map { digest(of: $0, in: document) }
            known[value] = Self.digest { hasher in
                hasher.combine(kind)
                for digest in digests { hasher.combine(digest) }
            }
        case UInt8(ascii: "{"):
            // The order of the members does not matter, so their digests are added.
            let sum = document.children(of: value).reduce(UInt128(0)) { sum, child in
                let member = digest(of: child, in: document)
                return sum
                    &+ Self.digest { hasher in
                        hasher.combine(member)
                        hasher.combine(bytes: UnsafeRawBufferPointer(document.utf8(child - 1)))
                    }
            }
            known[value] = Self.digest { hasher in
                hasher.combine(kind)
                hasher.combine(sum)
            }
        case UInt8(ascii: "\""):
            return Self.digest { hasher in
                hasher.combine(kind)
                hasher.combine(bytes: UnsafeRawBufferPointer(document.utf8(value)))
            }
        default:
            let number = document.number(value)
            return Self.digest { hasher in
                hasher.combine(number == nil ? kind : 0)
                hasher.combine(number)
            }
        }
        return known[value] ?? 0
    }

    private static func digest(_ feed: (inout Hasher) -> Void) -> UInt128 {
        [UInt8(0), 1].reduce(0) { digest, half in
            var hasher = Hasher()
            hasher.combine(half)
            feed(&hasher)
            return digest << 64 | UInt128(UInt64(truncatingIfNeeded: Int64(hasher.finalize())))
        }
    }
}
