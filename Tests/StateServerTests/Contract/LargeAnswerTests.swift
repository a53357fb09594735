import HTTPMessages
import HTTPTypes
import Testing

@testable import StateJSON

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
            Array(repeating: action, count: 100).joined(separator: "\n"), as: "application/x-ndjson", on: stage)

        #expect(one[pointer: "/actual"] == nil)
        #expect(one[pointer: "/actualBytes"] == .integer(Int64(size)))
        #expect(one[pointer: "/etag"] != nil)
        #expect(
            one[pointer: "/detail"]
                == .string(
                    "/tasks/entities/1 is not as expected: another value is there, of \(size) bytes, more than this answer shows; nothing was committed"
                ))
        #expect(many.body.count < 100 * 500)
    }
}
