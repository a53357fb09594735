internal import StateJSON
internal import Synchronization

/// A query on the members of a place, with its newest answer and, while it is watched, the members that it lets through.
///
/// Threads: readers, the fan-out queue and the encoding queue call it. One of them at a time evaluates it, and the others
/// wait or go on without; the answer has a lock of its own, which nobody holds for long.
final class KeptQuery: Sendable {
    private struct Work {
        var members: (any KeptMembers)?
        /// The version of the state that was evaluated last.
        var version: Version?
        var bytesCount = 0
        /// Whether the members take more memory than there is for them.
        var isTooLarge = false
        /// Whether the members of the value that was evaluated last cannot be kept.
        var keepsNothing = false
    }

    /// The result of an evaluation.
    private enum Result {
        /// The answer is that of the evaluation before.
        case same
        /// The bytes of the answer, or nil if nothing is at the place.
        case bytes([UInt8]?)
    }

    private struct Answer {
        var encoded: Encoded?
        /// The newest version at which the answer stands; nil before the first evaluation.
        var version: Version?
        var number = 0
        var comparedNumber = 0
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

    /// The answer, unless it is older than a change of the place.
    func encoded(changed version: Version) -> Encoded? {
        answer.withLock { $0.version.map { $0 >= version } ?? false ? $0.encoded : nil }
    }

    /// How many bytes the answer and the members take; nil before there is an answer.
    var bytesCount: Int? {
        guard let bytes = answer.withLock({ $0.encoded?.body.count }) else { return nil }
        // An evaluation under way has the lock; what it keeps counts afterwards.
        return bytes + (work.withLockIfAvailable(\.bytesCount) ?? 0)
    }

    /// Whether a read that keeps the members would find that it cannot.
    var keepsNothing: Bool { work.withLockIfAvailable(\.keepsNothing) ?? false }

    /// The newest answer, with the version at which it stands.
    func reading(_ epoch: Epoch) -> Reading? {
        answer.withLock { answer in
            answer.version.map { Reading(cursor: Cursor(epoch, $0), encoded: answer.encoded) }
        }
    }

    /// The newest answer, if it has not been compared with the watches yet; from then on it counts as compared.
    func takeUncompared(_ epoch: Epoch) -> Reading? {
        let isNew = answer.withLock { answer in
            defer { answer.comparedNumber = answer.number }
            return answer.number != answer.comparedNumber
        }
        return isNew ? reading(epoch) : nil
    }

    /// The answer for a state, or for a newer one that was published meanwhile.
    ///
    /// - Parameters:
    ///   - keeps: whether to keep the members, so that later states cost what changes.
    ///   - changes: the members that the commits after a version have touched, or nil if they are unknown or many.
    /// - Throws: as ``MembersQuery/answered(to:_:)``.
    func read(
        in snapshot: any AnySnapshot, keeps: Bool, _ changes: (Version) -> MemberChanges?
    ) throws -> Reading {
        try work.withLock { work throws in
            let (epoch, version) = (snapshot.cursor.epoch, snapshot.cursor.version)
            if let known = work.version, known > version {
                if let newer = reading(epoch), newer.encoded != nil { return newer }
                let answer = try query.answered(to: texts(in: snapshot), snapshot.memberOrder(at: place))
                return Reading(cursor: snapshot.cursor, encoded: answer.map(Encoded.init))
            }
            if let known = encoded(changed: version), !keeps || work.members != nil || work.keepsNothing {
                return Reading(cursor: snapshot.cursor, encoded: known)
            }
            do {
                let result =
                    try advanced(&work, snapshot, changes) ?? .bytes(evaluated(&work, snapshot, keeps: keeps))
                return Reading(cursor: snapshot.cursor, encoded: stands(result, at: version, &work))
            } catch {
                work.members = nil
                _ = stands(.bytes(nil), at: version, &work)
                throw error
            }
        }
    }

    /// The most members that are taken, and the most values that a filter looks at, on a thread that serves others.
    private static let quickSteps = 10_000

    /// Brings the answer to a state, if that is quick.
    ///
    /// - Returns: false where another thread evaluates the query now, or it takes long.
    func advance(to snapshot: any AnySnapshot, _ changes: (Version) -> MemberChanges?) -> Bool {
        work.withLockIfAvailable { work in
            let version = snapshot.cursor.version
            guard let members = work.members, let known = work.version else { return false }
            if known >= version { return true }
            guard members.answerCountMax <= WatchHub.quickCountMax, let changes = changes(known),
                changes.members.count <= WatchHub.quickCountMax,
                // A query that takes long, or cannot be answered, is evaluated anew elsewhere.
                let result = try? advanced(&work, snapshot, { _ in changes }, stepsMax: Self.quickSteps)
            else { return false }
            _ = stands(result, at: version, &work)
            return true
        } ?? false
    }

    /// The answer by the members that have changed, or nil if the whole value has to be looked at.
    private func advanced(
        _ work: inout Work, _ snapshot: any AnySnapshot, _ changes: (Version) -> MemberChanges?, stepsMax: Int? = nil
    ) throws -> Result? {
        guard work.members != nil, let known = work.version, let changes = changes(known) else { return nil }
        guard try work.members?.update(changes.members, stepsMax: stepsMax) == true else {
            return .same
        }
        do {
            return .bytes(try work.members?.answer { try value(of: $0, in: snapshot) })
        } catch {
            // The members have changed, and there is no answer that goes with them.
            work.members = nil
            return nil
        }
    }

    private func value(of name: String, in snapshot: any AnySnapshot) throws -> [UInt8]? {
        try snapshot.selected(.pointer(place.appending(name)), countMax: .max).bytes
    }

    private func texts(in snapshot: any AnySnapshot) -> MemberTexts {
        { take in try snapshot.visitTexts(at: self.place, take) }
    }

    private func evaluated(_ work: inout Work, _ snapshot: any AnySnapshot, keeps: Bool) throws -> [UInt8]? {
        work.members = nil
        work.keepsNothing = keeps
        let (texts, order) = (texts(in: snapshot), snapshot.memberOrder(at: place))
        if keeps, !work.isTooLarge, let order, let members = try query.kept(of: texts, order) {
            let bytes = try members.answer { try self.value(of: $0, in: snapshot) }
            (work.members, work.keepsNothing) = (members, false)
            return bytes
        }
        return try query.answered(to: texts, order)
    }

    /// Publishes the answer for a version, and counts the memory of the members.
    private func stands(_ result: Result, at version: Version, _ work: inout Work) -> Encoded? {
        work.version = version
        let count = work.members?.bytesCount ?? 0
        if !budget.hold(count, insteadOf: work.bytesCount) {
            (work.members, work.isTooLarge, work.keepsNothing) = (nil, true, true)
            budget.hold(0, insteadOf: count)
        }
        work.bytesCount = work.members == nil ? 0 : count
        let made: Encoded? = if case .bytes(let bytes?) = result { Encoded(bytes) } else { nil }
        return answer.withLock { answer in
            if case .bytes = result, answer.version == nil || answer.encoded?.tag != made?.tag {
                answer.encoded = made
                answer.number += 1
            }
            answer.version = version
            return answer.encoded
        }
    }
}

/// The memory for the kept members of all queries of a hub.
final class QueryBudget: Sendable {
    private let bytesMax: Int
    private let held = Atomic(0)

    init(bytesMax: Int) { self.bytesMax = bytesMax }

    /// Counts the bytes of a query anew; false above the most that there may be.
    @discardableResult
    func hold(_ bytes: Int, insteadOf before: Int) -> Bool {
        held.add(bytes - before, ordering: .relaxed).newValue <= bytesMax || bytes <= before
    }
}
