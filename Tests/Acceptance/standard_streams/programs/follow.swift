// Follows a stream as the page Clients does, until a commit has the ID "last".
//
// It prints a line for each batch of commits. Of the state it prints all that it has: at first, each time when it has
// had at least `step` batches more, and at the end.

import DurableStreams
import Foundation

enum JSON: Codable, Sendable {
    case null, bool(Bool), integer(Int), number(Double), string(String), array([JSON]), object([String: JSON])

    init(from decoder: any Decoder) throws {
        let value = try decoder.singleValueContainer()
        if value.decodeNil() {
            self = .null
        } else if let bool = try? value.decode(Bool.self) {
            self = .bool(bool)
        } else if let string = try? value.decode(String.self) {
            self = .string(string)
        } else if let integer = try? value.decode(Int.self) {
            self = .integer(integer)
        } else if let number = try? value.decode(Double.self) {
            self = .number(number)
        } else if let array = try? value.decode([JSON].self) {
            self = .array(array)
        } else {
            self = .object(try value.decode([String: JSON].self))
        }
    }

    func encode(to encoder: any Encoder) throws {
        var value = encoder.singleValueContainer()
        switch self {
        case .null: try value.encodeNil()
        case .bool(let bool): try value.encode(bool)
        case .integer(let integer): try value.encode(integer)
        case .number(let number): try value.encode(number)
        case .string(let string): try value.encode(string)
        case .array(let array): try value.encode(array)
        case .object(let object): try value.encode(object)
        }
    }

    subscript(name: String) -> JSON? {
        if case .object(let members) = self { members[name] } else { nil }
    }

    var string: String? {
        if case .string(let string) = self { string } else { nil }
    }
}

struct Control: Codable {
    var streamNextOffset: String
    var upToDate: Bool?
}

let (url, mode, step) = (CommandLine.arguments[1], CommandLine.arguments[2], Int(CommandLine.arguments[3]) ?? 1)
var state: [String: [String: JSON]] = [:]
var offset = Offset.start
var batches = 0, printed = -step, losses = 0

func write(_ value: some Encodable) throws {
    print(String(decoding: try JSONEncoder().encode(value), as: UTF8.self))
}

/// Applies a change; returns the ID of its commit.
func apply(_ message: JSON) -> String? {
    guard let type = message["type"]?.string, let key = message["key"]?.string else { return nil }
    state[type, default: [:]][key] = message["value"]
    return message["headers"]?["txid"]?.string
}

func take(_ items: [JSON], _ next: Offset, isUpToDate: Bool) throws {
    offset = next
    if !items.isEmpty { batches += 1 }
    var isLast = false
    if url.hasSuffix("/commits") {
        isLast = items.contains { $0["id"]?.string == "last" }
        try write(["offset": JSON.string(next.rawValue), "items": .array(items)])
    } else {
        for item in items where apply(item) == "last" { isLast = true }
        if isLast || (isUpToDate && batches >= printed + step) {
            printed = batches
            let entities = state.map { JSON.array([.string($0), .array($1.map { .array([.string($0), $1]) })]) }
            try write(["offset": JSON.string(next.rawValue), "state": .array(entities)])
        }
    }
    if isLast {
        try write(["batches": batches, "losses": losses])
        exit(0)
    }
}

func follow() async throws {
    let stream = try await DurableStream.connect(url)
    switch mode {
    case "catch-up":
        while true {
            let batch = try await stream.readJSON(as: JSON.self, offset: offset)
            try take(batch.items, batch.offset, isUpToDate: batch.upToDate)
        }
    case "long-poll":
        for try await batch in await stream.jsonBatches(as: JSON.self, from: offset) {
            try take(batch.items, batch.offset, isUpToDate: batch.upToDate)
        }
    default:
        var items: [JSON] = []
        for try await event in await stream.sseEvents(from: offset) {
            if event.effectiveEvent == "data" {
                items += try JSONDecoder().decode([JSON].self, from: Data(event.data.utf8))
            } else if event.effectiveEvent == "control" {
                let control = try JSONDecoder().decode(Control.self, from: Data(event.data.utf8))
                try take(items, Offset(rawValue: control.streamNextOffset), isUpToDate: control.upToDate ?? false)
                items = []
            }
        }
    }
}

while true {
    do {
        try await follow()
    } catch let error as DurableStreamError where [.badRequest, .notFound, .retentionExpired].contains(error.code) {
        throw error
    } catch {
        losses += 1
        try await Task.sleep(for: .milliseconds(10))
    }
}
