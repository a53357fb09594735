import Testing

@testable import MicroHTTP

@Suite("The version of libmicrohttpd")
struct LibraryVersionTests {
    @Test(
        "a version is tested between the first and the last one that the tests run with",
        arguments: [
            ("0.9.74", false), ("0.9.75", true), ("0.9.77", true), ("1.0.0", true), ("1.0.1", true), ("1.0.2", false),
            ("1.0.10", false), ("1.1.0", false), ("0.10.0", true), ("2", false),
        ])
    func versions(text: String, isTested: Bool) { #expect(LibraryVersion(text).isTested == isTested) }
}
