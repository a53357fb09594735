import Dispatch
import Glibc
import Synchronization
import Testing

@testable import StateJSON
@testable import StateStore

/// Texts of owners, with views of some of them.
private struct OwnedTexts: Domain {
    struct State: StateType { var list = List() }
    struct List: StateType, Codable { var texts: [String: [String]] = [:] }
    struct Write: Action {
        static let type = "notes/write"
        var owner: String
        var text: String
    }
    struct By: Codable { var owner: String; var first: Int? }

    /// OwnedTexts what is evaluated, and can keep an evaluation from its end.
    let evaluate: @Sendable (String) -> Void

    var reducer: some Reducer<State> {
        Slice("list", \.list) {
            On(Write.self) { state, action in state.texts[action.owner, default: []].append(action.text) }
            View("by", parameters: By.self) { [evaluate] state, by in
                evaluate(by.owner)
                return Array(state.texts[by.owner, default: []].prefix(by.first ?? .max))
            }
            View("mine") { state, context in
                context.subject.flatMap { state.texts[$0] } ?? []
            }
            View("ours", parameters: By.self) { state, by, context in
                state.texts.filter { [by.owner, context.subject].contains($0.key) }.values.joined().sorted()
            }
        }
    }
}

@Suite("Views with parameters and subjects", .timeLimit(.minutes(5)))
struct ViewArgumentsTests {
    private func store(_ evaluate: @escaping @Sendable (String) -> Void = { _ in }) throws -> Store<OwnedTexts.State> {
        let store = UntypedStore(
            domain: try CompiledDomain(OwnedTexts(evaluate: evaluate)), now: { Timestamp(milliseconds: 0) }
        ).typed(OwnedTexts.State.self)
        for (owner, text) in [("ann", "a"), ("ben", "b"), ("ann", "c")] {
            try store.dispatch(OwnedTexts.Write(owner: owner, text: text))
        }
        return store
    }

    private static func by(_ owner: String) -> Selection {
        .view("list.by", ViewArguments(parameters: ["owner": .string(owner)]))
    }

    @Test("in process a view is given its parameters and a subject; others than it takes give nil")
    func inProcess() throws {
        let store = try store()

        #expect(store.view("list.by", parameters: OwnedTexts.By(owner: "ann"), as: [String].self) == ["a", "c"])
        #expect(store.view("list.mine", subject: "ben", as: [String].self) == ["b"])
        #expect(store.view("list.by", parameters: ["first": 1], as: [String].self) == nil)
        #expect(store.view("list.by", as: [String].self) == nil)
        #expect(
            store.view("list.by", parameters: OwnedTexts.By(owner: "ann"), subject: "ben", as: [String].self) == [
                "a", "c",
            ])
    }

    @Test("selections are the same for parameters in any order, and others for another value, spelling or subject")
    func identity() {
        let one = ViewArguments(parameters: ["owner": "ann", "first": 1], subject: "ann")

        #expect(one == ViewArguments(parameters: ["first": 1, "owner": "ann"], subject: "ann"))
        for other in [
            ViewArguments(parameters: ["owner": "ann", "first": 2], subject: "ann"),
            ViewArguments(parameters: ["owner": "ann", "first": "1"], subject: "ann"),
            ViewArguments(parameters: ["owner": "ann", "first": 1], subject: "ben"),
            ViewArguments(parameters: ["owner": "ann", "first": 1]), ViewArguments(subject: "ann"), .none,
        ] { #expect(one != other) }
        // Swift takes the two spellings of the letter for equal, and they are two subjects.
        #expect(ViewArguments(subject: "ren\u{E9}") != ViewArguments(subject: "rene\u{301}"))
        #expect(
            TransactionIdentity(view: "v", ViewArguments(subject: "ann"))
                != TransactionIdentity(view: "v", ViewArguments(subject: "ben")))
        #expect(TransactionIdentity(view: "v", .none) == TransactionIdentity(view: "v"))
    }

    @Test("no cache gives a subject what was computed for another one, whatever the version")
    func subjects() throws {
        let store = try store()
        var generator = SystemRandomNumberGenerator()
        let names = ["ann", "ben", "rene\u{301}", "ren\u{E9}"]
        var texts: [[UInt8]: [String]] = [Array("ann".utf8): ["a", "c"], Array("ben".utf8): ["b"]]

        for number in 0..<300 {
            let owner = try #require(names.randomElement(using: &generator))
            if Bool.random(using: &generator), owner.utf8.count == 3 {
                try store.dispatch(OwnedTexts.Write(owner: owner, text: "\(number)"))
                texts[Array(owner.utf8), default: []].append("\(number)")
            }
            let selection = Selection.view("list.mine", ViewArguments(subject: owner))
            let quick = try store.hub.readQuickly(selection)
            let read = try quick ?? store.hub.read(selection)
            #expect(
                text(read.encoded?.bytes) == text(try JSON.encode(texts[Array(owner.utf8)] ?? [])), "\(owner) \(number)"
            )
        }
    }

    @Test("at most one evaluation runs for the same arguments, and the others have its value")
    func oneAtATime() throws {
        let counts = Mutex((running: [String: Int](), most: [String: Int](), evaluations: 0, readers: 0))
        let store = try store { owner in
            counts.withLock { counts in
                counts.running[owner, default: 0] += 1
                counts.most[owner] = max(counts.most[owner] ?? 0, counts.running[owner] ?? 0)
                counts.evaluations += 1
            }
            // Another reader is there before the evaluation ends, however busy the machine is.
            let end = ContinuousClock.now + .seconds(2)
            while counts.withLock({ $0.readers < 2 }), ContinuousClock.now < end { usleep(100) }
            usleep(5000)
            counts.withLock { $0.running[owner, default: 0] -= 1 }
        }

        DispatchQueue.concurrentPerform(iterations: 60) { index in
            if index.isMultiple(of: 10) { _ = try? store.dispatch(OwnedTexts.Write(owner: "cid", text: "\(index)")) }
            counts.withLock { $0.readers += 1 }
            _ = try? store.latest.encoded(Self.by("ann"))
            counts.withLock { $0.readers -= 1 }
        }

        counts.withLock { counts in
            #expect(counts.most == ["ann": 1])
            #expect(counts.evaluations < 60)
        }
    }
}

@Suite("Watched views with arguments")
struct WatchedViewTests {
    private final class Pool: Sendable {
        let work = Mutex<[(client: String, piece: @Sendable () -> Void)]>([])
        /// The clients that were to have the next turn.
        let favoured = Collection<String>()

        var clients: [String] { work.withLock { $0.map(\.client) } }
        func runAll() { while let next = work.withLock({ $0.isEmpty ? nil : $0.removeFirst() }) { next.piece() } }
    }

    private struct Scene {
        let queue = ManualQueue()
        let pool = Pool()
        let store: Store<OwnedTexts.State>
        let driver: HubDriver
        let evaluated = Collection<String>()

        /// - Parameter time: the processor time of an evaluation.
        init(viewsMax: Int = 100, taking time: Duration = .milliseconds(6)) throws {
            var queues = queue.queues
            queues.slow = { [pool] client, _, isFirst, piece in
                if isFirst { pool.favoured.add(client) }
                if let piece { pool.work.withLock { $0.append((client, piece)) } }
            }
            store = UntypedStore(
                domain: try CompiledDomain(OwnedTexts { [evaluated] in evaluated.add($0) }),
                now: { Timestamp(milliseconds: 0) }, watchLimits: WatchLimits(watchesMax: 20_000, viewsMax: viewsMax),
                processorTime: { [evaluated] in Instant(nanoseconds: 0) + time * evaluated.count }, queues: queues
            ).typed(OwnedTexts.State.self)
            driver = HubDriver(hub: store.hub)
        }

        func wait(_ number: Int, _ client: String, for owner: String, tag: String? = nil) throws -> Watching {
            try driver.park(
                number, client: client, at: .view("list.by", ViewArguments(parameters: ["owner": .string(owner)])),
                until: .otherThan(.tags(tag.map { [$0] } ?? [])))
        }

        func write(_ owner: String, _ text: String, by client: String? = nil) throws {
            store.enqueue(
                PendingTransaction(.of(OwnedTexts.Write(owner: owner, text: text)), client: client) { _ in })
            store.flushNow()
        }

        /// Has the views of owners watched, each by a client of that name, and evaluated once.
        func watch(_ owners: [String]) throws {
            let tag = Encoded(Array("[]".utf8)).tag
            for (number, owner) in owners.enumerated() { _ = try wait(number, owner, for: owner, tag: tag) }
            queue.runAll()
            pool.runAll()
            _ = evaluated.takeAll()
        }
    }

    @Test("the pool computes a watched view once, on the newest state, however many commits and clients there are")
    func coalesced() throws {
        let scene = try Scene()
        let tag = Encoded(Array("[]".utf8)).tag
        for number in 1...20 { #expect(try scene.wait(number, "c\(number)", for: "ann", tag: tag).name == "parked") }
        scene.queue.runAll()
        #expect(scene.evaluated.values.isEmpty, "no pass makes the first evaluation")
        scene.pool.runAll()
        #expect(scene.driver.log.takeAll().isEmpty)
        #expect(scene.evaluated.takeAll() == ["ann"])

        for text in ["a", "b", "c"] {
            try scene.write("ann", text)
            scene.queue.runAll()
        }
        #expect(Set(scene.pool.clients).count == scene.pool.clients.count, "it waits once in the turn of a client")
        #expect(scene.pool.clients.count <= 8)
        #expect(scene.evaluated.values.isEmpty, "no pass evaluates what takes long")
        scene.pool.runAll()
        let deliveries = scene.driver.log.takeAll()

        #expect(scene.evaluated.values == ["ann"])
        #expect(deliveries.flatMap(\.numbers).count == 20)
        #expect(deliveries.allSatisfy { text($0.reading?.encoded?.bytes) == #"["a","b","c"]"# })
    }

    @Test("a pass evaluates the short views for five milliseconds, in turn by client; the writer's comes first")
    func inPass() throws {
        let scene = try Scene(taking: .milliseconds(1))
        let owners = (0..<12).map { "o\($0)" }
        try scene.watch(owners)

        try scene.write("o7", "a", by: "o7")
        scene.queue.runAll()

        #expect(scene.evaluated.values.count == 5)
        #expect(scene.evaluated.values.first == "o7")
        #expect(scene.driver.log.takeAll().flatMap(\.numbers) == [7])
        #expect(Set(scene.evaluated.values + scene.pool.clients) == Set(owners))
        #expect(scene.pool.clients.count == 7)
        #expect(scene.pool.favoured.values.isEmpty)
    }

    @Test("the watches of one client hold those of another in no pass", arguments: [true, false])
    func manyOfOne(isWriter: Bool) throws {
        let scene = try Scene(taking: .milliseconds(1))
        let tag = Encoded(Array("[]".utf8)).tag
        for number in 0..<40 { _ = try scene.wait(number, "hostile", for: "h\(number)", tag: tag) }
        _ = try scene.wait(40, "ann", for: "ann", tag: tag)
        scene.queue.runAll()
        scene.pool.runAll()
        _ = scene.evaluated.takeAll()

        try scene.write("ann", "a", by: isWriter ? "hostile" : nil)
        scene.queue.runAll()

        #expect(scene.evaluated.values.contains("ann"))
        #expect(scene.driver.log.takeAll().flatMap(\.numbers) == [40])
    }

    @Test("where an evaluation takes long, the client that has written has the next turn")
    func writer() throws {
        let scene = try Scene()
        try scene.watch(["ann", "ben", "cid"])

        try scene.write("cid", "a")
        scene.queue.runAll()
        #expect(scene.pool.favoured.values.isEmpty)
        try scene.write("ben", "a", by: "ben")
        scene.queue.runAll()

        #expect(scene.pool.favoured.values == ["ben"])
        #expect(Set(scene.pool.clients) == ["ann", "ben", "cid"], "each waits once")
        #expect(scene.pool.clients.count == 3)
    }

    @Test("what several clients watch is evaluated in the turn of the first of them, once")
    func firstTurn() throws {
        let scene = try Scene()
        let tag = Encoded(Array("[]".utf8)).tag
        for number in 0..<1000 { _ = try scene.wait(number, "hostile", for: "ann", tag: tag) }
        _ = try scene.wait(1000, "quiet", for: "ann", tag: tag)

        for text in ["a", "b", "c"] {
            try scene.write("ann", text)
            scene.queue.runAll()
            #expect(scene.pool.clients.sorted() == ["hostile", "quiet"], "it waits once in the turn of each")
        }
        scene.pool.work.withLock { work in work.firstIndex { $0.client == "quiet" }.map { work.remove(at: $0) } }?
            .piece()
        #expect(scene.driver.log.takeAll().flatMap(\.numbers).count == 1001)
        scene.pool.runAll()

        #expect(scene.evaluated.values == ["ann"])
        #expect(scene.driver.log.takeAll().isEmpty)
    }

    @Test("the evaluation counts for a client that waits for it")
    func share() throws {
        let scene = try Scene()
        _ = try scene.wait(1, "ann's", for: "ann", tag: "x")
        _ = try scene.wait(2, "ben's", for: "ben", tag: "x")
        scene.queue.runAll()

        #expect(Set(scene.pool.clients) == ["ann's", "ben's"])
    }

    @Test("as many different views are watched as may be: another one is refused, the same one is not")
    func limit() throws {
        let scene = try Scene(viewsMax: 2)
        let tag = Encoded(Array("[]".utf8)).tag
        #expect(try scene.wait(1, "a", for: "ann", tag: tag).name == "parked")
        #expect(try scene.wait(2, "a", for: "ben", tag: tag).name == "parked")

        #expect(try scene.wait(3, "a", for: "cid", tag: tag).name == "refused(StateStore.WatchRefusal.views)")
        #expect(try scene.wait(4, "b", for: "ben", tag: tag).name == "parked")
        _ = scene.driver.leave(2)
        #expect(try scene.wait(5, "a", for: "cid", tag: tag).name == "refused(StateStore.WatchRefusal.views)")
        _ = scene.driver.leave(4)
        #expect(try scene.wait(6, "a", for: "cid", tag: tag).name == "parked")
    }
}

@Suite("Parameters of views")
struct ViewParametersTests {
    private func fault(_ properties: String, _ further: String = "") throws -> String? {
        let text = "{\"type\":\"object\",\"properties\":\(properties)\(further)}"
        return ViewParameters.fault(in: try JSONValue(parsing: Array(text.utf8)), ofView: "open")
    }

    @Test("each name of the contract is refused, and its neighbour is taken")
    func reserved() throws {
        for name in ViewParameters.reservedNames {
            let sentence = try #require(try fault("{\"\(name)\":{\"type\":\"string\"}}"))
            #expect(sentence.contains("\"open\"") && sentence.contains("\"\(name)\""))
            #expect(
                try fault("{\"\(name)s\":{\"type\":\"string\"}}") == nil
                    || ViewParameters.reservedNames.contains("\(name)s"))
        }
        #expect(try fault(#"{"_new":{"type":"string"}}"#) != nil)
        #expect(try fault(#"{"new_":{"type":"string"}}"#) == nil)
        #expect(try fault(#"{"":{"type":"string"}}"#) != nil)
    }

    @Test("a parameter is a text, a number, a whole number or a boolean")
    func kinds() throws {
        for schema in [
            #"{"type":"string"}"#, #"{"type":["integer","null"]}"#, #"{"enum":["a",1]}"#, #"{"const":true}"#, "true",
            #"{"anyOf":[{"type":"number"},{"type":"null"}]}"#, "{}",
        ] { #expect(try fault("{\"it\":\(schema)}") == nil, "\(schema)") }
        for schema in [#"{"type":"array"}"#, #"{"type":"null"}"#, #"{"enum":[null]}"#, ##"{"$ref":"#/it"}"##] {
            #expect(try fault("{\"it\":\(schema)}")?.contains("address") == true, "\(schema)")
        }
        #expect(try fault("{}", #","required":["a"]"#)?.contains("\"a\"") == true)
        #expect(ViewParameters.fault(in: ["type": "array"], ofView: "open") != nil)
        #expect(ViewParameters.fault(in: true, ofView: "open") != nil)
    }
}
