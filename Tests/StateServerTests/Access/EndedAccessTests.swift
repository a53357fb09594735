import Foundation
import HTTPMessages
import HTTPTypes
import StateHTTP
import StateJSON
import Testing

@testable import StateServer
@testable import StateStore

/// A server on whose clock a token ends at a time that the test chooses.
private final class Door {
    let stage: Stage
    let token: String
    private let lasting: String

    init() throws {
        let (made, lasting) = (Token(), Token())
        let end = RFC3339.text(milliseconds: ManualPlatform().timestamp.milliseconds + 10_000)
        var setting = Stage.Setting()
        setting.tokens = [
            TokenEntry(made, subject: "brief", .everything, expires: end),
            TokenEntry(lasting, subject: "lasting", .everything),
        ]
        (stage, token, self.lasting) = (try Stage(setting), made.text, lasting.text)
    }

    func request(_ target: String, _ body: String? = nil, token: String? = nil) -> Request {
        var fields: HTTPFields = [.authorization: "Bearer \(token ?? self.token)"]
        if body != nil { fields[.contentType] = "application/json" }
        return Request(
            method: body == nil ? .get : .post, target: target, fields: fields, body: Array((body ?? "").utf8))
    }

    /// The status of a request whose slow work begins when so much time has passed.
    func status(of request: Request, after time: Duration) -> Int? {
        stage.send(request)
        stage.pass(time)
        return stage.takeAnswers().last?.1.status.code
    }

    /// The version of the state.
    var version: String? {
        stage.receive(request("/v1/state", token: lasting)).answer?.fields[.stateCursor]
    }
}

@Suite("A token that ends while its request is worked on")
struct EndedAccessTests {
    private static let long = String(repeating: " ", count: 70_000)
    static let action = #"{"type":"counter/add","payload":{"amount":1}}"#

    @Test(
        "slow work that begins after the end is refused, and before it is not",
        arguments: [
            // A long body, alone, as an array and as lines.
            ("/v1/actions", action + long), ("/v1/actions", "[\(action)\(long)]"),
            ("/v1/actions?dry-run=true", action), ("/v1/actions?dry-run=true", action + long),
            ("/v1/actions", nil), ("/v1/openapi.json", nil), ("/v1/schedule", nil), ("/v1/operations", nil),
            ("/v1/state?version=0", nil), ("/v1/changes?before=now&limit=1", nil),
        ] as [(String, String?)])
    func slow(target: String, body: String?) throws {
        let door = try Door()
        #expect(door.status(of: door.request(target, body), after: .zero).map { $0 < 400 } == true)

        let other = try Door()
        let before = other.version
        #expect(other.status(of: other.request(target, body), after: .seconds(11)) == 401)
        #expect(other.version == before)
    }

    @Test("a head that is known is refused from the moment of the end on, for reads and actions")
    func known() throws {
        let door = try Door()
        let (read, add) = (door.request("/v1/state"), door.request("/v1/actions", Self.action))
        for request in [read, add, read, add] { #expect(door.stage.receive(request).answer?.status == .ok) }

        door.stage.pass(.milliseconds(9999))
        #expect(door.stage.receive(read).answer?.status == .ok && door.stage.receive(add).answer?.status == .ok)
        let before = door.version
        door.stage.pass(.milliseconds(1))
        #expect(door.stage.receive(read).answer?.status == .unauthorized)
        #expect(door.stage.receive(add).answer?.status == .unauthorized)
        #expect(door.version == before)
    }
}
