/// What a client would like, from its `Prefer` fields (RFC 7240).
///
/// Preferences that are not known are ignored, as the RFC has it; so is a known one with a value that makes no sense.
public struct Preferences: Sendable, Equatable {
    /// How much of an answer the client wants.
    public enum Return: String, Sendable {
        /// As little as possible.
        case minimal
        /// With what has changed.
        case representation
    }

    /// `wait`: how long the client would wait.
    ///
    /// Without a value, the server's usual time.
    public enum Wait: Sendable, Equatable {
        /// The server's usual time.
        case usual
        /// So many seconds.
        case seconds(Int)
    }

    /// `return`.
    public var returning: Return?
    /// `wait`.
    public var wait: Wait?

    /// Reads field values; the first of two equal preferences counts.
    public init(_ values: [String]) {
        for value in values {
            for preference in Self.split(value.utf8) {
                // Parameters after a semicolon belong to the preference; none that we know has any.
                let token = preference.prefix { $0 != UInt8(ascii: ";") }.trimmingSpaces
                let sides = token.split(separator: UInt8(ascii: "="), maxSplits: 1, omittingEmptySubsequences: false)
                    .map { String(Substring($0.trimmingSpaces)) }
                let given = sides.count == 2 ? sides[1].filter { $0 != "\"" } : nil
                switch sides.first?.lowercased() {
                case "return": returning = returning ?? given.flatMap { Return(rawValue: $0.lowercased()) }
                case "wait":
                    guard wait == nil else { break }
                    if let given { wait = Int(given).flatMap { $0 >= 0 ? .seconds($0) : nil } } else { wait = .usual }
                default: break
                }
            }
        }
    }

    /// Splits at the commas that do not stand in quotes.
    private static func split(_ value: String.UTF8View) -> [Substring.UTF8View] {
        var (isQuoted, isEscaped) = (false, false)
        return value.split { byte in
            if isEscaped {
                isEscaped = false
            } else if byte == UInt8(ascii: "\"") {
                isQuoted.toggle()
            } else {
                isEscaped = isQuoted && byte == UInt8(ascii: "\\")
            }
            return byte == UInt8(ascii: ",") && !isQuoted
        }
    }
}
