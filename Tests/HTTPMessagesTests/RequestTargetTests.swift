import HTTPMessages
import Testing

@Suite("Request targets")
struct RequestTargetTests {
    @Test(
        "a target in the form for proxies is its path",
        arguments: [
            ("http://host/v1/state?pretty", "/v1/state?pretty"), ("https://host:80/", "/"), ("http://host", "/"),
            ("http://host?x=/v1/state", "/?x=/v1/state"), ("http://host/\u{301}/v1", "/\u{301}/v1"),
        ])
    func absolute(target: String, path: String) throws {
        #expect(try RequestTarget(target) == RequestTarget(path))
    }

    @Test(
        "the authority of a target in the form for proxies ends with the first slash or question mark",
        arguments: [
            ("http://host:80/v1", "host:80"), ("https://host?x=/v1", "host"), ("http://host", "host"),
            ("http://host/\u{301}/v1", "host"),
        ])
    func authority(target: String, authority: String) {
        #expect(RequestTarget.authority(of: target).map(String.init) == authority)
    }

    @Test(
        "a path is split first and each segment is then decoded exactly once",
        arguments: [
            ("/", []),
            ("/v1", ["v1"]),
            ("/v1/state/", ["v1", "state", ""]),
            ("//", ["", ""]),
            ("/v1/state/a%2Fb", ["v1", "state", "a/b"]),
            ("/v1/state/a%2fb", ["v1", "state", "a/b"]),
            ("/a%252Fb", ["a%2Fb"]),
            ("/a~1b", ["a~1b"]),
            ("/a+b", ["a+b"]),
            ("/a%20b", ["a b"]),
            ("/%C3%A9", ["é"]),
            ("/a%00b", ["a\0b"]),
            ("/a%3Fb", ["a?b"]),
            ("/..", [".."]),
            ("/a;b=c,d", ["a;b=c,d"]),
        ] as [(String, [String])])
    func segments(target: String, expected: [String]) throws {
        let decoded = try RequestTarget(target)

        #expect(decoded.segments.map { Array($0.utf8) } == expected.map { Array($0.utf8) })
        #expect(decoded.parameters.isEmpty)
    }

    @Test(
        "a query is split first and each side is then decoded exactly once",
        arguments: [
            ("/?", []),
            ("/?a=1&b=2", [("a", "1"), ("b", "2")]),
            ("/?pretty", [("pretty", nil)]),
            ("/?pretty=", [("pretty", "")]),
            ("/?a=1&&b", [("a", "1"), ("b", nil)]),
            ("/?a=b=c", [("a", "b=c")]),
            ("/?a=b+c", [("a", "b c")]),
            ("/?a=b%2Bc", [("a", "b+c")]),
            ("/?a%26b=c%3Dd", [("a&b", "c=d")]),
            ("/?path=/tasks/a%252Fb", [("path", "/tasks/a%2Fb")]),
            ("/?q=a?b", [("q", "a?b")]),
            ("/?a=1&a=2", [("a", "1"), ("a", "2")]),
            ("/?=x", [("", "x")]),
        ] as [(String, [(String, String?)])])
    func parameters(target: String, expected: [(String, String?)]) throws {
        let decoded = try RequestTarget(target)

        #expect(decoded.segments.isEmpty)
        #expect(decoded.parameters.map(\.name) == expected.map(\.0))
        #expect(decoded.parameters.map(\.value) == expected.map(\.1))
    }

    @Test(
        "a target that cannot be decoded is refused",
        arguments: [
            ("", "begins with /"),
            ("v1/state", "begins with /"),
            ("?a", "begins with /"),
            ("*", "begins with /"),
            ("ftp://host/v1", "begins with /"),
            ("/a%", "hexadecimal"),
            ("/a%2", "hexadecimal"),
            ("/a%2G", "hexadecimal"),
            ("/a%+1", "hexadecimal"),
            ("/?a=%zz", "hexadecimal"),
            ("/?%=1", "hexadecimal"),
            ("/%FF", "UTF-8"),
            ("/%C3", "UTF-8"),
            ("/%C0%AF", "UTF-8"),
            ("/%ED%A0%80", "UTF-8"),
            ("/?a=%80", "UTF-8"),
        ])
    func refused(target: String, word: String) {
        let fault = #expect(throws: RequestTarget.Fault.self) { try RequestTarget(target) }

        #expect(fault?.detail.contains(word) == true)
    }

    @Test("the bytes of a character may not be in two segments")
    func splitCharacter() {
        #expect(throws: RequestTarget.Fault.self) { try RequestTarget("/%C3/%A9") }
    }
}
