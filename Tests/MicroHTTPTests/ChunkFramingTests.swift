import Testing

@testable import MicroHTTP

@Suite("The framing of chunked bodies")
struct ChunkFramingTests {
    /// Feeds a text to a framing in pieces of one size.
    private func feed(_ text: String, piecesOf size: Int = .max) -> (framing: ChunkFraming, fault: String?) {
        var framing = ChunkFraming()
        var rest = Array(text.utf8)[...]
        while !rest.isEmpty {
            let piece = Array(rest.prefix(size))
            rest = rest.dropFirst(size)
            if let fault = piece.withUnsafeBytes({ framing.take($0) { _ in } }) { return (framing, fault) }
        }
        return (framing, nil)
    }

    @Test(
        "a body ends where RFC 9112 ends it, however it is cut into pieces",
        arguments: [
            ("0\r\n\r\n", ""), ("3\r\nabc\r\n0\r\n\r\n", "GET / HTTP/1.1\r\n"), ("003\r\nabc\r\n00\r\n\r\n", "x"),
            ("a\r\n0123456789\r\nA;name=\"value\"\r\n0123456789\r\n0;x\r\nTrailer: 1\r\nAnother: 2\r\n\r\n", "next"),
            ("2\r\n\r\n\r\n0\r\n\r\n", "0\r\n\r\n"),
        ])
    func ends(body: String, next: String) {
        for size in [1, 2, 3, 7, Int.max] {
            let (framing, fault) = feed(body + next, piecesOf: size)
            #expect(fault == nil)
            #expect(framing.isComplete)
            #expect(framing.count == body.utf8.count)
        }
    }

    @Test(
        "a body that has two readings is refused",
        arguments: [
            "3\nabc\r\n0\r\n\r\n", "3\r\nabc\n0\r\n\r\n", "3\r\nabc\r\n0\n\r\n", "3\r\nabc\r\n0\r\n\n",
            "3;a\nb\r\nabc", "3;a\rb\r\nabc", "3 \r\nabc", " 3\r\nabc", "0x3\r\nabc", "+3\r\nabc", "-3\r\nabc",
            "\r\nabc",
            ";\r\n", "g\r\n", "3\r\nabcd\r\n", "3\r\nab\r\n0\r\n", "0\r\nA: 1\n\r\n", "0\r\n A: 1\r\n\r\n",
            "0\r\nA: 1\r\n B\r\n\r\n", "0\r\nA : 1\r\n\r\n", "0\r\nA\r\n\r\n", "0\r\n: 1\r\n\r\n", "0\r\nA: \0\r\n\r\n",
            "fffffffffffffffff\r\n", "0000000000000003\r\nabc",
        ])
    func refuses(body: String) {
        for size in [1, 2, 5, Int.max] { #expect(feed(body, piecesOf: size).fault != nil, "\(size)") }
    }

    @Test("extensions and trailers have a limit in all, and data has none")
    func surplus() {
        let long = String(repeating: "x", count: ChunkFraming.surplusBytesMax)
        #expect(feed("1;\(long)\r\n").fault != nil)
        #expect(feed("0\r\nA: \(long)\r\n").fault != nil)
        #expect(feed(String(repeating: "1;abcdefgh\r\na\r\n", count: 1000)).fault != nil)
        #expect(feed("10000\r\n" + String(repeating: "x", count: 0x10000) + "\r\n0\r\n\r\n").fault == nil)
    }

    @Test("an incomplete body is neither complete nor refused")
    func incomplete() {
        for body in ["", "3", "3\r", "3\r\nab", "3\r\nabc\r\n0\r\n", "0\r\nA: 1\r\n"] {
            let (framing, fault) = feed(body)
            #expect(fault == nil && !framing.isComplete)
        }
    }
}
