import Benchmarking
import Testing

@Suite("Requests and answers on the wire")
struct TrafficTests {
    @Test("a request has the length of its body in bytes")
    func request() {
        let request = LoadRequest.post("/v1/actions", json: #"{"type":"é"}"#)

        #expect(
            String(decoding: request.bytes, as: UTF8.self)
                == "POST /v1/actions HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Type: application/json\r\n"
                + "Content-Length: 13\r\n\r\n{\"type\":\"é\"}")
    }

    @Test("a numbered request has a number of nine digits in each place, and the length of its body")
    func numbered() {
        var request = LoadRequest.post("/v1/actions", json: #"{"id":"%d"}"#)
        request.fields.append(("Idempotency-Key", "k%d"))

        let script = LoadRequest.wrkScript(numbered: request, from: 7, count: 2)

        #expect(script.contains(#"Idempotency-Key: k%d\r\n"#))
        #expect(script.contains(#"Content-Length: 18\r\n\r\n{\"id\":\"%d\"}""#))
        #expect(script.contains(#"string.format("%09d", 7 + index)"#))
        #expect(script.contains("for index = 1, 2 do"))
    }

    @Test("requests that are spread name each number once in a round")
    func spread() {
        let script = LoadRequest.wrkScript(spreading: "/v1/state/%d", over: 100)

        #expect(script.contains("for index = 0, 99 do"))
        #expect(script.contains(#"string.gsub("/v1/state/%d", "%%d", string.format("%d", index * 7919 % 100))"#))
        #expect(script.contains(#"wrk.format("GET", path)"#))
    }

    @Test("quotes in a body are quoted in wrk's script")
    func script() {
        let script = LoadRequest.wrkScript([.post("/v1/actions", json: #"{"a":1}"#), .get("/v1/state")])

        #expect(
            script.contains(
                #"wrk.format("POST", "/v1/actions", {["Content-Type"] = "application/json"}, "{\"a\":1}"),"#))
        #expect(script.contains(#"wrk.format("GET", "/v1/state", {}, nil),"#))
    }

    @Test(
        "the whole of an answer is found without reading its fields",
        arguments: [
            ("HTTP/1.1 200 OK\r\nDate: x\r\nContent-Length: 12\r\n\r\n", 60), ("HTTP/1.1 204 No Content\r\n\r\n", 27),
            ("HTTP/1.1 304 Not Modified\r\nContent-Length: 9\r\n\r\n", 48),
            ("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n", nil), ("HTTP/1.1 200 OK\r\nContent-Le", nil),
            ("HTTP/1.1 200 OK\r\nX-Content-Length: 1\r\n\r\n", nil),
        ] as [(String, Int?)])
    func whole(text: String, count: Int?) { #expect(Array(text.utf8).withUnsafeBytes(AnswerFrame.count) == count) }

    @Test("an answer ends where its length says")
    func answer() throws {
        let bytes = Array("HTTP/1.1 200 OK\r\nETag: \"x\"\r\ncontent-length: 2\r\n\r\n{}HTTP".utf8)
        let frame = try #require(AnswerFrame(bytes))

        #expect(frame.status == 200)
        #expect(frame.fields["etag"] == "\"x\"")
        #expect(frame.count == bytes.count - 4)
        #expect(bytes.withUnsafeBytes(Awaited.answer.end) == bytes.count - 4)
        #expect(Array(bytes.dropLast(5)).withUnsafeBytes(Awaited.answer.end) == nil)
    }

    @Test("a 304 has no body, whatever length it states")
    func notModified() throws {
        let bytes = Array("HTTP/1.1 304 Not Modified\r\nContent-Length: 12\r\n\r\n".utf8)

        #expect(bytes.withUnsafeBytes(Awaited.answer.end) == bytes.count)
    }

    @Test("half a head is none")
    func halfHead() {
        #expect(AnswerFrame(Array("HTTP/1.1 200 OK\r\nETag: 1\r\n".utf8)) == nil)
        #expect(AnswerFrame(Array("nonsense\r\n\r\n".utf8)) == nil)
    }

    @Test("an event ends with an empty line, also inside a chunk")
    func event() {
        let plain = Array("id: 1\ndata: {}\n\n".utf8)
        let chunked = Array("1b\r\nid: 1\ndata: {}\n\n\r\n".utf8)

        #expect(plain.withUnsafeBytes(Awaited.event.end) == plain.count)
        #expect(chunked.withUnsafeBytes(Awaited.event.end) == chunked.count - 2)
        #expect(Array(plain.dropLast()).withUnsafeBytes(Awaited.event.end) == nil)
    }

    @Test("a comment is no event")
    func comment() {
        #expect(Array(": still here\n\nretry: 1000\n\n".utf8).withUnsafeBytes(Awaited.event.end) == nil)
    }
}
