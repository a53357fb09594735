internal import StateJSON
package import StateStore

/// Valid as long as the bytes; never traps, whatever they are.
package struct SegmentDecoder {
    package let count: Int
    /// 0 for a writer that had none.
    package let fence: UInt64
    let members: SegmentBody.Members
    package var hasClientIDs: Bool { !members.isDisjoint(with: [.clientID, .clientIDs]) }

    package var bytesCount: Int { bytes.count }

    private let first: Version
    private let epoch: Epoch
    private let time: Int64
    private let bytes: UnsafeRawBufferPointer
    /// Empty for one commit.
    private let ends: [Int]
    private let recordsOffset: Int
    private var models: [Int: Commit] = [:]

    /// IDs that are cursors are derived from `epoch`.
    package init(_ bytes: UnsafeRawBufferPointer, first: Version, epoch: Epoch) throws(SegmentFault) {
        self.bytes = bytes
        self.first = first
        self.epoch = epoch
        var reader = ByteReader(bytes)
        let form = try reader.byte()
        guard form == SegmentBody.form else { throw SegmentFault("its form is \(form), which a newer program reads") }
        let algorithm = try reader.byte()
        guard algorithm == SegmentHash.algorithm else {
            throw SegmentFault("its hash is of algorithm \(algorithm), which a newer program knows")
        }
        fence = try reader.number()
        members = SegmentBody.Members(rawValue: try reader.number())
        guard members.isSubset(of: .all) else { throw SegmentFault("it has members that a newer program reads") }
        count = try reader.count()
        guard count > 0, !first.addingReportingOverflow(Version(count)).overflow else { throw .malformed }
        time = try reader.signed()
        var ends: [Int] = []
        if count > 1 {
            ends.reserveCapacity(count)
            for _ in 0..<count { ends.append((ends.last ?? 0) + (try reader.count())) }
            guard ends[count - 1] == bytes.count - reader.offset else { throw .malformed }
        }
        self.ends = ends
        recordsOffset = reader.offset
    }

    private func record(at index: Int) throws(SegmentFault) -> (reader: ByteReader, members: SegmentBody.Members) {
        let end = count == 1 ? bytes.count : recordsOffset + ends[index]
        var reader = ByteReader(
            UnsafeRawBufferPointer(rebasing: bytes[..<end]),
            offset: index == 0 ? recordsOffset : recordsOffset + ends[index - 1])
        let members = SegmentBody.Members(rawValue: try reader.number())
        guard members.isSubset(of: self.members) else { throw .malformed }
        return (reader, members)
    }

    /// The index is below ``count``.
    package mutating func commit(at index: Int) throws(SegmentFault) -> Commit {
        var (reader, members) = try record(at: index)
        let model = members.contains(.model) ? try self.model(at: reader.count(upTo: index - 1)) : nil
        let time = time &+ (try reader.signed())
        let text = if let model { try Self.text(like: model, &reader) } else { try Self.modelText(&reader) }
        let version = first + Version(index)
        let (clientIDs, own) = try clientIDs(members, text.action, &reader)
        let id = own ?? Cursor(epoch, version).description
        let cause = members.contains(.cause) ? try reference(version, &reader) : nil
        let root = members.contains(.root) ? try reference(version, &reader) : nil
        let by = members.contains(.by) ? try reader.string() : nil
        let trace = members.contains(.trace) ? try reader.string() : nil
        let key = members.contains(.key) ? try key(version, id, time, &reader) : nil
        let schedule = members.contains(.named) ? try named(&reader) : nil
        guard reader.isAtEnd else { throw .malformed }
        let commit = Commit(
            version: version, time: Timestamp(milliseconds: time), id: id, cause: cause, root: root, by: by,
            trace: trace, types: text.types, action: text.action, patch: text.patch,
            changedPointers: text.changedPointers,
            clientIDs: clientIDs, idempotency: key, schedule: schedule)
        if model == nil, self.members.contains(.model) { models[index] = commit }
        return commit
    }

    private mutating func model(at index: Int) throws(SegmentFault) -> Commit {
        if let model = models[index] { return model }
        // A model of a model would make the depth of the calls a matter of the bytes.
        guard try !record(at: index).members.contains(.model) else { throw .malformed }
        return try commit(at: index)
    }

    private struct Text {
        var types: [String]
        var action: [UInt8]
        var patch: [UInt8]
        var changedPointers: [JSONPointer]
    }

    private func named(_ reader: inout ByteReader) throws(SegmentFault) -> ScheduleChanges? {
        var schedule: ScheduleChanges?
        for _ in 0..<(try reader.count()) {
            guard try reader.string() == SegmentBody.scheduleName else {
                try reader.skipString()
                continue
            }
            let json = Array(try reader.raw(try reader.count()))
            do throws(JSONFault) {
                schedule = try ScheduleChanges(json)
            } catch { throw SegmentFault("its schedule cannot be read: \(error.detail)") }
        }
        return schedule
    }

    private static func text(like model: Commit, _ reader: inout ByteReader) throws(SegmentFault) -> Text {
        var text = Text(
            types: model.types, action: try reader.text(like: model.action),
            patch: try reader.text(like: model.patch), changedPointers: model.changedPointers)
        if let count = try reader.optionalCount() {
            text.changedPointers = try pointers(reader.places(count, in: text.patch))
        }
        return text
    }

    private static func modelText(_ reader: inout ByteReader) throws(SegmentFault) -> Text {
        var types: [String] = []
        for _ in 0..<(try reader.count()) { types.append(try reader.string()) }
        let count = try reader.count()
        let path = count > 0 ? try reader.raw(try reader.count()) : nil
        var form = ByteWriter(capacity: 128)
        form.fillAction(type: types.first ?? "")
        let action = try reader.text(like: form.bytes)
        form.fillPatch(path: path ?? UnsafeRawBufferPointer(start: nil, count: 0))
        let patch = try reader.text(like: form.bytes)
        var paths = path.map { [String(decoding: $0, as: UTF8.self)] } ?? []
        if count > 1 { paths += try reader.places(count - 1, in: patch) }
        return Text(types: types, action: action, patch: patch, changedPointers: try pointers(paths))
    }

    private static func pointers(_ texts: [String]) throws(SegmentFault) -> [JSONPointer] {
        var pointers: [JSONPointer] = []
        pointers.reserveCapacity(texts.count)
        for text in texts {
            guard let pointer = JSONPointer(text: text) else { throw .malformed }
            pointers.append(pointer)
        }
        return pointers
    }

    private func clientIDs(
        _ members: SegmentBody.Members, _ action: [UInt8], _ reader: inout ByteReader
    ) throws(SegmentFault) -> (all: [String], own: String?) {
        if members.contains(.clientID) {
            let ids = try reader.places(1, in: action)
            return (ids, ids[0])
        }
        guard members.contains(.clientIDs) else { return ([], nil) }
        let ids = try reader.places(try reader.count(), in: action)
        let own = try reader.count(upTo: ids.count)
        return (ids, own > 0 ? ids[own - 1] : nil)
    }

    private func reference(_ version: Version, _ reader: inout ByteReader) throws(SegmentFault) -> String {
        let distance = try reader.number()
        guard distance > 0 else { return try reader.string() }
        guard distance <= version else { throw .malformed }
        return Cursor(epoch, version - distance).description
    }

    private func key(
        _ version: Version, _ id: String, _ time: Int64, _ reader: inout ByteReader
    ) throws(SegmentFault) -> KeyRecord {
        let members = SegmentBody.KeyMembers(rawValue: try reader.number())
        guard members.isSubset(of: .all) else { throw .malformed }
        let key = try reader.string()
        let fingerprint = try reader.string()
        let expiry = time &+ (try reader.signed())
        let client = members.contains(.client) ? try reader.string() : nil
        let id = members.contains(.id) ? try reader.string() : id
        let version = members.contains(.version) ? try reader.number() : version
        return KeyRecord(
            key: IdempotencyKey(recorded: key), fingerprint: fingerprint, version: version, id: id,
            isChange: members.contains(.isChange), expiry: Timestamp(milliseconds: expiry), client: client)
    }
}
