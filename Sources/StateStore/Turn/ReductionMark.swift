internal import Dispatch
package import StateJSON
internal import Synchronization

/// Memory that outlives the process and names what is being computed: a mapped file stays in the page cache when the
/// process ends for any reason.
package struct MarkPage {
    package struct Record: Equatable, Sendable {
        package var identity: TransactionIdentity
        /// The type of its first action, or `view`.
        package var type: String
        /// The idempotency key with its subject and line, the first ID, or the view; empty where the content identifies it.
        package var name: String
        /// The version of the state that a view was computed from; 0 for a transaction.
        package var version: Version

        package init(identity: TransactionIdentity, type: String, name: String, version: Version = 0) {
            (self.identity, self.type, self.name, self.version) = (identity, type, name, version)
        }
    }

    package static let size = 24_576
    package static let slotsMax = 48

    private static let mark: UInt64 = 0x3230_4B52_414D_4B53  // SKMARK02
    private static let bootOffset = 8
    private static let slotsOffset = 64
    private static let recordSize = 384
    // An earlier program has eight records of another kind before these.
    private static let recordsOffset = slotsOffset + slotsMax * 8 + 8 * recordSize
    private static let (kindOffset, typeOffset, nameOffset, versionOffset) = (16, 24, 152, 376)
    private static let (typeMax, nameMax) = (128, 224)

    private let base: UnsafeMutableRawPointer

    /// Takes ``size`` bytes, which are aligned to 8.
    package init(_ base: UnsafeMutableRawPointer) { self.base = base }

    /// Empties a page that is new, or of another boot of the machine: a power cut is no fault of an action.
    package func prepare(boot: ContentHash) {
        let found = (word(0), word(Self.bootOffset), word(Self.bootOffset + 8))
        guard found != (Self.mark, boot.high, boot.low) else { return }
        base.initializeMemory(as: UInt8.self, repeating: 0, count: Self.size)
        base.storeBytes(of: Self.mark, toByteOffset: 0, as: UInt64.self)
        base.storeBytes(of: boot.high, toByteOffset: Self.bootOffset, as: UInt64.self)
        base.storeBytes(of: boot.low, toByteOffset: Self.bootOffset + 8, as: UInt64.self)
    }

    package func interrupted(in slot: Int) -> Record? {
        guard word(Self.stateOffset(slot)) == 1 else { return nil }
        let offset = Self.offset(slot)
        guard let kind = TransactionIdentity.Kind(rawValue: byte(offset + Self.kindOffset)) else { return nil }
        return Record(
            identity: .init(kind, ContentHash(high: word(offset), low: word(offset + 8))),
            type: text(offset + Self.typeOffset, min(Self.typeMax, Int(byte(offset + Self.kindOffset + 1)))),
            name: text(offset + Self.nameOffset, min(Self.nameMax, Int(byte(offset + Self.kindOffset + 2)))),
            version: word(offset + Self.versionOffset))
    }

    func begin(_ record: Record, in slot: Int) {
        // Whatever ends the process between two of these stores is not what is computed.
        base.storeBytes(of: 0, toByteOffset: Self.stateOffset(slot), as: UInt64.self)
        write(record, at: Self.offset(slot))
        base.storeBytes(of: 1, toByteOffset: Self.stateOffset(slot), as: UInt64.self)
    }

    package func end(_ slot: Int) { base.storeBytes(of: 0, toByteOffset: Self.stateOffset(slot), as: UInt64.self) }

    private static func stateOffset(_ slot: Int) -> Int { slotsOffset + slot * 8 }

    private static func offset(_ slot: Int) -> Int { recordsOffset + slot * recordSize }

    private func write(_ record: Record, at offset: Int) {
        base.storeBytes(of: record.identity.hash.high, toByteOffset: offset, as: UInt64.self)
        base.storeBytes(of: record.identity.hash.low, toByteOffset: offset + 8, as: UInt64.self)
        base.storeBytes(of: record.version, toByteOffset: offset + Self.versionOffset, as: UInt64.self)
        base.storeBytes(of: record.identity.kind.rawValue, toByteOffset: offset + Self.kindOffset, as: UInt8.self)
        copy(record.type, Self.typeMax, to: offset + Self.typeOffset, count: offset + Self.kindOffset + 1)
        copy(record.name, Self.nameMax, to: offset + Self.nameOffset, count: offset + Self.kindOffset + 2)
    }

    private func copy(_ text: String, _ most: Int, to offset: Int, count place: Int) {
        let count = min(text.utf8.count, most)
        text.withBytes { if let start = $0.baseAddress { (base + offset).copyMemory(from: start, byteCount: count) } }
        base.storeBytes(of: UInt8(count), toByteOffset: place, as: UInt8.self)
    }

    private func text(_ offset: Int, _ count: Int) -> String {
        String(decoding: UnsafeRawBufferPointer(start: base + offset, count: count), as: UTF8.self)
    }

    private func word(_ offset: Int) -> UInt64 { base.load(fromByteOffset: offset, as: UInt64.self) }

    private func byte(_ offset: Int) -> UInt8 { base.load(fromByteOffset: offset, as: UInt8.self) }
}

/// A mark that records each transaction and each view before it is computed, and refuses what is set aside.
///
/// A reducer, a middleware or a view that traps ends the process. The next process finds in the page what was computed
/// then. The turns of a store, its dry runs, each fork and each view have a mark of their own, on one page and with one
/// list.
// unchecked: only one turn, dry run, fork or view at a time uses a mark; a mutex guards what the marks of a page share.
package final class ReductionMark: @unchecked Sendable {
    package struct Refused: Sendable {
        package var name: String
        /// The version of the state with which the view is refused, until what it reads changes.
        package var version: Version

        package init(name: String, version: Version = 0) { (self.name, self.version) = (name, version) }
    }

    /// The actions and views that are set aside, and with nil those that are suspected.
    private typealias Watched = [TransactionIdentity: Refused?]

    private final class Watch: Sendable {
        let watched = Mutex<Watched>([:])
        let isNeeded = Atomic(false)
        let slots = Atomic<UInt64>(0)
        let released: @Sendable (TransactionIdentity) -> Void

        init(released: @escaping @Sendable (TransactionIdentity) -> Void) { self.released = released }

        func change<Value: Sendable>(_ body: (inout Watched) -> Value) -> Value {
            watched.withLock { watched in
                defer { isNeeded.store(!watched.isEmpty, ordering: .relaxed) }
                return body(&watched)
            }
        }

        func takeSlot() -> Int? {
            var used = slots.load(ordering: .relaxed)
            while true {
                let slot = (~used).trailingZeroBitCount
                guard slot < MarkPage.slotsMax else { return nil }
                let (isTaken, current) = slots.weakCompareExchange(
                    expected: used, desired: used | 1 << UInt64(slot), ordering: .relaxed)
                if isTaken { return slot }
                used = current
            }
        }

        func giveBack(_ slot: Int) { slots.bitwiseAnd(~(1 << UInt64(slot)), ordering: .relaxed) }
    }

    private let page: MarkPage
    private let owner: AnyObject
    private let watch: Watch
    /// The part of the page that is in use between a beginning and the end behind it.
    private var slot: Int?
    private var tried: TransactionIdentity?

    /// The first mark of a page, whose memory `owner` keeps; `released` is called on any thread and must not wait.
    package init(
        _ page: MarkPage, owner: AnyObject, released: @escaping @Sendable (TransactionIdentity) -> Void = { _ in }
    ) {
        self.page = page
        self.owner = owner
        watch = Watch(released: released)
    }

    private init(beside mark: ReductionMark) { (page, owner, watch) = (mark.page, mark.owner, mark.watch) }

    func another() -> ReductionMark { ReductionMark(beside: self) }

    package func watch(_ listed: [TransactionIdentity: Refused?]) { watch.change { $0 = listed } }

    /// The reason why the record is set aside, or nil; `changed` is nil for a past state, and for a transaction.
    func begin(_ record: MarkPage.Record, changed: Version? = nil) -> Refused? {
        if tried != nil { releaseTried() }
        if watch.isNeeded.load(ordering: .relaxed), let refused = refusal(record.identity, changed: changed) {
            end()
            return refused
        }
        // Where more threads compute than the page has room for, the next ones are not recorded.
        guard let slot = slot ?? watch.takeSlot() else { return nil }
        self.slot = slot
        page.begin(record, in: slot)
        return nil
    }

    /// Computes a view, which the page names meanwhile without a system call.
    ///
    /// A view that is set aside is computed again once what it reads has changed; `changed` is nil for a past state.
    func viewing<Value>(
        _ name: String, _ arguments: ViewArguments, at version: Version, changed: Version?, _ body: () throws -> Value
    ) throws -> Value {
        let mark = another()
        let identity = TransactionIdentity(view: name, arguments)
        let record = MarkPage.Record(identity: identity, type: "view", name: name, version: version)
        if let refused = mark.begin(record, changed: changed) {
            throw ViewFault(
                "the server has ended each time it computed the view, and has set it aside as \(refused.name), until what it reads changes or the operator lets it pass"
            )
        }
        defer { mark.end() }
        return try body()
    }

    func end() {
        if let slot {
            page.end(slot)
            watch.giveBack(slot)
        }
        slot = nil
        if tried != nil { releaseTried() }
    }

    private func refusal(_ identity: TransactionIdentity, changed: Version?) -> Refused? {
        watch.watched.withLock { watched in
            guard let listed = watched[identity] else { return nil }
            if let refused = listed, changed.map({ $0 <= refused.version }) ?? true { return refused }
            tried = identity
            return nil
        }
    }

    private func releaseTried() {
        guard let identity = tried.take() else { return }
        if watch.change({ $0.removeValue(forKey: identity) != nil }) { watch.released(identity) }
    }
}

extension MarkPage.Record {
    package init?(_ transaction: Transaction) {
        guard let identity = TransactionIdentity(transaction) else { return nil }
        self.init(identity: identity, type: transaction.firstType, name: transaction.identifyingName)
    }
}

extension Transaction {
    /// The type of the first action; empty where only the turn knows it.
    package var firstType: String { items.isEmpty ? "" : type(at: 0) ?? "" }

    /// The idempotency key or the first ID; empty where the content identifies the transaction.
    fileprivate var identifyingName: String { idempotency?.key.recorded ?? firstID ?? "" }
}

extension Rejection {
    private static let quarantineCode = "action-quarantined"

    package var isQuarantine: Bool { code == Self.quarantineCode }

    package static func quarantined(_ name: String) -> Rejection {
        Rejection(
            quarantineCode,
            "the server has ended each time it reduced this action, and has set it aside as \(name); nothing was committed, and a retry is refused until the operator lets it pass",
            kind: .invalid)
    }
}

#if canImport(Glibc)
    internal import Glibc
#else
    internal import Darwin
#endif

/// Marks a thread that is inside a turn, where a wait for another turn would never end.
///
/// The mark belongs to the thread: another serial queue runs a `sync` block on the waiting thread, and libdispatch then
/// only finds that other queue.
final class TurnMark {
    // exclusivity unchecked: only the marked thread uses the variables, and a check takes as long as ten accesses.

    let queue: DispatchQueue
    /// Whether a reducer runs, whose dispatches the store refuses; it queues those of other code for a later turn.
    @exclusivity(unchecked) var isReducing = false
    /// Takes what a creator or a middleware dispatches while a transaction is computed; nil in a notification.
    @exclusivity(unchecked) var collector: TransactionContext?

    init(of queue: DispatchQueue) { self.queue = queue }

    private static let key: pthread_key_t = {
        var key = pthread_key_t()
        let code = pthread_key_create(&key, nil)
        precondition(code == 0, "a process has at least 128 keys of thread-specific data, and all are taken")
        return key
    }()

    static var current: TurnMark? {
        pthread_getspecific(key).map { Unmanaged<TurnMark>.fromOpaque($0).takeUnretainedValue() }
    }

    func with<Result>(_ body: () -> Result) -> Result {
        let outer = pthread_getspecific(Self.key)
        // The thread-specific value holds no reference: this call keeps the mark alive.
        pthread_setspecific(Self.key, Unmanaged.passUnretained(self).toOpaque())
        defer { pthread_setspecific(Self.key, outer) }
        return withExtendedLifetime(self, body)
    }
}
