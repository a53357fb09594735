package import StateStore

/// A position in a stream, as the Durable Streams protocol names it (section 8): texts of one stream sort like positions.
package struct StreamOffset: Hashable, Sendable {
    /// Where in the messages of a version a position of the state stream lies.
    package enum Place: Hashable, Sendable {
        /// Behind so many entities of the snapshot of the version.
        case inSnapshot(Int)
        /// Behind everything that the stream tells of the version.
        case behind
    }

    /// The version of whose commit, or of whose state, the position is.
    package var cursor: Cursor
    /// Where in the state stream it is; nil in the stream of commits, where a version is one position.
    package var place: Place?

    package init(_ cursor: Cursor, _ place: Place? = nil) {
        self.cursor = cursor
        self.place = place
    }

    init?(text: String, ofState: Bool) {
        let parts = text.split(separator: "_", omittingEmptySubsequences: false)
        guard parts.count == (ofState ? 3 : 2), let epoch = Epoch(parts[0]),
            let version = Self.number(parts[1], Version.self)
        else { return nil }
        cursor = Cursor(epoch, version)
        guard ofState else { return }
        if parts[2] == "z" {
            place = .behind
        } else {
            guard let count = Self.number(parts[2], UInt32.self) else { return nil }
            place = .inSnapshot(Int(count))
        }
    }

    /// Reads a number in as many lower-case hexadecimal digits as the type has.
    private static func number<Number: FixedWidthInteger>(_ text: Substring, _: Number.Type) -> Number? {
        guard text.utf8.count == Number.bitWidth / 4,
            text.utf8.allSatisfy({ (0x30...0x39).contains($0) || (0x61...0x66).contains($0) })
        else { return nil }
        return Number(text, radix: 16)
    }

    /// `<epoch>_<version>`, and in the state stream `_<count of entities>` or `_z`; the numbers are hexadecimal.
    package var text: String {
        let version = "\(cursor.epoch)_\(Self.digits(cursor.version))"
        return switch place {
        case .inSnapshot(let count)?: "\(version)_\(Self.digits(UInt32(clamping: count)))"
        case .behind?: "\(version)_z"
        case nil: version
        }
    }

    private static func digits(_ number: some FixedWidthInteger) -> String {
        let digits = String(number, radix: 16)
        return String(repeating: "0", count: number.bitWidth / 4 - digits.utf8.count) + digits
    }
}
