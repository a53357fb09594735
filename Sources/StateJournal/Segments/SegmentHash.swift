internal import StateJSON
package import StateStore

/// Covers the segment, its versions and the hash before it by XXH3 with 128 bits; it detects damage, a missing segment
/// and one of another history, but no forgery: XXH3 is not cryptographic.
package struct SegmentHash: Hashable, Sendable {
    private let content: ContentHash

    /// The number that segments have for this algorithm in their bodies and that the hash covers.
    package static let algorithm: UInt8 = 1

    package init(beginning epoch: Epoch, version: Version) {
        let name = Array(epoch.text.utf8)
        let none = SegmentHash(content: ContentHash(high: 0, low: 0))
        self.init(after: none, first: version, last: version, body: name.span.bytes)
    }

    /// O(n) in the size of the body, about 10 GB a second.
    package init(after predecessor: SegmentHash, first: Version, last: Version, body: RawSpan) {
        // The hash of the text stands in a block of a fixed size, so that no byte of the text can pass for a number.
        let hash = body.withUnsafeBytes { ContentHash($0) }
        let block = (
            UInt64(SegmentHash.algorithm).littleEndian, predecessor.content.high.littleEndian,
            predecessor.content.low.littleEndian,
            first.littleEndian, last.littleEndian, hash.high.littleEndian, hash.low.littleEndian,
            UInt64(body.byteCount).littleEndian
        )
        content = withUnsafeBytes(of: block) { ContentHash($0) }
    }

    private init(content: ContentHash) { self.content = content }

    /// Nil for any number of bytes but 16.
    package init?(_ bytes: some Swift.Collection<UInt8>) {
        guard bytes.count == 16 else { return nil }
        content = ContentHash(
            high: bytes.prefix(8).reduce(0) { $0 << 8 | UInt64($1) },
            low: bytes.suffix(8).reduce(0) { $0 << 8 | UInt64($1) })
    }

    /// Most significant first.
    package func withBytes<Value>(_ body: (UnsafeRawBufferPointer) throws -> Value) rethrows -> Value {
        try withUnsafeBytes(of: (content.high.bigEndian, content.low.bigEndian), body)
    }

    package var bytes: [UInt8] { withBytes { Array($0) } }
}

package struct SegmentFault: Error, Equatable {
    package let detail: String

    package init(_ detail: String) { self.detail = detail }

    static let cut = SegmentFault("it is cut off")
    package static let malformed = SegmentFault("its parts do not fit together")
}

/// The next segment builds on it.
package struct ChainLink: Hashable, Sendable {
    package var version: Version
    package var hash: SegmentHash

    package init(version: Version, hash: SegmentHash) { (self.version, self.hash) = (version, hash) }

    package init(beginning epoch: Epoch, version: Version) {
        self.init(version: version, hash: SegmentHash(beginning: epoch, version: version))
    }
}
