import Foundation
import StateJSON
import StateJournal
import StateStore
import Testing

@testable import StateServer

/// A domain with types of Foundation.
private struct Calendar: Domain {
    struct Entry: Codable, Sendable { var due: Date; var data: Data; var price: Decimal?; var link: URL? }
    struct State: StateType {
        var entries = EntityTable<Int, Entry>()
        var latest: [Date] = []
    }
    struct Put: Action { static let type = "calendar/put"; var id: Int; var entry: Entry }
    struct Append: Action { static let type = "calendar/append"; var id: Int; var byte: UInt8 }

    var reducer: some Reducer<State> {
        Entities("entries", ids: "order", \.entries)
        Field("latest", \.latest)
        On(Put.self) { state, action in
            state.entries[action.id] = action.entry
            state.latest.append(action.entry.due)
        }
        On(Append.self) { state, action in state.entries[action.id]?.data.append(action.byte) }
    }
}

/// The same domain with types that are spelled as a program spelled those of Foundation before.
private struct FormerCalendar: Domain {
    struct Number: Codable, Sendable {
        var exponent: Int
        var length = 1
        var isNegative = false
        var isCompact = true
        var mantissa: [Int]
    }
    struct Link: Codable, Sendable { var relative: String }
    struct Entry: Codable, Sendable { var due: Double; var data: [UInt8]; var price: Number?; var link: Link? }
    struct State: StateType {
        var entries = EntityTable<Int, Entry>()
        var latest: [Double] = []
    }
    struct Put: Action { static let type = "calendar/put"; var id: Int; var entry: Entry }
    struct Append: Action { static let type = "calendar/append"; var id: Int; var byte: UInt8 }

    var reducer: some Reducer<State> {
        Entities("entries", ids: "order", \.entries)
        Field("latest", \.latest)
        On(Put.self) { state, action in
            state.entries[action.id] = action.entry
            state.latest.append(action.entry.due)
        }
        On(Append.self) { state, action in state.entries[action.id]?.data.append(action.byte) }
    }
}

@Suite("The spelling of earlier programs", .timeLimit(.minutes(2)))
struct FormerSpellingTests {
    private let directory = FileManager.default.temporaryDirectory.appending(path: "former-\(UUID().uuidString)").path

    @Test("a journal with the former spelling is read, upgraded in one commit, and verified")
    func journal() async throws {
        defer { try? FileManager.default.removeItem(atPath: directory) }
        try await withServer(FormerCalendar(), data: directory) { client in
            for body in [
                #"{"type":"calendar/put","payload":{"id":1,"entry":{"due":816000.5,"data":[1,2],"price":{"exponent":-2,"length":1,"isNegative":false,"isCompact":true,"mantissa":[125,0,0,0,0,0,0,0]},"link":{"relative":"https://a.example/b"}}}}"#,
                #"{"type":"calendar/append","payload":{"id":1,"byte":3}}"#,
                #"{"type":"calendar/put","payload":{"id":2,"entry":{"due":0,"data":[]}}}"#,
            ] {
                let answer = try await client.send("POST", "/v1/actions", body)
                #expect(answer.status == 200, "\(answer.body)")
            }
        }
        var settings = Settings()
        settings.data = directory
        let before = try JournalTool(settings: settings).verify(Calendar())
        #expect(before.end == 3)

        let entry = #"{"due":"2001-01-10T10:40:00.5Z","data":"AQID","price":1.25,"link":"https://a.example/b"}"#
        try await withServer(Calendar(), data: directory) { client in
            try await client.expect("/v1/state/entries/1") { $0 == entry }
            let changes = try await client.get("/v1/changes?since=oldest")
            #expect(changes.body.contains(#""version":4"#) && !changes.body.contains(#""version":5"#))
            for operation in [
                #"{"type":"storekeeper/upgrade"},"patch":["#,
                #"{"op":"replace","path":"/entries/1/due","value":"2001-01-10T10:40:00.5Z"}"#,
                #"{"op":"replace","path":"/entries/1/data","value":"AQID"}"#,
                #"{"op":"replace","path":"/entries/1/price","value":1.25}"#,
                #"{"op":"replace","path":"/entries/1/link","value":"https://a.example/b"}"#,
                #"{"op":"replace","path":"/latest/1","value":"2001-01-01T00:00:00Z"}"#,
            ] { #expect(changes.body.contains(operation), "\(operation) in \(changes.body)") }
            let refused = try await client.send(
                "POST", "/v1/actions", #"{"type":"calendar/put","payload":{"id":3,"entry":{"due":0,"data":""}}}"#)
            #expect(refused.status == 422)
            #expect(
                refused.body.contains("expected a date as RFC 3339 text, such as 2026-11-23T21:16:50Z, found a number"))
            let price = "12345678901234567890.123456789"
            let put = try await client.send(
                "POST", "/v1/actions",
                #"{"type":"calendar/put","payload":{"id":3,"entry":{"due":"2026-11-23T22:16:50+01:00","data":"","price":\#(price)}}}"#
            )
            #expect(put.status == 200)
            try await client.expect("/v1/state/entries/3") {
                $0 == #"{"due":"2026-11-23T21:16:50Z","data":"","price":\#(price)}"#
            }
        }
        try await withServer(Calendar(), data: directory) { client in
            // The new spelling needs no further upgrade, and no digit is lost.
            try await client.expect("/v1") { $0.contains(#""version":5"#) }
            try await client.expect("/v1/state/entries/1") { $0 == entry }
            try await client.expect("/v1/state/entries/3/price") { $0 == "12345678901234567890.123456789" }
            try await client.expect("/v1/state/entries/3?version=5") { $0.contains("12345678901234567890.123456789") }
        }
        #expect(try JournalTool(settings: settings).verify(Calendar()).end == 5)
    }
}
