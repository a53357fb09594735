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
