import CMicroHTTPD

/// The version of libmicrohttpd that the program runs with, which may be another than the one it was built with.
package struct LibraryVersion: Sendable {
    package let text: String
    private let numbers: [Int]

    /// The first and the last version with which the tests of this package run.
    package static let tested = (first: LibraryVersion("0.9.75"), last: LibraryVersion("1.0.1"))

    package static var current: LibraryVersion { LibraryVersion(String(cString: MHD_get_version())) }

    init(_ text: String) {
        self.text = text
        numbers = text.split(separator: ".").prefix(3).map { Int($0.prefix { $0.isNumber }) ?? 0 }
    }

    package var isTested: Bool {
        !numbers.lexicographicallyPrecedes(Self.tested.first.numbers)
            && !Self.tested.last.numbers.lexicographicallyPrecedes(numbers)
    }

    /// Whether libmicrohttpd reads requests strictly by RFC 9112, and with them the framing of chunked bodies.
    package var isStrict: Bool { !numbers.lexicographicallyPrecedes([1, 0, 0]) }
}
