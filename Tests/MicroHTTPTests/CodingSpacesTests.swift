import Testing

@testable import MicroHTTP

@Suite("White space behind a transfer coding")
struct CodingSpacesTests {
    @Test(
        "it is moved in front of the value, in the head only, and nothing else changes",
        arguments: [
            ("Transfer-Encoding: chunked \r\n", "Transfer-Encoding:  chunked\r\n"),
            ("Transfer-Encoding:chunked\t \r\n", "Transfer-Encoding:\t chunked\r\n"),
            ("tRANSFER-eNCODING:  a b  \r\nX: y \r\n", "tRANSFER-eNCODING:    a b\r\nX: y \r\n"),
            ("A: b\r\nTransfer-Encoding:  chunked  \r\n", "A: b\r\nTransfer-Encoding:    chunked\r\n"),
            (
                "Transfer-Encoding: chunked \r\nTransfer-Encoding: x \r\n",
                "Transfer-Encoding:  chunked\r\nTransfer-Encoding:  x\r\n"
            ),
        ])
    func moved(fields: String, expected: String) {
        let body = "\r\n5\r\nTransfer-Encoding: chunked \r\n"
        #expect(moving("POST / HTTP/1.1\r\n\(fields)\(body)") == "POST / HTTP/1.1\r\n\(expected)\(body)")
    }

    @Test(
        "every other head stays as it is",
        arguments: [
            "POST / HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n", "POST / HTTP/1.1\r\nTransfer-Encoding:  \r\n\r\n",
            "POST / HTTP/1.1\r\nTransfer-Encoding: chunked \n\r\n",
            "POST / HTTP/1.1\r\nTransfer-Encoding : chunked \r\n\r\n",
            "POST / HTTP/1.1\r\n Transfer-Encoding: chunked \r\n\r\n", "POST / HTTP/1.1\r\nTransfer-Encoding: chunked ",
            "POST / HTTP/1.1\r\nTransfer-Encodings: chunked \r\n\r\n",
            "POST / HTTP/1.1\r\nA: Transfer-Encoding: chunked \r\n",
            "POST / HTTP/1.1\r\nTransfer-Encoding: chunked\rX: a \r\n\r\n",
            "POST / HTTP/1.1\r\nTransfer-Encoding: chunked\0 \r\n\r\n",
            "POST / HTTP/1.1\r\n\r\nTransfer-Encoding: chunked \r\n", "Transfer-Encoding: chunked \r\n\r\n", "", "\r\n",
            "\n",
            "POST / HTTP/1.1\r\nTransfer-Encoding:\r\n chunked \r\n\r\n",
            "POST / HTTP/1.1\n\nTransfer-Encoding: a \r\n",
        ])
    func unchanged(head: String) { #expect(moving(head) == head) }

    private func moving(_ text: String) -> String {
        var bytes = Array(text.utf8)
        bytes.withUnsafeMutableBytes { CodingSpaces.move(in: $0) }
        return String(decoding: bytes, as: UTF8.self)
    }
}
