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
}
