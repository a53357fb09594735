package import StateJSON
package import StateStore

/// Everything that a segment keeps of a commit.
package struct Content: Equatable {
    package var version: Version
    package var time: Int64
    package var strings: [[UInt8]?]
    package var types: [String]
    package var action: [UInt8]
    package var patch: [UInt8]
    package var changedPointers: [JSONPointer]
    package var clientIDs: [[UInt8]]
    package var key: KeyRecord?
    package var schedule: [UInt8]?

    package init(_ commit: Commit) {
        version = commit.version
        time = commit.time.milliseconds
        strings = [commit.id, commit.cause, commit.root, commit.by, commit.trace].map { $0.map { Array($0.utf8) } }
        types = commit.types
        action = commit.action
        patch = commit.patch
        changedPointers = commit.changedPointers
        clientIDs = commit.clientIDs.map { Array($0.utf8) }
        key = commit.idempotency
        schedule = commit.schedule?.json
    }
}

/// Random commits of every form, as a store makes them and stranger ones.
package struct CommitMaker {
    package var generator: SplitMix
    package let epoch: Epoch

    package init(seed: UInt64, epoch: Epoch) {
        generator = SplitMix(seed: seed)
        self.epoch = epoch
    }

    private mutating func chance(_ percent: Int) -> Bool { Int.random(in: 0..<100, using: &generator) < percent }

    private mutating func text() -> String {
        let texts = [
            "", "a", "counter/add", "é", "e\u{301}", "~/\"\\", "\u{1}\u{2028}🙂", String(repeating: "long ", count: 60),
            "\(generator.next())",
        ]
        return texts[Int.random(in: 0..<texts.count, using: &generator)]
    }

    private func json(_ text: String) -> String {
        var writer = JSONWriter()
        writer.string(text)
        return String(decoding: writer.bytes, as: UTF8.self)
    }

    package mutating func commit(_ version: Version) -> Commit {
        let types = chance(70) ? ["counter/add"] : (0..<Int.random(in: 0...3, using: &generator)).map { _ in text() }
        let clientIDs = chance(60) ? [] : (0..<Int.random(in: 1...3, using: &generator)).map { _ in text() }
        let id = chance(80) ? clientIDs.first : clientIDs.last
        let pointers =
            chance(50)
            ? ["/counter/value"]
            : (0..<Int.random(in: 0...3, using: &generator)).map { _ in JSONPointer([text(), text()]) }
        let operations = pointers.map { #"{"op":"replace","path":\#(json($0.description)),"value":\#(version)}"# }
        let actions = types.enumerated().map { index, type in
            (index < clientIDs.count ? #"{"id":\#(json(clientIDs[index])),"# : "{")
                + #""type":\#(json(type)),"payload":{"amount":\#(version % 3)}}"#
        }
        let cursor = Cursor(epoch, version).description
        let keyID = chance(90) ? id ?? cursor : text()
        let references = [
            nil, Cursor(epoch, version / 2).description, Cursor(epoch, .max).description,
            Cursor(.random(), 1).description,
            text(),
        ]
        return Commit(
            version: version,
            time: Timestamp(
                milliseconds: chance(95) ? 1_700_000_000_000 + Int64(version) : [.min, .max, 0, -1][Int(version % 4)]),
            id: id ?? cursor, cause: references[Int.random(in: 0..<5, using: &generator)],
            root: references[Int.random(in: 0..<5, using: &generator)], by: chance(10) ? text() : nil,
            trace: chance(10) ? text() : nil, types: types,
            action: Array((actions.count == 1 ? actions[0] : "[" + actions.joined(separator: ",") + "]").utf8),
            patch: Array(("[" + operations.joined(separator: ",") + "]").utf8), changedPointers: pointers,
            clientIDs: clientIDs,
            idempotency: chance(80)
                ? nil
                : KeyRecord(
                    key: IdempotencyKey(recorded: text()), fingerprint: text(),
                    version: chance(90) ? version : version / 2, id: keyID,
                    isChange: chance(50), expiry: Timestamp(milliseconds: Int64(bitPattern: generator.next())),
                    client: chance(50) ? nil : text()),
            schedule: chance(90) ? nil : schedule(version))
    }

    private mutating func schedule(_ version: Version) -> ScheduleChanges? {
        let name = #""name":\#(json(text())),"by":\#(json(text()))"#
        let action = #"{"type":"counter/add","payload":{"text":\#(json(text()))}}"#
        return try? ScheduleChanges(
            Array(
                #"[{"op":"fire",\#(name)},{"op":"add",\#(name),"due":\#(version),"version":\#(version),"action":\#(action)}]"#
                    .utf8))
    }

    package mutating func commits(_ versions: ClosedRange<Version>) -> [Commit] { versions.map { commit($0) } }
}

extension Commit {
    /// A commit that sets the value to its version.
    package static func setting(
        _ version: Version, to value: Int? = nil, type: String = "set", ids: [String] = [], by subject: String? = nil,
        key: KeyRecord? = nil
    ) -> Commit {
        Commit(
            version: version, time: Timestamp(milliseconds: 1000 + Int64(version)), id: ids.first ?? "cursor",
            by: subject, types: [type],
            action: Array(#"{"type":"\#(type)"}"#.utf8),
            patch: Array(#"[{"op":"replace","path":"/value","value":\#(value ?? Int(version))}]"#.utf8),
            changedPointers: ["/value"], clientIDs: ids, idempotency: key)
    }
}
