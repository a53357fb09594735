import HTTPMessages
import HTTPTypes
import StateHTTP
import Testing

@testable import StateJSON

@Suite("Long answers")
struct LongAnswerTests {
    /// A stage with a label of so many bytes.
    private func stage(labelBytesCount count: Int) throws -> Stage {
        let stage = try Stage()
        let label =
            #"{"type":"labels/set","payload":{"key":"long","value":"\#(String(repeating: "x", count: count))"}}"#
        _ = stage.receive(
            Request(
                method: .post, target: "/v1/actions", fields: [.contentType: "application/json"],
                body: Array(label.utf8)))
        return stage
    }

    @Test(
        "the loop writes and indents no Codable value and no commits above 64 KiB",
        arguments: [
            ("/v1/state/labels", 1), ("/v1/state/labels?pretty", 1), ("/v1/state/labels?pretty&wait=5", 1),
            ("/v1/changes?since=oldest", 1), ("/v1/changes?since=oldest&pretty", 1),
            ("/v1/actions/storekeeperdemoa.1?pretty", 1), ("/v1/actions/storekeeperdemoa.1", 1),
        ])
    func read(target: String, readsCount: Int) throws {
        let (long, short) = (try stage(labelBytesCount: 70_000), try stage(labelBytesCount: 1000))

        let answers = [long, short].map { $0.receive(Request(method: .get, target: target)).answer }

        #expect(answers.map { $0?.status } == [.ok, .ok])
        #expect(long.readsCount == readsCount)
        #expect(short.readsCount == 0)
    }

    @Test(
        "the loop does not look for commits far behind, and a wait that finds none goes on",
        arguments: ["path=/labels", "types=labels/set"])
    func farBehind(filter: String) throws {
        let stage = try Stage()
        let add = #"{"type":"counter/add","payload":{"amount":1}}"#
        func post(_ body: String, _ type: String) -> Request {
            Request(method: .post, target: "/v1/actions", fields: [.contentType: type], body: Array(body.utf8))
        }
        let adds = Array(repeating: add, count: 1000).joined(separator: "\n")
        _ = stage.receive(post(adds, "application/x-ndjson"))
        let before = stage.readsCount

        let now = stage.receive(Request(target: "/v1/changes?since=oldest&\(filter)")).answer
        let waits = stage.receive(Request(target: "/v1/changes?since=oldest&\(filter)&wait=5"))
        let short = stage.receive(Request(target: "/v1/changes?since=storekeeperdemoa.900&\(filter)&wait=5"))
        #expect(now?.status == .ok)
        #expect(stage.readsCount == before + 2)
        #expect(waits.answer == nil && short.answer == nil)
        _ = stage.receive(post(#"{"type":"labels/set","payload":{"key":"a","value":"b"}}"#, "application/json"))
        let answers = stage.takeAnswers()

        #expect(answers.map(\.number).sorted() == [waits.number, short.number])
        for (_, answer) in answers {
            let changes = try JSONValue(parsing: answer.body)
            #expect(changes[pointer: "/changes/0/version"] == .integer(1001))
            #expect(changes[pointer: "/changes/1"] == nil)
        }
    }

    @Test("the clients of one long value share its indented form")
    func shared() throws {
        let stage = try stage(labelBytesCount: 70_000)
        let request = Request(method: .get, target: "/v1/state/labels?pretty")

        let answers = [stage.receive(request).answer, stage.receive(request).answer]

        #expect(answers[0]?.body == answers[1]?.body)
        #expect(stage.readsCount == 1)
    }

    @Test("a GET with a long body waits and streams as one without", arguments: [0, 1 << 20])
    func longBody(bodyBytesCount: Int) throws {
        let stage = try stage(labelBytesCount: 10)
        let body = [UInt8](repeating: 0, count: bodyBytesCount)

        let stream = stage.receive(
            Request(target: "/v1/state/labels", fields: [.accept: "text/event-stream"], body: body))
        let wait = stage.receive(
            Request(target: "/v1/changes?since=storekeeperdemoa.1&wait=5", body: body))
        stage.pass(.seconds(5))

        #expect(stream.answer?.fields[.contentType] == "text/event-stream")
        #expect(wait.answer == nil)
        #expect(stage.takeAnswers().map(\.number) == [wait.number])
    }

    @Test("a long event is made on a read queue, once for all streams of the value, whatever the version")
    func sharedEvent() throws {
        let stage = try stage(labelBytesCount: 70_000)
        let events = Request(target: "/v1/state/labels", fields: [.accept: "text/event-stream"])
        let value = try #require(stage.receive(Request(target: "/v1/state/labels")).answer?.body)
        let before = stage.readsCount

        let first = stage.receive(events).answer
        let readsCount = stage.readsCount
        let count = Array(#"{"type":"counter/add","payload":{"amount":1}}"#.utf8)
        _ = stage.receive(
            Request(method: .post, target: "/v1/actions", fields: [.contentType: "application/json"], body: count))
        let second = stage.receive(events).answer

        #expect(readsCount == before + 1 && stage.readsCount == before + 1)
        for (answer, version) in [(first, 1), (second, 2)] {
            let text = String(decoding: answer?.body ?? [], as: UTF8.self)
            // The body of the answer ends with a line feed, as each line of an event does.
            let data = String(decoding: value, as: UTF8.self)
            #expect(text.hasSuffix("event: snapshot\nid: storekeeperdemoa.\(version)\ndata: \(data)\n"))
        }
    }

    @Test("a page of long commits for a stream is made on a read queue")
    func longPage() throws {
        let events = Request(target: "/v1/changes?since=oldest", fields: [.accept: "text/event-stream"])
        let (long, short) = (try stage(labelBytesCount: 70_000), try stage(labelBytesCount: 1000))

        let answers = [long, short].map { $0.receive(events).answer }

        #expect((long.readsCount, short.readsCount) == (1, 0))
        for (answer, size) in zip(answers, [70_000, 1000]) { #expect(answer?.body.count ?? 0 > 2 * size) }
    }

    @Test("a client that has the long value gets its 304 without a read")
    func known() throws {
        let stage = try stage(labelBytesCount: 70_000)
        let target = "/v1/state/labels?pretty"
        let tag = try #require(stage.receive(Request(method: .get, target: target)).answer?.fields[.eTag])

        let answer = stage.receive(Request(method: .get, target: target, fields: [.ifNoneMatch: tag])).answer

        #expect(answer?.status == .notModified)
        #expect(stage.readsCount == 1)
    }

    @Test("a long representation is indented on a read queue", arguments: [(1000, 0), (70_000, 1)])
    func representation(bytesCount: Int, readsCount: Int) throws {
        let stage = try Stage()
        let label = String(repeating: "x", count: bytesCount)
        let request = Request(
            method: .post, target: "/v1/actions?pretty",
            fields: [.contentType: "application/json", .prefer: "return=representation"],
            body: Array(#"{"type":"labels/set","payload":{"key":"long","value":"\#(label)"}}"#.utf8))

        let answer = try #require(stage.receive(request).answer)

        #expect(try JSONValue(parsing: answer.body)[pointer: "/state/~1labels~1long"] == .string(label))
        #expect(stage.readsCount == readsCount)
    }
}

@Suite("Answers to bodies with many faults")
struct LargeAnswerTests {
    /// The answer to a POST on a stage.
    private func post(_ body: String, as type: String = "application/json", on stage: Stage) throws -> Response {
        let request = Request(
            method: .post, target: "/v1/actions", fields: [.contentType: type], body: Array(body.utf8))
        return try #require(stage.receive(request).answer)
    }

    @Test("of a body with many unknown types, the first fault names similar types and the others the catalogue")
    func hints() throws {
        let lines = (0..<5).map { #"{"type":"counter/ad\#($0)"}"# } + [#"{"type":"counter/reset"}"#, #"{"type":"x"}"#]

        let response = try post(lines.joined(separator: "\n"), as: "application/x-ndjson", on: try Stage())

        let answers = String(decoding: response.body, as: UTF8.self).split(separator: "\n")
        #expect(answers.map { $0.contains("did you mean") } == [true] + Array(repeating: false, count: 6))
        #expect(
            answers.map { $0.contains("GET /v1/actions lists them") } == [false, true, true, true, true, false, true])
    }

    @Test("a 412 leaves out an actual value above 4096 bytes and has its size and tag, also in each line")
    func largeActual() throws {
        let stage = try Stage()
        let (title, size) = (String(repeating: "x", count: 5000), 5000 + #"{"done":false,"title":""}"#.utf8.count)
        _ = try post(#"{"type":"tasks/add","payload":{"id":1,"title":"\#(title)"}}"#, on: stage)
        let action = #"{"type":"counter/reset","expect":[{"path":"/tasks/entities/1","value":{}}]}"#

        let one = try JSONValue(parsing: post(action, on: stage).body)
        let many = try post(
            Array(repeating: action, count: 30).joined(separator: "\n"), as: "application/x-ndjson", on: stage)

        #expect(one[pointer: "/actual"] == nil)
        #expect(one[pointer: "/actualBytes"] == .integer(Int64(size)))
        #expect(one[pointer: "/etag"] != nil)
        #expect(
            one[pointer: "/detail"]
                == .string(
                    "/tasks/entities/1 is not as expected: another value is there, of \(size) bytes, more than this answer shows; nothing was committed"
                ))
        #expect(many.body.count < 30 * 500)
    }
}
