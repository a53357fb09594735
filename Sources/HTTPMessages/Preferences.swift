/// The preferences of a client; RFC 7240 demands that unknown and invalid ones are ignored.
package struct Preferences: Sendable, Equatable {
    package enum Return: String, Sendable {
        case minimal, representation
    }

    package enum Wait: Sendable, Equatable {
        /// `wait` without a value: the server's default time.
        case usual
        case seconds(Int)
    }

    package var returning: Return?
    package var wait: Wait?

    /// Parses the values of all `Prefer` fields; of several preferences with one name, the first counts.
    package init(_ values: [String]) {
        for value in values {
            for preference in value[...].utf8.split(outsideQuotes: UInt8(ascii: ",")).parts {
                // A semicolon begins parameters of the preference; `return` and `wait` have none.
                let token = preference.utf8.prefix { $0 != UInt8(ascii: ";") }.trimmingSpaces
                let sides = token.split(separator: UInt8(ascii: "="), maxSplits: 1, omittingEmptySubsequences: false)
                    .map { String(Substring($0.trimmingSpaces)) }
                let given = sides.count == 2 ? sides[1].filter { $0 != "\"" } : nil
                switch sides.first?.lowercased() {
                case "return": returning = returning ?? given.flatMap { Return(rawValue: $0.lowercased()) }
                case "wait":
                    guard wait == nil else { break }
                    if let given { wait = Self.seconds(given) } else { wait = .usual }
                default: break
                }
            }
        }
    }

    /// Reads digits, which are a long wait where an `Int` does not hold them; nil for anything else.
    private static func seconds(_ text: String) -> Wait? {
        guard !text.isEmpty, text.utf8.allSatisfy({ (0x30...0x39).contains($0) }) else { return nil }
        return .seconds(Int(text) ?? .max)
    }
}

/// The names in a field such as `Accept` or `Accept-Encoding`, with their weights (RFC 9110, section 12.4.2).
package enum WeightedNames {
    /// The names in small letters, in the order of the field, without parameters; a weight that is no number is 0.
    package static func read(_ field: String) -> [(name: String, weight: Double)] {
        field.utf8.split(separator: UInt8(ascii: ",")).compactMap { element in
            let parts = Substring(element).split(separator: ";").map {
                $0.filter { $0 != " " && $0 != "\t" }.lowercased()
            }
            let weight = parts.dropFirst().first { $0.hasPrefix("q=") }.map { Double($0.dropFirst(2)) ?? 0 } ?? 1
            return parts.first.map { ($0, weight) }
        }
    }
}
