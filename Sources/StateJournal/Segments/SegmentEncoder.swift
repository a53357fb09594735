internal import StateJSON
package import StateStore

/// Keeps its memory for the next segment; equal commits have equal bodies.
package struct SegmentEncoder {
    package private(set) var body = ByteWriter()
    private let epoch: Epoch
    private let fence: UInt64
    private var records = ByteWriter()
    private var sizes: [Int] = []
    private var form = ByteWriter()
    private var models: [Int] = []

    /// Bounds the time for commits of many types.
    private static let modelsMax = 16

    /// IDs that are cursors are derived from `epoch`; `fence` is the term of the writer.
    package init(epoch: Epoch, fence: UInt64 = 0) {
        self.epoch = epoch
        self.fence = fence
    }

    /// At least one commit; O(n) in their bytes.
    package mutating func encode(_ commits: [Commit], from start: Int, to end: Int) {
        records.removeAll()
        sizes.removeAll(keepingCapacity: true)
        models.removeAll(keepingCapacity: true)
        let time = commits[start].time.milliseconds
        var union: SegmentBody.Members = []
        for index in start..<end {
            let before = records.bytes.count
            union.formUnion(record(index, of: commits, start, since: time))
            sizes.append(records.bytes.count - before)
        }
        body.removeAll()
        body.byte(SegmentBody.form)
        body.byte(SegmentHash.algorithm)
        body.number(fence)
        body.number(union.rawValue)
        body.number(sizes.count)
        body.signed(time)
        if sizes.count > 1 { for size in sizes { body.number(size) } }
        body.raw(records.bytes)
    }

    private mutating func record(
        _ index: Int, of commits: [Commit], _ start: Int, since time: Int64
    ) -> SegmentBody.Members {
        let commit = commits[index]
        let model = models.reversed().prefix(Self.modelsMax).first { Self.areSame(commits[$0].types, commit.types) }
        var members: SegmentBody.Members = model == nil ? [] : .model
        if commit.hasDetails { members.formUnion(self.members(of: commit)) }
        records.number(members.rawValue)
        if let model { records.number(model - start) } else { models.append(index) }
        records.signed(commit.time.milliseconds &- time)
        if let model {
            records.text(commit.action, like: commits[model].action)
            records.text(commit.patch, like: commits[model].patch)
            if commits[model].changedPointers == commit.changedPointers {
                records.number(0)
            } else {
                records.number(commit.changedPointers.count + 1)
                records.places(of: commit.changedPointers[...], in: commit.patch)
            }
        } else {
            recordModel(commit)
        }
        if commit.hasDetails { recordDetails(of: commit, members) }
        return members
    }

    private mutating func recordDetails(of commit: Commit, _ members: SegmentBody.Members) {
        if members.contains(.clientID) {
            records.places(of: commit.clientIDs, after: "\"id\":\"", in: commit.action)
        }
        if members.contains(.clientIDs) {
            records.number(commit.clientIDs.count)
            records.places(of: commit.clientIDs, after: "\"id\":\"", in: commit.action)
            records.number((commit.clientIDs.firstIndex { JSONPointer.sameBytes($0, commit.id) } ?? -1) + 1)
        }
        if let cause = commit.cause { reference(cause, of: commit) }
        if let root = commit.root { reference(root, of: commit) }
        if let by = commit.by { records.string(by) }
        if let trace = commit.trace { records.string(trace) }
        if let key = commit.idempotency { record(key, of: commit) }
        if let schedule = commit.schedule {
            records.number(1)
            records.string(SegmentBody.scheduleName)
            records.number(schedule.json.count)
            records.raw(schedule.json)
        }
    }

    private func members(of commit: Commit) -> SegmentBody.Members {
        var members: SegmentBody.Members = []
        if !commit.clientIDs.isEmpty {
            let isOne = commit.clientIDs.count == 1 && JSONPointer.sameBytes(commit.clientIDs[0], commit.id)
            members.insert(isOne ? .clientID : .clientIDs)
        }
        if commit.cause != nil { members.insert(.cause) }
        if commit.root != nil { members.insert(.root) }
        if commit.idempotency != nil { members.insert(.key) }
        if commit.by != nil { members.insert(.by) }
        if commit.trace != nil { members.insert(.trace) }
        if commit.schedule != nil { members.insert(.named) }
        return members
    }

    /// In Swift, equal strings may have different bytes.
    private static func areSame(_ left: [String], _ right: [String]) -> Bool {
        guard left.count == right.count else { return false }
        // Nearly all commits of a type share one array.
        let isOne = left.withUnsafeBufferPointer { left in
            right.withUnsafeBufferPointer { left.baseAddress == $0.baseAddress }
        }
        return isOne || zip(left, right).allSatisfy(JSONPointer.sameBytes)
    }

    private mutating func recordModel(_ commit: Commit) {
        records.number(commit.types.count)
        for type in commit.types { records.string(type) }
        records.number(commit.changedPointers.count)
        var path = commit.changedPointers.first?.description ?? ""
        if !commit.changedPointers.isEmpty { records.string(path) }
        form.fillAction(type: commit.types.first ?? "")
        records.text(commit.action, like: form.bytes)
        path.withUTF8 { form.fillPatch(path: UnsafeRawBufferPointer($0)) }
        records.text(commit.patch, like: form.bytes)
        if commit.changedPointers.count > 1 {
            records.places(of: commit.changedPointers.dropFirst(), in: commit.patch)
        }
    }

    /// A cursor of this history is its distance, any other ID 0 and a string.
    private mutating func reference(_ id: String, of commit: Commit) {
        if let cursor = Cursor(text: id), cursor.epoch == epoch, cursor.version < commit.version {
            records.number(commit.version - cursor.version)
        } else {
            records.number(0)
            records.string(id)
        }
    }

    private mutating func record(_ key: KeyRecord, of commit: Commit) {
        var members: SegmentBody.KeyMembers = key.isChange ? .isChange : []
        let hasOwnID = commit.clientIDs.contains { JSONPointer.sameBytes($0, commit.id) }
        let ownID = hasOwnID ? commit.id : Cursor(epoch, commit.version).description
        if key.client != nil { members.insert(.client) }
        if !JSONPointer.sameBytes(key.id, ownID) { members.insert(.id) }
        if key.version != commit.version { members.insert(.version) }
        records.number(members.rawValue)
        records.string(key.key.recorded)
        records.string(key.fingerprint)
        records.signed(key.expiry.milliseconds &- commit.time.milliseconds)
        if let client = key.client { records.string(client) }
        if members.contains(.id) { records.string(key.id) }
        if members.contains(.version) { records.number(key.version) }
    }
}
