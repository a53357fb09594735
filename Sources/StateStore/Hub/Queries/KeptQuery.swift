internal import StateJSON
internal import Synchronization
internal import Threads

/// A query on a place, with its newest answer and, while it is watched, the members that it lets through.
///
/// One thread at a time evaluates it, and the others wait or go on without; the answer has a lock of its own, which
/// nobody holds for long.
final class KeptQuery: Sendable {
    private struct Work {
        var members: (any KeptMembers)?
        var version: Version?
        /// Whether the members are newer than the answer.
        var isAhead = false
        var bytesCount = 0
        /// The count of the members in the share of the client for whom they were kept first.
        var held: HeldMemory?
        var isTooLarge = false
        /// Whether the members of the value that was evaluated last cannot be kept.
        var keepsNothing = false
    }

    private enum Result {
        case same
        /// Nil if nothing is at the place.
        case made(Encoded?)
    }

    private struct Answer {
        /// The answer, unless it is large and others have taken its room.
        var encoded: Encoded?
        var tag: String?
        /// The newest version at which the answer stands; nil before the first evaluation.
        var version: Version?
        var isCompared = true
    }

    let place: JSONPointer
    private let query: any MembersQuery
    private let budget: QueryBudget
    private let work = Mutex(Work())
    private let answer = Mutex(Answer())

    init(_ query: any MembersQuery, at place: JSONPointer, _ budget: QueryBudget) {
        (self.query, self.place, self.budget) = (query, place, budget)
    }

    deinit { budget.hold(0, insteadOf: work.withLock(\.bytesCount)) }

    func encoded(changed version: Version) -> Encoded? {
        answer.withLock { $0.version.map { $0 >= version } ?? false ? $0.encoded : nil }
    }

    func tag(changed version: Version) -> String? {
        answer.withLock { $0.version.map { $0 >= version } ?? false ? $0.tag : nil }
    }

    var isKnown: Bool { answer.withLock { $0.tag != nil } }
    var answerBytesCount: Int { answer.withLock { $0.encoded?.body.count ?? 0 } }
    /// How many bytes the members take; an evaluation under way has the lock, and what it keeps counts afterwards.
    var membersBytesCount: Int { work.withLockIfAvailable(\.bytesCount) ?? 0 }

    func uncount() {
        answer.withLock { $0.encoded?.uncount() }
        _ = work.withLockIfAvailable { exchange(&$0.held, with: nil) }
    }

    func dropAnswer() { _ = answer.withLock { exchange(&$0.encoded, with: nil) } }

    var keepsNothing: Bool { work.withLockIfAvailable(\.keepsNothing) ?? false }

    func reading(_ epoch: Epoch) -> Reading? {
        answer.withLock { answer in
            guard answer.encoded != nil || answer.tag == nil else { return nil }
            return answer.version.map { Reading(cursor: Cursor(epoch, $0), encoded: answer.encoded) }
        }
    }

    func noteCompared(_ reading: Reading) {
        answer.withLock { if $0.tag == reading.encoded?.tag { $0.isCompared = true } }
    }

    /// The newest answer if it has not been compared with the watches, `.some(nil)` if it has; nil without its bytes.
    func takeUncompared(_ epoch: Epoch) -> Reading?? {
        answer.withLock { answer in
            guard !answer.isCompared else { return .some(nil) }
            guard let version = answer.version, answer.encoded != nil || answer.tag == nil else { return nil }
            answer.isCompared = true
            return Reading(cursor: Cursor(epoch, version), encoded: answer.encoded)
        }
    }

    /// The answer for a state, or for a newer one; `changes` gives nil where the touched members are unknown or many.
    func read(
        in snapshot: Snapshot, keeps: Bool, _ changes: (Version) -> [ChangedMember]?
    ) throws -> Reading {
        try work.withLock { work throws in
            let (epoch, version) = (snapshot.cursor.epoch, snapshot.cursor.version)
            if let known = work.version, known > version {
                if let newer = reading(epoch), newer.encoded != nil { return newer }
                let (texts, order) = texts(in: snapshot)
                let answer = try query.answered(to: texts, order)
                return Reading(cursor: snapshot.cursor, encoded: answer.map(Encoded.init))
            }
            if let known = encoded(changed: version), !keeps || work.members != nil || work.keepsNothing {
                return Reading(cursor: snapshot.cursor, encoded: known)
            }
            do {
                let result =
                    try advanced(&work, snapshot, changes)
                    ?? .made(evaluated(&work, snapshot, keeps: keeps).map(Encoded.init))
                return Reading(cursor: snapshot.cursor, encoded: stands(result, at: version, &work))
            } catch let stop as QueryStop where stop.isOfThread {
                throw stop
            } catch {
                work.members = nil
                _ = stands(.made(nil), at: version, &work)
                throw error
            }
        }
    }

    /// The most members that are taken, and the most values that a filter looks at, on a thread that serves others.
    private static let quickSteps = 10_000

    /// False where another thread evaluates the query now, or it takes long, or a large answer has to be made.
    func advance(to snapshot: Snapshot, _ changes: (Version) -> [ChangedMember]?) -> Bool {
        work.withLockIfAvailable { work in
            let version = snapshot.cursor.version
            guard let members = work.members, let known = work.version else { return false }
            if known >= version { return !work.isAhead }
            guard members.answerCountMax <= WatchHub.quickCountMax, let changes = changes(known),
                changes.count <= WatchHub.quickCountMax,
                // A query that takes long, or cannot be answered, is evaluated anew elsewhere.
                let result = try? advanced(&work, snapshot, { _ in changes }, stepsMax: Self.quickSteps)
            else { return false }
            _ = stands(result, at: version, &work)
            return true
        } ?? false
    }

    /// The answer by the members that have changed, or nil if the whole value has to be looked at.
    private func advanced(
        _ work: inout Work, _ snapshot: Snapshot, _ changes: (Version) -> [ChangedMember]?, stepsMax: Int? = nil
    ) throws -> Result? {
        guard work.members != nil, let known = work.version, let changes = changes(known) else { return nil }
        let isAhead = try work.members?.update(changes, stepsMax: stepsMax) == true || work.isAhead
        (work.isAhead, work.version) = (isAhead, snapshot.cursor.version)
        let before = answer.withLock(\.encoded)
        if !isAhead, before != nil || stepsMax != nil { return before.map { .made($0) } ?? .same }
        // A thread that serves others makes no large answer.
        if stepsMax != nil, before?.isLarge ?? true { return nil }
        do {
            let bytes = try work.members?.answer(from: before?.body ?? []) { try value(of: $0, in: snapshot) }
            work.isAhead = false
            return .made(bytes.map(Encoded.init))
        } catch {
            // The members have changed, and there is no answer that goes with them.
            work.members = nil
            return nil
        }
    }

    private func value(of name: String, in snapshot: Snapshot) throws -> [UInt8]? {
        try snapshot.selected(.pointer(place.appending(name)), countMax: .max).bytes
    }

    private func texts(in snapshot: Snapshot) -> (MemberTexts, MemberOrder?) {
        guard let tree = snapshot.tree(at: place) else { return ({ _ in }, nil) }
        return (tree.visitTexts, tree.memberOrder)
    }

    private func evaluated(_ work: inout Work, _ snapshot: Snapshot, keeps: Bool) throws -> [UInt8]? {
        (work.members, work.isAhead) = (nil, false)
        work.keepsNothing = keeps
        let (texts, order) = texts(in: snapshot)
        if keeps, !work.isTooLarge, let order, let members = try query.kept(of: texts, order) {
            let bytes = try members.answer(from: []) { try self.value(of: $0, in: snapshot) }
            (work.members, work.keepsNothing) = (members, false)
            return bytes
        }
        return try query.answered(to: texts, order)
    }

    private func stands(_ result: Result, at version: Version, _ work: inout Work) -> Encoded? {
        work.version = version
        let count = work.members?.bytesCount ?? 0
        let held = work.held ?? HeldMemory(QueryWork.current.memory, for: QueryWork.current.client)
        if !budget.hold(count, insteadOf: work.bytesCount) || held.hold(count) != nil {
            (work.members, work.isTooLarge, work.keepsNothing) = (nil, true, true)
            budget.hold(0, insteadOf: count)
        }
        work.bytesCount = work.members == nil ? 0 : count
        work.held = work.members == nil ? nil : held
        return answer.withLock { answer in
            defer { answer.version = version }
            guard case .made(let made) = result else { return answer.encoded }
            if answer.version == nil || answer.tag != made?.tag { answer.isCompared = false }
            (answer.encoded, answer.tag) = (made, made?.tag)
            return made
        }
    }
}

extension Snapshot {
    private static let changedMembersMax = 10_000
    private static let quickBytesMax = 1 << 20

    /// The members of a place that commits have touched, with their values, which all queries on the place share; nil if
    /// a commit has replaced the place or touched many members, or if their order is unknown.
    ///
    /// The cost is O(n) in the changed pointers and the bytes of the members; `isQuick` gives up beyond a megabyte.
    func changedMembers(at place: JSONPointer, by commits: [Commit], isQuick: Bool) -> [ChangedMember]? {
        guard let order = tree(at: place)?.memberOrder else { return nil }
        var names: Set<JSONKey> = []
        for commit in commits {
            for pointer in commit.changedPointers where pointer.overlaps(place) {
                guard pointer.tokens.count > place.tokens.count else { return nil }
                names.insert(JSONKey(pointer.tokens[place.tokens.count]))
                guard names.count <= Self.changedMembersMax else { return nil }
            }
        }
        var members: [ChangedMember] = []
        var bytesLeft = isQuick ? Self.quickBytesMax : .max
        for name in names {
            guard let key = order(name.text),
                // A committed state can be encoded, and is JSON; without the value, the whole is looked at.
                let selected = try? selected(
                    .pointer(place.appending(name.text)), countMax: isQuick ? WatchHub.quickCountMax : .max)
            else { return nil }
            if case .overBudget = selected { return nil }
            bytesLeft -= selected.bytes?.count ?? 0
            guard bytesLeft >= 0, let value = try? selected.bytes.map({ try JSONValue(parsing: $0, depthMax: .max) })
            else { return nil }
            members.append(ChangedMember(name: name, order: key, value: value))
        }
        return members
    }
}

final class QueryBudget: Sendable {
    private let bytesMax: Int
    private let held = Atomic(0)

    init(bytesMax: Int) { self.bytesMax = bytesMax }

    @discardableResult
    func hold(_ bytes: Int, insteadOf before: Int) -> Bool {
        held.add(bytes - before, ordering: .relaxed).newValue <= bytesMax || bytes <= before
    }
}

package struct QueryWork: Sendable {
    /// Whether somebody still waits for the answer after so much processor time.
    package var isWanted: @Sendable (Duration) -> Bool = { _ in true }
    /// Whether the thread serves others, and compiles no pattern.
    package var servesOthers = false
    package var client = ""
    package var memory = ClientMemory()
    package var processorTime: @Sendable () -> Duration = SystemThread.processorTime

    @TaskLocal package static var current = QueryWork()

    package init() {}
}

package enum QueryStop: Error, Sendable, Equatable {
    /// It has looked at more values, or gathered more, or taken more processor time than it may.
    case values, time
    /// The page has to end, and its sort values are too long for a `next`.
    case page
    case abandoned
    /// A pattern has to be compiled by a thread that does not serve others.
    case elsewhere
    case memory(ClientMemory.Refusal)

    /// Whether another evaluation of the same members may have an answer.
    var isOfThread: Bool { if case .memory = self { true } else { self == .abandoned || self == .elsewhere } }
}
