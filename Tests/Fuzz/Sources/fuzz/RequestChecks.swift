import Glibc
import HTTPTypes

@testable import HTTPMessages
@testable import StateHTTP
@testable import StateJSON

/// The requests of an input are each answered once, errors are problem documents, and the commits lead to the state.
///
/// An input is requests with a line of `===` between them: method, target, fields and body as in HTTP. `$etag` and
/// `$cursor` are those of the answer before.
@Sendable func checkRequests(_ bytes: [UInt8]) {
    let stage = Stage()
    var sent: [(number: Int, request: Request)] = []
    var last = HTTPFields()
    for text in String(decoding: bytes, as: UTF8.self).split(separator: "\n===\n").prefix(12) {
        if text == "@drain" {
            stage.drain()
            continue
        }
        guard let request = request(text, last) else { continue }
        let number = stage.send(request)
        sent.append((number, request))
        last = stage[number].answers.first?.fields ?? last
    }
    checkHistory(stage)
    // One client leaves in the middle, and gets nothing more.
    if sent.count > 2, stage[sent[1].number].answers.isEmpty {
        stage.hangUp(sent[1].number)
        stage.finish()
        expect(stage[sent[1].number].answers.isEmpty, "a client that has left is answered")
        sent.remove(at: 1)
    }
    stage.finish()
    for (number, request) in sent {
        let received = stage[number]
        let answer = require(received.answers.first, "no answer to \(request.method) \(quoted(request.target.utf8))")
        expect(received.answers.count == 1, "\(received.answers.count) answers")
        check(answer, to: request)
        guard received.isStream else { continue }
        expect(received.hasEnded, "a stream has no end")
        checkStream(received.chunks, of: answer)
    }
}

private func request(_ text: Substring, _ last: HTTPFields) -> Request? {
    var lines = text.split(separator: "\n", omittingEmptySubsequences: false)[...]
    func filled(_ text: Substring) -> String {
        guard text.contains("$") else { return String(text) }
        let withTag = String(text).replacing("$etag", with: last[.eTag] ?? "")
        return withTag.replacing("$cursor", with: last[.stateCursor] ?? "")
    }
    guard let first = lines.popFirst() else { return nil }
    let parts = first.split(separator: " ", maxSplits: 1)
    guard parts.count == 2, let method = HTTPRequest.Method(String(parts[0])) else { return nil }
    var fields = HTTPFields()
    while let line = lines.popFirst(), !line.isEmpty {
        let sides = line.split(separator: ":", maxSplits: 1)
        guard sides.count == 2, let name = HTTPField.Name(String(sides[0])) else { continue }
        fields.append(HTTPField(name: name, value: filled(sides[1].drop { $0 == " " })))
    }
    let body = Array(filled(Substring(lines.joined(separator: "\n"))).utf8)
    // An odd port of a client makes it another one.
    return Request(
        method: method, target: filled(parts[1]), fields: fields, body: body,
        client: text.utf8.count & 1 == 0 ? "10.0.0.1" : "10.0.0.2")
}

private func check(_ answer: Response, to request: Request) {
    let type = answer.fields[.contentType] ?? ""
    let what = "\(answer.status.code) to \(request.method) \(quoted(request.target.utf8)): \(quoted(answer.body))"
    expect((200...599).contains(answer.status.code), what)
    expect(answer.status.code < 500 || answer.status.code == 503 || answer.status.code == 501, what)
    for field in answer.fields {
        expect(!field.value.utf8.contains { $0 < 0x20 && $0 != 0x09 }, "\(field.name) has a control character: \(what)")
    }
    switch answer.status.code {
    case 400...:
        expect(type == "application/problem+json", "no problem: \(what)")
        let problem = parsed(answer.body, what)
        expect(problem[pointer: "/status"] == .integer(Int64(answer.status.code)), "another status: \(what)")
        for member in ["/type", "/title", "/code", "/detail"] {
            guard case .string(let text)? = problem[pointer: JSONPointer([String(member.dropFirst())])], !text.isEmpty
            else { return expect(false, "no \(member): \(what)") }
        }
    case 204, 304: break
    default:
        if type == "application/json" { _ = parsed(answer.body, what) }
        if type == "application/x-ndjson", !answer.body.isEmpty {
            for line in answer.body.split(separator: 0x0A) { _ = parsed(Array(line), what) }
        }
    }
}

private func parsed(_ bytes: [UInt8], _ what: String) -> JSONValue {
    require(try? JSONValue(parsing: bytes, depthMax: 1000), "no JSON: \(what)")
}

/// Each line of a stream has the form of its media type, and each value in it is JSON.
private func checkStream(_ bytes: [UInt8], of answer: Response) {
    let isEvents = answer.fields[.contentType] == "text/event-stream"
    expect(bytes.isEmpty || bytes.last == 0x0A, "a stream ends within a line: \(quoted(bytes))")
    var data: [UInt8] = []
    for line in bytes.split(separator: 0x0A, omittingEmptySubsequences: false) {
        if !isEvents {
            if !line.isEmpty { _ = parsed(Array(line), "a line of a stream: \(quoted(line))") }
            continue
        }
        if line.isEmpty {
            if !data.isEmpty { _ = parsed(data, "an event: \(quoted(data))") }
            data = []
        } else if line.starts(with: "data: ".utf8) {
            data += line.dropFirst(6)
        } else {
            let isKnown = ["event: ", "id: ", ":", "retry: "].contains { line.starts(with: $0.utf8) }
            expect(isKnown, "a strange line: \(quoted(line))")
        }
    }
}

/// The patches of the history, applied to the first state, lead to the state.
private func checkHistory(_ stage: Stage) {
    func get(_ target: String) -> JSONValue? {
        var fields = HTTPFields()
        if let host = HTTPField.Name("Host") { fields[host] = "example.com" }
        let answer = stage[stage.send(Request(target: target, fields: fields, client: "10.0.0.9"))].answers.first
        return answer.flatMap { $0.status == .ok ? parsed($0.body, target) : nil }
    }
    guard var replayed = get("/v1/state?version=0"), let state = get("/v1/state"),
        let answer = get("/v1/changes?since=oldest&limit=1000"),
        case .array(let changes)? = answer[pointer: "/changes"], changes.count < 1000
    else { return expect(false, "the state or the history cannot be read") }
    for (index, change) in changes.enumerated() {
        expect(change[pointer: "/version"] == .integer(Int64(index) + 1), "a version is missing")
        let patch = require(change[pointer: "/patch"], "a commit without a patch: \(quoted(change.text))")
        expect((try? replayed.apply(patch: patch)) != nil, "a patch does not fit: \(quoted(change.text))")
        expect(change[pointer: "/action"] != nil, "a commit without its action")
    }
    expect(replayed == state, "the history leads to \(quoted(replayed.text)), the state is \(quoted(state.text))")
}

/// The lines of an event, joined again, are the value.
@Sendable func checkEvents(_ bytes: [UInt8]) {
    // A string that is longer than a line, so that a small input makes several lines.
    let filler = Array("[\"".utf8) + [UInt8](repeating: 0x61, count: EventData.lineBytesMax) + Array("\",".utf8)
    guard let value = try? JSONValue(parsing: bytes) else { return }
    let text = filler + value.text + Array("]".utf8)
    let lines = ("data: ".utf8 + EventData.lines(of: text[...])).split(separator: 0x0A)
    var joined: [UInt8] = []
    for line in lines {
        expect(line.starts(with: "data: ".utf8), "a line is no data: \(quoted(line.prefix(80)))")
        joined += line.dropFirst(6) + [0x0A]
    }
    expect(parsed(joined, "an event") == parsed(text, "a value"), "the event is another value")
    expect(joined.filter { $0 != 0x0A } == text, "the event has other bytes")
}
