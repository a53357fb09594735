package import HTTPMessages
internal import HTTPTypes
package import StateStore

package struct Circumstances: Sendable {
    package var bounds: HistoryBounds
    package var name: RequestName
    package var authentication: Authentication

    package init(bounds: HistoryBounds, name: RequestName, authentication: Authentication) {
        self.bounds = bounds
        self.name = name
        self.authentication = authentication
    }

    package var latest: Cursor { bounds.latest }
}

/// The origin of a request's ID, which few requests need: the client's `X-Request-ID`, or else its number.
package struct RequestName: Sendable {
    private let own: OwnFields?
    /// Nil for a request that the server has not taken.
    private let number: UInt64?
    private let numbers: RequestNumbers

    package init(_ own: OwnFields?, number: UInt64?, _ numbers: RequestNumbers = .counting) {
        (self.own, self.number, self.numbers) = (own, number, numbers)
    }

    package var trace: TraceContext? { own?.trace }

    /// At most 128 visible ASCII characters.
    package var text: String {
        let given = own?[.requestID] ?? ""
        let isName = (1...128).contains(given.utf8.count) && given.utf8.allSatisfy { (0x21...0x7E).contains($0) }
        return isName ? given : number.map(numbers.text) ?? "-"
    }
}

/// Requests are equal whatever their names: no answer that clients share has one.
extension RequestName: Hashable {
    package static func == (left: RequestName, right: RequestName) -> Bool { true }
    package func hash(into hasher: inout Hasher) {}
}

struct RoutedRequest {
    let request: Request
    let target: RequestTarget
    var store: VisibleStore
    let circumstances: Circumstances
}

/// Turns the numbers of requests into different IDs, by which a client learns nothing of how many others there were.
package struct RequestNumbers: Sendable {
    private let key: UInt64?

    package static let counting = RequestNumbers(key: nil)

    package static func scrambled(by key: UInt64) -> RequestNumbers { RequestNumbers(key: key) }

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
