import HTTPMessages
import HTTPTypes
import Synchronization

@testable import StateHTTP
@testable import StateJSON
@testable import StateStore

/// The server without a socket: contract, store and board, with time and names that are always the same.
final class Stage {
    /// What a transcript may set before its first request.
    struct Setting {
        var version: Version = 0
        var limits = StoreLimits()
        var contract = ContractLimits()
        var caps = WaiterCaps(waitersMax: 100, waitersPerClientMax: 100)
    }

    /// An answer, or that it has to be waited for.
    enum Reply {
        case now(Response)
        case waiting(Int)
    }

    private enum Waiting {
        case read(ReadRequest)
        case follow(FollowRequest)
    }

    static let epoch = Epoch("storekeeperdemoa") ?? .random()

    private let contract: Contract
    private let model: Model<Demo.State>
    private let store: Store<Demo.State>
    private let board: Board
    private let time: Clock
    private let woken: Log
    private var waiting: [Int: Waiting] = [:]
    private var requestsCount = 0

    /// A clock that is turned by hand.
    final class Clock: Sendable {
        private let stored = Mutex(Timestamp(milliseconds: 1_767_323_045_678))
        var now: Timestamp { stored.withLock { $0 } }
        func advance(by duration: Duration) { stored.withLock { $0 = $0.advanced(by: duration) } }
    }

    /// Whom a commit has woken.
    final class Log: Sendable {
        private let stored = Mutex<[Wake]>([])
        func add(_ wakes: [Wake]) { stored.withLock { $0 += wakes } }
        func take() -> [Wake] {
            stored.withLock { wakes in
                defer { wakes = [] }; return wakes
            }
        }
    }

    init(_ setting: Setting = Setting()) throws {
        model = try Model(Demo())
        contract = Contract(catalogue: model.catalogue, limits: setting.contract)
        let origin = Store<Demo.State>.Origin(state: model.initial, cursor: Cursor(Self.epoch, setting.version))
        let board = Board(
            Snapshot(origin.state, of: model, at: origin.cursor), catalogue: model.catalogue, limits: setting.limits,
            caps: setting.caps)
        let (time, woken) = (Clock(), Log())
        store = Store(
            model: model, limits: setting.limits, origin: origin, now: { time.now },
            publish: { woken.add(board.publish($0.snapshot, $0.commits)) })
        self.board = board
        self.time = time
        self.woken = woken
    }

    private var position: HeadPosition { HeadPosition(head: board.position.head, oldest: board.position.oldest) }

    /// Lets a request in.
    func receive(_ request: Request) throws -> Reply {
        requestsCount += 1
        let number = requestsCount
        let requestID = request.fields[.requestID] ?? "r\(number)"
        switch contract.answer(request, position: position, requestID: requestID) {
        case .respond(let response): return .now(response)
        case .dispatch(let dispatch):
            let submissions =
                switch dispatch.content {
                case .one(let submission): [submission]
                case .lines(let lines): lines.compactMap { line in try? line.content.get() }
                }
            let outcomes = submissions.map(store.submitNow)
            return .now(contract.response(to: dispatch, outcomes: outcomes, head: position.head, requestID: requestID))
        case .read(let read): return try self.read(read, number, request.client)
        case .follow(let follow): return try self.follow(follow, number, request.client)
        case .stream(let stream): return .now(try beginning(of: stream))
        case .outcome(let id, let scope, let style):
            let version = Cursor(text: id).flatMap { $0.epoch == Self.epoch ? $0.version : nil }
            let commit = version.map { board.commit(version: $0) } ?? board.commit(id: id)
            return .now(
                contract.response(
                    toOutcomeOf: id, commit, scope, head: position.head, style: style, requestID: requestID))
        case .live, .ready, .metrics: return .now(Response(status: .ok, fields: [.contentType: "text/plain"]))
        }
    }

    /// The answers to those whom the last request has woken, in the order in which they came.
    func takeWoken() throws -> [(number: Int, Response)] {
        var answers: [(number: Int, Response)] = []
        for wake in woken.take() {
            for number in wake.tokens.map({ Int($0.number) }) {
                guard let parked = waiting.removeValue(forKey: number) else { continue }
                switch (wake.news, parked) {
                case (.selection(let reading), .read(let request)):
                    answers.append((number, contract.response(to: request, reading)))
                case (.changes(_, let page), .follow(let request)):
                    answers.append((number, contract.response(to: request, page)))
                case (.version, _): answers.append((number, try timeout(parked, head: position.head)))
                case (.selection, .follow), (.changes, .read):
                    preconditionFailure("a waiter was woken by what it did not wait for")
                }
            }
        }
        return answers.sorted { $0.number < $1.number }
    }

    /// Lets time pass: who waits no longer than this is answered.
    func pass(_ duration: Duration) throws -> [(number: Int, Response)] {
        time.advance(by: duration)
        var answers: [(number: Int, Response)] = []
        for (number, parked) in waiting.sorted(by: { $0.key < $1.key }) {
            let wait =
                switch parked {
                case .read(let request): request.wait
                case .follow(let request): request.wait
                }
            guard let wait, wait.duration <= duration, let (_, head) = board.leave(WaiterToken(UInt64(number))) else {
                continue
            }
            waiting[number] = nil
            answers.append((number, try timeout(parked, head: head)))
        }
        return answers
    }

    /// Stops the store.
    func drain() { store.drain() }

    private func respond(_ problem: Problem, _ requestID: String) -> Reply {
        .now(contract.response(to: problem, head: position.head, requestID: requestID))
    }

    private func read(_ request: ReadRequest, _ number: Int, _ client: String) throws -> Reply {
        if let version = request.version, version < position.head.version { return try readPast(request, version) }
        var parking = Parking.ready
        if let version = request.atLeast, request.wait != nil {
            parking = board.park(WaiterToken(UInt64(number)), client: client, until: version)
        }
        if case .ready = parking, let condition = request.condition {
            parking = try board.park(
                WaiterToken(UInt64(number)), client: client, at: request.selection, until: condition)
        }
        switch parking {
        case .ready: return .now(contract.response(to: request, try board.read(request.selection)))
        case .refused(let share): return respond(.tooManyWaiters(share), request.requestID)
        case .parked:
            waiting[number] = .read(request)
            return .waiting(number)
        }
    }

    /// A stream's head and its first pieces.
    private func beginning(of request: StreamRequest) throws -> Response {
        var isLost = request.isLost || request.lastEpoch.map { $0 != Self.epoch } ?? false
        func opening(after start: Version? = nil) -> Response {
            let start = isLost ? nil : start.map { Cursor(Self.epoch, $0) }
            return contract.response(to: request, head: position.head, start: start, retry: 2000)
        }
        var response = opening()
        switch request.source {
        case .value(let read):
            let reading = try board.read(read.selection)
            guard reading.encoded != nil else { return contract.response(to: read, reading) }
            response.body +=
                isLost
                ? contract.piece(of: request, reset: .lost, reading)
                : contract.piece(of: request, reading, isFirst: true)
        case .changes(let follow):
            var since = position.head.version
            if follow.since == .oldest { since = position.oldest }
            if case .cursor(let cursor) = follow.since {
                (since, isLost) = (cursor.version, cursor.epoch != Self.epoch)
            }
            response = opening(after: since)
            switch board.follow(follow.query(since: since)) {
            case .page(let page) where !isLost: response.body += contract.piece(of: request, page)
            case .nothing(let head, _) where !isLost:
                response.body += contract.heartbeat(of: request, movedTo: head.version > since ? head : nil)
            case .page, .nothing, .inJournal, .expired, .aboveHead:
                let state = try board.read(.pointer(follow.scope.place))
                response.body += contract.piece(of: request, reset: isLost ? .lost : .expired, state)
            }
        }
        return response
    }

    private func readPast(_ request: ReadRequest, _ version: Version) throws -> Reply {
        guard let path = board.path(to: version) else {
            return respond(.versionGone(oldest: position.oldest), request.requestID)
        }
        var value = try JSONValue(parsing: path.from.whole())
        for commit in path.commits { try value.apply(patch: JSONValue(parsing: commit.patch)) }
        let cursor = Cursor(Self.epoch, version)
        let snapshot = Snapshot(try model.state(from: value.text), of: model, at: cursor)
        return .now(
            contract.response(to: request, Reading(cursor: cursor, encoded: try snapshot.encoded(request.selection))))
    }

    private func follow(_ request: FollowRequest, _ number: Int, _ client: String) throws -> Reply {
        let position = position
        let since: Version
        switch request.since {
        case .now:
            return .now(contract.response(to: request, Self.nothing(at: position.head)))
        case .oldest: since = position.oldest
        case .never: return .now(try contract.initialDifference(to: request, in: board.head))
        case .cursor(let cursor):
            guard cursor.epoch == position.head.epoch else { return try lost(.lost, request) }
            since = cursor.version
        }
        switch board.follow(
            request.query(since: since), as: request.wait == nil ? nil : WaiterToken(UInt64(number)), client: client)
        {
        case .page(let page): return .now(contract.response(to: request, page))
        case .nothing(_, .parked):
            waiting[number] = .follow(request)
            return .waiting(number)
        case .nothing(_, .refused(let share)): return respond(.tooManyWaiters(share), request.requestID)
        case .nothing(let head, .ready): return .now(contract.response(to: request, Self.nothing(at: head)))
        case .expired, .inJournal: return try lost(.expired, request)
        case .aboveHead: return try lost(.lost, request)
        }
    }

    private func lost(_ code: LostCursor, _ request: FollowRequest) throws -> Reply {
        if case .difference = request.form {
            return .now(try contract.initialDifference(to: request, in: board.head))
        }
        return .now(
            contract.response(to: request, lost: code, position: position) {
                try board.head.encoded(.pointer(request.scope.place))?.bytes ?? []
            })
    }

    private func timeout(_ parked: Waiting, head: Cursor) throws -> Response {
        switch parked {
        case .read(let request):
            if let version = request.atLeast, head.version < version {
                return contract.aheadOfHead(request, head: head)
            }
            return contract.response(to: request, try board.read(request.selection))
        case .follow(let request): return contract.response(to: request, Self.nothing(at: head))
        }
    }

    private static func nothing(at head: Cursor) -> ChangesPage {
        ChangesPage(commits: [], next: head.version, isMore: false, head: head)
    }
}
