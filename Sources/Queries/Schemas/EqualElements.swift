internal import StateJSON

/// Finds equal elements of arrays, in time that grows with the document however often its parts are looked at.
///
/// Two values are equal where their digests are.
struct EqualElements {
    private struct Digest: Hashable {
        var high: UInt64
        var low: UInt64

        init(high: UInt64, low: UInt64) { (self.high, self.low) = (high, low) }

        /// The digest of any other value: 128 bits of SipHash, whose key nobody outside the process knows.
        init(_ feed: (inout Hasher) -> Void) {
            func half(_ number: UInt8) -> UInt64 {
                var hasher = Hasher()
                hasher.combine(number)
                feed(&hasher)
                return UInt64(truncatingIfNeeded: hasher.finalize())
            }
            (high, low) = (half(0), half(1))
        }
    }

    private var known: [Int: Digest] = [:]

    mutating func firstTwo(of array: Int, in document: JSONDocument) -> (Int, Int)? {
        var positions: [Digest: Int] = [:]
        positions.reserveCapacity(document.count(of: .elements, in: array) ?? 0)
        var (position, element) = (0, document.firstChild(array))
        while !document.isEnd(element) {
            if let first = positions.updateValue(position, forKey: digest(of: element, in: document)) {
                return (first, position)
            }
            position += 1
            element = document.after(element)
        }
        return nil
    }

    private mutating func digest(of value: Int, in document: JSONDocument) -> Digest {
        let kind = document.kind(value)
        switch kind {
        case UInt8(ascii: "["), UInt8(ascii: "{"):
            if let digest = known[value] { return digest }
            let digest =
                kind == UInt8(ascii: "[")
                ? digest(ofArray: value, in: document) : digest(ofObject: value, in: document)
            known[value] = digest
            return digest
        case UInt8(ascii: "\""):
            return Digest { hasher in
                hasher.combine(kind)
                hasher.combine(bytes: UnsafeRawBufferPointer(document.utf8(value)))
            }
        default:
            switch document.number(value) {
            case nil: return Digest(high: UInt64(kind), low: 0)
            case .whole(let whole)?: return Digest(high: whole < 0 ? 0 : 1, low: UInt64(whole.magnitude))
            case .double(let double)?: return Digest(high: 2, low: double.bitPattern)
            }
        }
    }

    private mutating func digest(ofArray array: Int, in document: JSONDocument) -> Digest {
        var digests: [Digest] = []
        var element = document.firstChild(array)
        while !document.isEnd(element) {
            digests.append(digest(of: element, in: document))
            element = document.after(element)
        }
        return Digest { hasher in
            hasher.combine(UInt8(ascii: "["))
            for digest in digests {
                hasher.combine(digest.high)
                hasher.combine(digest.low)
            }
        }
    }

    /// The order of the members does not matter, so their digests are added.
    private mutating func digest(ofObject object: Int, in document: JSONDocument) -> Digest {
        var (high, low, key) = (UInt64(0), UInt64(0), document.firstChild(object))
        while !document.isEnd(key) {
            let value = digest(of: key + 1, in: document)
            let member = Digest { hasher in
                hasher.combine(value.high)
                hasher.combine(value.low)
                hasher.combine(bytes: UnsafeRawBufferPointer(document.utf8(key)))
            }
            (high, low, key) = (high &+ member.high, low &+ member.low, document.after(key + 1))
        }
        return Digest { hasher in
            hasher.combine(UInt8(ascii: "{"))
            hasher.combine(high)
            hasher.combine(low)
        }
    }
}
