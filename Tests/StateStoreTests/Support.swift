import Dispatch
import Synchronization
import Testing

@testable import StateJSON
@testable import StateStore

func text(_ bytes: [UInt8]?) -> String? { bytes.map { String(decoding: $0, as: UTF8.self) } }

/// Holds a thread until it is opened.
final class Gate: Sendable {
    private let (begun, go) = (DispatchSemaphore(value: 0), DispatchSemaphore(value: 0))

    func hold() {
        begun.signal()
        go.wait()
    }
    func waitForBegin() { begun.wait() }
    func open() { go.signal() }
}

/// A counter and a table, which suffice for most tests.
struct Sample: Domain {
    struct State: StateType {
        var count = Count()
        var items = Items()
    }
    struct Count: StateType, Codable, Equatable { var value = 0 }
    struct Items: StateType {
        var table = EntityTable<Int, Item>()
        var marked: [Int] = []
    }
    struct Item: Codable, Equatable { var name: String; var size = 0.0 }

    struct Add: Action { static let type = "count/add"; var amount: Int }
    struct Put: ValidatedAction {
        static let type = "items/put"
        var id: Int
        var name: String
        func validate() throws(Rejection) {
            guard !name.isEmpty else {
                throw Rejection("name", "a name is not empty", kind: .invalid, pointer: "/name")
            }
        }
    }
    struct Remove: Action { static let type = "items/remove"; var id: Int }
    struct Move: Action { static let type = "items/move"; var id: Int; var position: Int }
    struct Break: Action { static let type = "items/break"; var id: Int }
    struct Both: Action { static let type = "both"; var id: Int }

    var reducer: some Reducer<State> {
        Slice("count", \.count) {
            On(Add.self) { state, action throws(Rejection) in
                guard state.value + action.amount >= 0 else { throw Rejection("negative", "would be negative") }
                state.value += action.amount
            }
            On(Both.self) { state, _ in state.value += 1 }
        }
        Slice("items", \.items) {
            Entities("entities", \.table)
            Field("marked", \.marked)
            On(Put.self) { state, action in state.table[action.id] = Item(name: action.name) }
            On(Remove.self) { state, action in state.table[action.id] = nil }
            On(Move.self) { state, action in state.table.move(action.id, to: action.position) }
            On(Break.self) { state, action in state.table[action.id] = Item(name: "broken", size: .nan) }
            On(Both.self) { state, action in state.marked.append(action.id) }
            View("names", reads: ["/entities", "/ids"]) { state in state.table.map(\.entity.name) }
        }
    }
}

extension Sample {
    /// A random action of the domain; the reducers reject some, and some change nothing.
    static func anything(using generator: inout some RandomNumberGenerator) -> any Action {
        let id = Int.random(in: 0..<8, using: &generator)
        return switch Int.random(in: 0..<7, using: &generator) {
        case 0: Add(amount: id - 3)
        case 1, 2: Put(id: id, name: "\(Int.random(in: 0..<3, using: &generator))")
        case 3: Remove(id: id)
        case 4: Move(id: id, position: Int.random(in: 0..<3, using: &generator))
        case 5: Both(id: id)
        default: Add(amount: 0)
        }
    }
}

extension Core {
    func turn(_ transactions: [Transaction], at time: Timestamp) -> Turn {
        turn(transactions, at: time, monotonic: Instant(nanoseconds: time.milliseconds * 1_000_000))
    }

    func turn(_ transactions: [Transaction], at time: Timestamp, monotonic: Instant) -> Turn {
        turn(transactions.map { PendingTransaction($0) { _ in } }, at: time, monotonic: { monotonic })
    }
}

extension Core {
    static var sampleEpoch: Epoch { Epoch("aaaaaaaaaaaaaaaa") ?? .random() }

    static func sample(
        middleware: [Middleware<Sample.State>] = [.validation], limits: StoreLimits = StoreLimits(),
        keys: [KeyRecord] = [],
        historyTime: Timestamp? = nil
    ) throws -> Core {
        Core(
            domain: try CompiledDomain(Sample()), epoch: sampleEpoch, middleware: middleware.map(\.step),
            limits: limits,
            state: .of(Sample.State()), version: 0, keys: keys, historyTime: historyTime)
    }

    /// Runs a turn.
    @discardableResult
    func run(_ transactions: [Transaction], at milliseconds: Int64 = 0) -> Turn {
        defer { expectOwnTree() }
        return turn(transactions, at: Timestamp(milliseconds: milliseconds))
    }

    @discardableResult
    func run(_ pending: [PendingTransaction], at milliseconds: Int64) -> Turn {
        defer { expectOwnTree() }
        return turn(
            pending, at: Timestamp(milliseconds: milliseconds),
            monotonic: { Instant(nanoseconds: milliseconds * 1_000_000) })
    }

    /// Expects the tree of the state to be the one that its codec makes of the state alone.
    func expectOwnTree() {
        #expect(latest.tree.text == (try? domain.tree(of: state).encoded()))
    }

    @discardableResult
    func run(_ actions: any Action...) -> Turn { run(actions.map { .of($0) }) }

    func json(_ pointer: JSONPointer = .root) throws -> String? {
        text(try latest.tree.selected(pointer.tokens[...]).bytes)
    }
}

extension Transaction {
    static func of(
        _ actions: any Action..., form: Form = .single, purpose: Purpose = .commit, expectations: [Expectation] = [],
        tagGuard: Expectation? = nil, key: String? = nil, body: String = ""
    ) -> Transaction {
        Transaction(
            actions.map { Item($0) }, form: form, purpose: purpose, expectations: expectations, tagGuard: tagGuard,
            idempotency: key.map { (IdempotencyKey(recorded: $0), body) })
    }
}

extension Outcome {
    var receipt: Receipt? { if case .committed(let receipt) = self { receipt } else { nil } }
    var rejection: Rejection? { if case .rejected(let rejection, _) = self { rejection } else { nil } }
}

final class Log: Sendable {
    private let stored = Mutex<[String]>([])
    var lines: [String] { stored.withLock { $0 } }
    func add(_ line: String) { stored.withLock { $0.append(line) } }
}

extension UntypedStore {
    /// The same store, whose state is of this type.
    func typed<State: StateType>(_: State.Type) -> Store<State> {
        guard let typed = Store<State>(self) else { preconditionFailure("the state is of another type") }
        return typed
    }
}

/// What only the tests of the store ask a typed store for.
extension Store {
    var hub: WatchHub { untyped.hub }
    var latest: Snapshot { untyped.latest }
    var queue: DispatchQueue { untyped.queue }
    func submit(_ pending: PendingTransaction) { untyped.submit(pending) }
    func submitNow(_ transaction: Transaction) -> Outcome { untyped.submitNow(transaction) }
    func enqueue(_ pending: PendingTransaction) { untyped.enqueue(pending) }
    func flush() { untyped.flush() }
    func flushNow() { untyped.flushNow() }
    func drain() { untyped.drain() }
    func onQueue(_ body: () -> Void) { untyped.onQueue(body) }
    func dispatchDue() { untyped.dispatchDue() }
}
