import HTTPMessages
import HTTPTypes
import Testing

@testable import MicroHTTP

@Suite("Request screening")
struct RequestScreeningTests {
    typealias Lines = [(String, String)]

    static let acceptedCases: [(Lines, BodyFraming)] = [
        ([], .none),
        ([("Content-Length", "0")], .none),
        ([("content-length", "7")], .declared(bytes: 7)),
        ([("Content-Length", "1000")], .declared(bytes: 1000)),
        ([("Transfer-Encoding", "chunked")], .chunked),
        ([("Transfer-Encoding", "Chunked")], .chunked),
    ]

    static let malformedCases: [Lines] = [
        [("Content-Length", "5"), ("Content-Length", "6")],
        [("Content-Length", "5"), ("Content-Length", "5")],
        [("Content-Length", "5"), ("Transfer-Encoding", "chunked")],
        [("Transfer-Encoding", "chunked"), ("Content-Length", "5")],
        [("Transfer-Encoding", "chunked"), ("Transfer-Encoding", "chunked")],
        [("Content-Length", "+5")],
        [("Content-Length", "-5")],
        [("Content-Length", "5, 5")],
        [("Content-Length", "0x5")],
        [("Content-Length", "")],
        [("Content-Length", "5 5")],
        [("Host", "b")],
    ]

    private func framing(
        _ lines: [(String, String)], host: Bool = true, version: ProtocolVersion = .http11
    ) throws(Problem) -> BodyFraming {
        var fields = ((host ? [("Host", "a")] : []) + lines).map { name, value in
            HTTPField(name: HTTPField.Name(name) ?? .cookie, value: value)
        }
        // The walk over the fields takes the first length that is a number of at most 15 digits.
        var declared: Int?
        let isNumber = { (text: String) in !text.isEmpty && text.count <= 15 && text.allSatisfy("0123456789".contains) }
        if let place = fields.firstIndex(where: { $0.name == .contentLength && isNumber($0.value) }) {
            declared = Int(fields.remove(at: place).value)
        }
        try RequestScreening.screen(fields, declared: declared, version: version, bodyBytesMax: 1000)
        return try RequestScreening.framing(
            isChunked: fields.contains { $0.name == .transferEncoding }, declared: declared, bodyBytesMax: 1000)
    }

    @Test(
        "a body delimited in one way only is accepted",
        arguments: Self.acceptedCases)
    func accepted(lines: [(String, String)], expected: BodyFraming) throws {
        #expect(try framing(lines) == expected)
    }

    @Test(
        "a request that allows two readings is malformed", arguments: Self.malformedCases)
    func malformed(lines: [(String, String)]) {
        let problem = #expect(throws: Problem.self) { try framing(lines) }
        #expect(problem?.status == .badRequest)
    }

    @Test(
        "a coding other than chunked is not implemented",
        arguments: ["gzip", "gzip, chunked", "identity", "chunked;a=b", ""])
    func unsupported(coding: String) {
        let problem = #expect(throws: Problem.self) { try framing([("Transfer-Encoding", coding)]) }
        #expect(problem?.status == .notImplemented && problem?.code == "transfer-coding")
    }

    @Test(
        "a declared length above the limit is too large, with any number of digits",
        arguments: ["1001", "99999999999999999999999"])
    func tooLarge(length: String) {
        let problem = #expect(throws: Problem.self) { try framing([("Content-Length", length)]) }
        #expect(problem?.status == .contentTooLarge && problem?.detail.contains(" 1000 bytes") == true)
    }

    @Test("lines with a coding that is not implemented pass with no length, so that the head cache never has them")
    func codingsWithLengths() {
        let fields = [
            HTTPField(name: HTTPField.Name("host") ?? .cookie, value: "a"),
            HTTPField(name: .transferEncoding, value: "gzip"),
        ]
        for declared in [nil, 0, 5] {
            #expect(throws: Problem.self) {
                try RequestScreening.screen(fields, declared: declared, version: .http11, bodyBytesMax: 1000)
            }
        }
    }

    @Test("HTTP/1.0 needs no Host and has no transfer codings")
    func http10() throws {
        #expect(try framing([], host: false, version: .http10) == .none)
        #expect(throws: Problem.self) { try framing([], host: false) }
        #expect(throws: Problem.self) { try framing([("Transfer-Encoding", "chunked")], version: .http10) }
    }
}
