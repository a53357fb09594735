/// Turns the numbers of requests, which count up, into IDs.
///
/// A client that sees IDs of its own requests learns nothing of how many others there were. Different numbers have
/// different IDs.
package struct RequestNumbers: Sendable {
    /// The key on which the IDs depend; without it, they count up.
    private let key: UInt64?

    /// IDs that count up, for tests.
    package static let counting = RequestNumbers(key: nil)

    /// IDs that only a process with this key can put in order.
    package static func scrambled(by key: UInt64) -> RequestNumbers { RequestNumbers(key: key) }

    /// The ID of the request with this number: `r` and at most 13 letters and digits.
    package func text(of number: UInt64) -> String {
        guard let key else { return "r\(number)" }
        // A Feistel network of four rounds, each with SipHash, permutes the numbers (Luby and Rackoff).
        var (left, right) = (UInt32(truncatingIfNeeded: number >> 32), UInt32(truncatingIfNeeded: number))
        for round in 0..<4 {
            var hasher = Hasher()
            hasher.combine(key)
            hasher.combine(round)
            hasher.combine(right)
            (left, right) = (right, left ^ UInt32(truncatingIfNeeded: hasher.finalize()))
        }
        return "r" + String(UInt64(left) << 32 | UInt64(right), radix: 36)
    }
}
