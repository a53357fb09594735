import HTTPTypes
import Testing

@testable import MicroHTTP

@Suite("The end of a head")
struct HeadScanTests {
    @Test(
        "it is behind the first empty line, and every line ends with CR LF",
        arguments: [
            ("GET / HTTP/1.1\r\n\r\n", 18), ("GET / HTTP/1.1\r\nA: b\r\n\r\nGET", 24), ("\r\n", 2),
        ])
    func complete(text: String, count: Int) throws { #expect(try scan(text) == .complete(count: count)) }

    @Test(
        "a head that has not ended goes on with its last line",
        arguments: [("", 0), ("GET", 0), ("GET / HTTP/1.1\r", 0), ("A\r\n", 3), ("A\r\nB\r\n\r", 6)])
    func incomplete(text: String, lineStart: Int) throws {
        #expect(try scan(text) == .incomplete(lineStart: lineStart))
    }

    @Test(
        "a bare line feed or carriage return is refused before the head has ended",
        arguments: ["\n", "A\n", "A\r\nB\n", "A\r\n\n", "A\rB", "A\r\nB\r\r", "\r\r"])
    func bare(text: String) { #expect(throws: TransportFault.self) { try scan(text) } }

    @Test(
        "empty lines in front of a head are counted, and half of one is not",
        arguments: [("", 0), ("\r", 0), ("\r\n", 2), ("\r\n\r\nGET", 4), ("\r\nGET\r\n", 2), ("\n", 0), ("GET", 0)])
    func emptyLines(text: String, count: Int) {
        #expect(Array(text.utf8).withUnsafeBytes { HeadScan.emptyLinesCount($0) } == count)
    }

    @Test(
        "a beginning that no request has is refused, and any other is not",
        arguments: [
            ("G", nil), ("\r", nil), ("GET /", nil), ("GET / HTTP/1.1\r\nA", nil), ("\u{16}\u{3}\u{1}", 400),
            ("{", 400),
            (" GET", 400), ("GET /\r\nA", 400), ("GET / HTTP/2.0\r\nA", 505), ("GET / HTTP/1.1 \r\nA", 400),
            ("GET /" + String(repeating: "x", count: 8_100), 414),
            ("GET / HTTP/1.1\r\nA: " + String(repeating: "x", count: 21_000), 431),
        ])
    func beginnings(text: String, status: Int?) throws {
        let configuration = ServerConfiguration()
        let fault = try Array(text.utf8).withUnsafeBytes { bytes -> TransportFault? in
            guard case .incomplete(let lineStart) = try HeadScan.scan(bytes) else { return nil }
            return HeadScan.fault(inBeginning: bytes, lineStart: lineStart, configuration)
        }
        #expect(fault?.status.code == status)
    }

    @Test(
        "a request line has a method, a target and a version, with one space between each",
        arguments: [
            ("GET /a HTTP/1.1\r\n", 200), ("M-SEARCH * HTTP/1.0\r\n", 200), ("GET /a HTTP/1.9\r\n", 200),
            ("GET /a HTTP/2.0\r\n", 505), ("GET /a HTTP/0.9\r\n", 505), ("GET /a\r\n", 400), ("GET\r\n", 400),
            ("GET  /a HTTP/1.1\r\n", 400), ("GET /a  HTTP/1.1\r\n", 400), (" GET /a HTTP/1.1\r\n", 400),
            ("GET /a HTTP/1.1 \r\n", 400), ("GET\t/a HTTP/1.1\r\n", 400), ("G(T /a HTTP/1.1\r\n", 400),
            ("GET /\u{7F} HTTP/1.1\r\n", 400), ("GET /ä HTTP/1.1\r\n", 400), ("GET /a http/1.1\r\n", 400),
            ("GET /a HTTP/1.10\r\n", 400), ("GET /a HTTP/11\r\n", 400), ("GET /a HTTP/1,1\r\n", 400), ("\r\n", 400),
        ])
    func requestLines(text: String, status: Int) {
        let found = Array(text.utf8).withUnsafeBytes { bytes -> Int in
            do throws(TransportFault) {
                _ = try RequestLine(bytes)
                return 200
            } catch {
                return error.status.code
            }
        }
        #expect(found == status)
    }

    private func scan(_ text: String) throws -> HeadScan {
        try Array(text.utf8).withUnsafeBytes { try HeadScan.scan($0) }
    }
}

@Suite("The spelling of a request for libmicrohttpd")
struct RequestSpellingTests {
    @Test("it fills the buffer where more input is there, and is short otherwise")
    func filling() {
        let short = spell(fillingBuffer: false, bytes: 4096)
        let long = spell(fillingBuffer: true, bytes: RequestSpelling.bytesMax)

        #expect(short == "GET / HTTP/1.1\r\nHost:a\r\n\r\n")
        #expect(long.utf8.count == RequestSpelling.bytesMax)
        #expect(long.hasPrefix(short.dropLast(2)) && long.hasSuffix("x\r\n\r\n"))
    }

    private func spell(fillingBuffer: Bool, bytes: Int) -> String {
        String(unsafeUninitializedCapacity: bytes) { buffer in
            RequestSpelling.write(fillingBuffer: fillingBuffer, to: UnsafeMutableRawBufferPointer(buffer))
        }
    }
}
