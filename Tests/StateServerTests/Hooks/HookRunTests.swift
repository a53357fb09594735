import Foundation
import StateHTTP
import StateJSON
import Testing

@testable import StateServer
@testable import StateStore
@testable import TestSupport

@Suite("A hook's deliveries")
struct HookRunTests {
    private let epoch = Epoch("storekeeperdemoa") ?? .random()
    private let now = Instant(nanoseconds: 0)
    private let view: HookView
    private var entry = HookEntry(
        url: "https://example.org/", types: [], path: nil, Grant(read: ["*"], others: true), since: nil)
    private var run: HookRun

    init() throws {
        view = Contract(catalogue: try CompiledDomain(Demo()).catalogue).hookView(
            entry.grant, subject: entry.subject, path: nil, types: [])
        run = HookRun(entry, view, HookProgress(id: entry.id, cursor: Cursor(epoch, 0).description))
    }

    private func commit(_ version: Version) -> Commit {
        Commit(
            version: version, time: Timestamp(milliseconds: Int64(version) * 1000), id: "a\(version)",
            types: ["counter/add"], action: [], patch: [])
    }

    private mutating func read(_ versions: [Version], through end: Version) {
        let page = ChangesPage(
            commits: versions.map(commit), next: end, isMore: false, latest: Cursor(epoch, end))
        run.take(page)
        advance()
    }

    /// The hook sees the commits of odd versions.
    private mutating func advance() {
        run.advance(in: epoch) { $0.version.isMultiple(of: 2) ? nil : Array("\($0.version)".utf8) }
    }

    private mutating func fail() -> Bool {
        run.fail("500", at: now, date: Timestamp(milliseconds: 1_767_323_045_678), random: 1)
    }

    @Test("the ID of a delivery stays the same, and has no dot")
    mutating func id() throws {
        read([1], through: 1)
        let id = try #require(run.delivery?.id)
        _ = run.begin()
        _ = fail()

        #expect(run.delivery?.id == id)
        #expect(id == "\(entry.id)_storekeeperdemoa_1" && !id.contains("."))
    }

    @Test("a failure is tried again behind pauses that double up to an hour, and the progress stays")
    mutating func failures() throws {
        read([1, 3], through: 3)

        for (attempt, seconds) in [1, 2, 4, 8].enumerated() {
            _ = run.begin()
            let isFirst = fail()
            #expect(isFirst == (attempt == 0))
            #expect(!run.isDue(at: now + (.seconds(seconds) - .milliseconds(1))))
            #expect(run.isDue(at: now + .seconds(seconds)))
        }

        #expect(run.progress.failing?.attempts == 4)
        #expect(run.progress.failing?.next == "2026-01-02T03:04:13.678Z")
        #expect(run.cursor == Cursor(epoch, 0))
        #expect(HookProgress.pause(after: 12) == .seconds(2048))
        #expect(HookProgress.pause(after: 13) == .seconds(3600) && HookProgress.pause(after: 10_000) == .seconds(3600))
        let delivery = try #require(run.delivery)
        run.finish(delivery)
        #expect(run.progress.failing == nil && run.isDue(at: now))
    }

    private mutating func refuse(_ version: Version) {
        run.note(refused: "no", of: commit(version), at: Cursor(epoch, version))
    }

    /// Delivers the commits 1, 3 and 5, of which the answers to 1 and 3 are refused.
    private mutating func deliverWithRefusals() {
        read([1, 3, 5], through: 5)
        while let delivery = run.delivery {
            _ = run.begin()
            run.finish(delivery)
            if delivery.cursor.version < 5 { refuse(delivery.cursor.version) }
            advance()
        }
    }

    private mutating func order(_ from: Cursor?, keptAfter oldest: Version = 0) {
        entry.resend = .init(from: from?.description, time: "order \(from?.description ?? "")")
        run.replace(by: entry, view)
        let isOrder = run.resume(keptAfter: oldest, through: 9)
        #expect(isOrder)
    }

    @Test("a refusal stays until an operator lets the hook go on, which happens once for each order")
    mutating func resume() throws {
        deliverWithRefusals()
        let refusals = try #require(run.progress.refusals)
        #expect(refusals.count == 2 && refusals.first == Cursor(epoch, 1).description)
        #expect(refusals.newest == Cursor(epoch, 3).description)
        let before = run.progress

        order(Cursor(epoch, 1))
        #expect(run.cursor == Cursor(epoch, 0) && run.progress.refusals == nil && run.isDue(at: now))
        read([1, 3, 5], through: 5)
        #expect(run.delivery?.cursor.version == 1)
        run.finish(try #require(run.delivery))
        var isOrder = run.resume(keptAfter: 0, through: 9)
        #expect(!isOrder && run.cursor == Cursor(epoch, 1))
        // A server that starts has the order in the file, and the progress with or without it.
        var again = HookRun(entry, view, run.progress)
        isOrder = again.resume(keptAfter: 0, through: 9)
        #expect(!isOrder && again.cursor == Cursor(epoch, 1))
        again = HookRun(entry, view, before)
        isOrder = again.resume(keptAfter: 0, through: 9)
        #expect(isOrder && again.cursor == Cursor(epoch, 0))
    }

    @Test("an order without a commit ends the list and the pause of a failure, and a later refusal is listed")
    mutating func resumeInPlace() throws {
        deliverWithRefusals()
        read([7], through: 7)
        _ = run.begin()
        _ = fail()
        #expect(!run.isDue(at: now))

        order(nil)

        #expect(run.progress.refusals == nil && run.isDue(at: now))
        #expect(run.delivery?.cursor.version == 7)
        refuse(7)
        run.replace(by: entry, view)
        #expect(run.progress.refusals?.count == 1)
    }

    @Test("a commit that is refused again is as old as before")
    mutating func refusedAgain() throws {
        deliverWithRefusals()
        order(Cursor(epoch, 1))
        #expect(run.progress.refusals == nil)

        deliverWithRefusals()

        #expect(run.progress.refusals?.since == "1970-01-01T00:00:01.000Z")
    }

    @Test("an order for a commit that is not there, or not kept, passes over no commit")
    mutating func resumeOfNothing() throws {
        deliverWithRefusals()
        read([7, 9], through: 9)
        let refusals = run.progress.refusals

        for (from, oldest) in [
            (Cursor(epoch, 11), 0), (Cursor(epoch, .max), 0), (Cursor(.random(), 1), 0),
            (Cursor(epoch, 1), 1), (Cursor(epoch, 0), 0),
        ] as [(Cursor, Version)] {
            order(from, keptAfter: oldest)
            #expect(run.cursor == Cursor(epoch, 5) && run.delivery?.cursor.version == 7, "\(from)")
            #expect(run.progress.refusals == refusals)
        }
    }

    @Test("a failure is over when a later read has gone on")
    mutating func failureIsOver() throws {
        // The reading fails, and then it does not.
        _ = run.begin()
        _ = fail()
        #expect(run.progress.failing?.cursor == Cursor(epoch, 0).description)
        read([], through: 2)
        #expect(run.progress.failing == nil)
    }

    @Test("a commit that an operator passes over is not sent again, under way or not, and no other is passed over")
    mutating func passOver() throws {
        read([1, 3], through: 3)
        _ = run.begin()
        _ = fail()
        _ = run.begin()

        order(Cursor(epoch, 2))

        #expect(run.attempt == nil && run.cursor == Cursor(epoch, 1) && run.progress.failing == nil)
        read([3], through: 3)
        #expect(run.delivery?.cursor.version == 3)
        run.replace(by: entry, view)
        #expect(run.delivery?.cursor.version == 3)
        // The newest one, too.
        order(Cursor(epoch, 10))
        #expect(run.cursor == Cursor(epoch, 9) && run.delivery == nil)
    }

    @Test("commits that were read for other types are read again")
    mutating func change() {
        read([1, 3], through: 9)
        entry.types = ["tasks/*"]

        run.replace(by: entry, view)
        advance()

        #expect(run.delivery == nil && run.needsCommits == 0)
    }

    @Test("numbers of a file that no program has written end no process", arguments: [Int.min, -1, .max])
    mutating func damagedNumbers(number: Int) throws {
        let cursor = Cursor(epoch, 0).description
        run = HookRun(
            entry, view,
            HookProgress(
                id: entry.id, cursor: cursor,
                failing: .init(cursor: cursor, attempts: number, since: "", next: "", reason: ""),
                refusals: .init(count: number, first: cursor, since: "", newest: cursor, reason: "")))

        let isFirst = fail()
        run.note(refused: "x", of: commit(1), at: Cursor(epoch, 1))
        var budget = HookBudget([.init(id: "a", actions: number), .init(id: "a", actions: number)])
        let isSpent = budget.spend(1, of: "a", max: 20)

        #expect(!isFirst && run.progress.refusals?.first == cursor)
        #expect((HookProgress.pause(after: number) / .seconds(1)).magnitude <= 3600)
        #expect(isSpent == (number < 0))
    }
}

@Suite("The files of hooks")
struct HookFileTests {
    private final class Place {
        let path = FileManager.default.temporaryDirectory.appending(path: "hooks-\(UUID().uuidString)").path
        var file: HookFile { HookFile(SharedFile(path: path + "/hooks.json", name: HookEntry.name)) }
        var progress: HookProgressFile {
            HookProgressFile(SharedFile(path: path + "/hooks-progress.json", name: HookProgressFile.name))
        }

        deinit { try? FileManager.default.removeItem(atPath: path) }
    }

    private func entry(_ url: String = "https://example.org/") -> HookEntry {
        HookEntry(url: url, types: [], path: nil, Grant(read: ["*"], others: true), since: nil)
    }

    @Test("a hook is kept with its secret in a file of its owner alone, changed and deleted")
    func kept() throws {
        let (place, entry) = (Place(), entry())

        try place.file.change { $0 = [entry] }
        try place.file.change(entry.id) { (entry: inout HookEntry) throws(SettingsFault) in entry.paused = "410" }

        let mode = try FileManager.default.attributesOfItem(atPath: place.path + "/hooks.json")[.posixPermissions]
        #expect(mode as? Int == 0o600)
        #expect(try place.file.read()?.map(\.paused) == ["410"])
        try place.file.remove(entry.id)
        #expect(try place.file.read() == [])
        #expect(throws: SettingsFault.self) { try place.file.remove(entry.id) }
    }

    @Test(
        "a hook with a fault is refused",
        arguments: [
            { $0.url = "example.org" }, { $0.url = "ftp://example.org/" }, { $0.url = "https:///hook" },
            { $0.url = "https://kim:secret@example.org/" }, { $0.url = "https://example.org:x/" },
            { $0.url = "https://example.org/a b" }, { $0.grant.read = [] }, { $0.grant.read = ["tasks"] },
            { $0.path = "tasks" }, { $0.types = ["a*b"] }, { $0.secrets = [] }, { $0.secrets = ["secret"] },
            { $0.id = "a/b" },
        ] as [@Sendable (inout HookEntry) -> Void])
    func faults(change: @Sendable (inout HookEntry) -> Void) {
        var changed = entry()
        #expect(changed.fault == nil)

        change(&changed)

        #expect(changed.fault != nil)
    }

    @Test("http is insecure but for an address of this machine")
    func insecure() {
        for url in ["http://127.0.0.1:1/", "http://localhost/x", "http://[::1]:8080/", "https://example.org"] {
            #expect(!HookURL.isInsecure(url), "\(url)")
        }
        for url in ["http://example.org/", "http://127.example.org/", "http://10.0.0.1:80", "http://[fe80::1]/"] {
            #expect(HookURL.isInsecure(url), "\(url)")
        }
    }

    @Test("a hook that another server has brought further does not go back")
    func progress() throws {
        let place = Place()
        let epoch = Epoch.random()
        func content(_ version: Version) -> HookProgressFile.Content {
            .init(
                hooks: [HookProgress(id: "h1", cursor: Cursor(epoch, version).description)],
                roots: [.init(id: "r", actions: 11)])
        }

        try place.progress.write(content(7), isShared: true)
        try place.progress.write(content(5), isShared: true)
        #expect(try place.progress.read() == content(7))
        try place.progress.write(content(8), isShared: true)
        #expect(try place.progress.read() == content(8))

        // A hook that an operator has sent back is behind, here or on the other server.
        var sentBack = content(2)
        sentBack.hooks[0].resent = "2026-11-27T15:00:00Z"
        try place.progress.write(sentBack, isShared: true)
        #expect(try place.progress.read() == sentBack)
        try place.progress.write(content(9), isShared: true)
        #expect(try place.progress.read() == sentBack)
        // Alone on a journal that an older copy has taken the place of, it does.
        try place.progress.write(content(3), isShared: false)
        #expect(try place.progress.read() == content(3))
    }

    @Test("the answers to one cascade have a budget, which survives a restart")
    func budget() {
        var budget = HookBudget()
        for _ in 0..<19 { _ = budget.spend(1, of: "a", max: 20) }
        let all = budget.spend(20, of: "b", max: 20)
        #expect(all)

        budget = HookBudget(budget.lasting)

        let spent = [(2, "a"), (1, "a"), (1, "a"), (1, "b"), (1, "c")].map { budget.spend($0, of: $1, max: 20) }
        #expect(spent == [false, true, false, false, true])
    }

    @Test("an ID that is used again begins a cascade with a budget of its own, and a repeated delivery does not")
    func budgetOfAnID() {
        var budget = HookBudget()
        func spend(_ actions: Int, begunAt version: Version? = nil) -> Bool {
            budget.spend(actions, of: "a", begunAt: version, max: 20)
        }

        let first = [spend(15, begunAt: 1), spend(5), spend(1), spend(1, begunAt: 1)]
        let second = [spend(15, begunAt: 7), spend(5, begunAt: 1), spend(1)]
        budget = HookBudget(budget.lasting)
        let later = [spend(1, begunAt: 7), spend(20, begunAt: 8), spend(1)]

        #expect(first == [true, true, false, false])
        #expect(second == [true, true, false])
        #expect(later == [false, true, false])
    }
}
