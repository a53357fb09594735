import TestSupport
import Testing

@testable import StateJSON
@testable import StateStore

/// What a client of a state stream keeps.
private struct Materialized: Equatable {
    var values: [String: JSONValue] = [:]

    /// Everything that a snapshot has, read in pages of about so many bytes.
    init(_ snapshot: Snapshot, _ parts: [StatePart], in scope: JSONPointer = .root, bytesMax: Int = .max) throws {
        var (start, isMore) = (0, true)
        while isMore {
            let page = try EntityPage(of: snapshot, parts, in: scope, from: start, bytesMax: bytesMax)
            for entity in page.entities {
                let name = Self.name(entity.part, entity.name)
                #expect(values[name] == nil, "\(name) comes twice")
                values[name] = try JSONValue(parsing: entity.value)
            }
            #expect(page.end == start + page.entities.count)
            (start, isMore) = (page.end, page.isMore)
        }
    }

    private static func name(_ part: Int, _ name: EntityName) -> String {
        switch name {
        case .whole: "\(part)"
        case .member(let key): "\(part) \(key.text)"
        }
    }

    mutating func apply(_ change: EntityChange) {
        let name = Self.name(change.part, change.name)
        #expect(values[name] == change.before, "\(name)")
        #expect(change.before != change.after, "\(name)")
        values[name] = change.after
    }
}

extension EntityChanges {
    fileprivate init(of parts: [StatePart], in scopes: [JSONPointer], at snapshot: Snapshot) {
        self.init(of: parts, in: PointerFilter(.root, in: PointerSet(scopes)), at: snapshot)
    }
}

@Suite("The entities of a state")
struct EntityChangesTests {
    private let domain: CompiledDomain
    private var core: Core
    private var parts: [StatePart] { domain.catalogue.parts }

    init() throws {
        domain = try CompiledDomain(Sample())
        core = try Core.sample()
    }

    private var snapshot: Snapshot {
        core.latest
    }

    private static func commit(_ version: Version, _ patch: String) -> Commit {
        Commit(
            version: version, time: Timestamp(milliseconds: 0), id: "a", types: ["a"], action: [],
            patch: Array(patch.utf8))
    }

    @Test("a domain's parts are its tables, their orders, its fields and its plain slices")
    func declaredParts() {
        #expect(parts.map(\.pointer.description) == ["/count", "/items/entities", "/items/ids", "/items/marked"])
        #expect(parts.map(\.kind) == [.value, .entities(ids: "/items/ids"), .order, .field])
    }

    @Test("the changes of commits lead from what one version has to what each later one has", arguments: 0..<20)
    mutating func model(seed: UInt64) throws {
        var generator = SplitMix(seed: seed)
        var kept = try Materialized(snapshot, parts)
        var changes = EntityChanges(of: parts, in: [.root], at: snapshot)

        for _ in 0..<60 {
            let actions = (0..<Int.random(in: 1...4, using: &generator)).map { _ in
                Sample.anything(using: &generator)
            }
            let turn = core.run([Transaction(actions.map { .init($0) }, form: .batch)])
            for commit in turn.commits { for change in try changes.apply(commit) { kept.apply(change) } }
            #expect(try kept == Materialized(snapshot, parts))
            if changes.version == core.version, Bool.random(using: &generator) { changes.renew(snapshot) }
        }
        #expect(core.version > 20)
    }

    @Test("pages of any size hold what one page holds", arguments: [1, 7, 40, 1000])
    mutating func pages(bytesMax: Int) throws {
        for id in 0..<20 { core.run(Sample.Put(id: id, name: "\(id)")) }
        core.run(Sample.Move(id: 7, position: 0))

        #expect(try Materialized(snapshot, parts, bytesMax: bytesMax) == Materialized(snapshot, parts))
        #expect(try Materialized(snapshot, parts).values.count == 1 + 20 + 20 + 1)
    }

    @Test("a scope has the parts inside it only")
    mutating func scope() throws {
        core.run(Sample.Put(id: 1, name: "a"))
        var changes = EntityChanges(of: parts, in: ["/count"], at: snapshot)

        let turn = core.run(Sample.Both(id: 3))

        #expect(try changes.apply(#require(turn.commits.first)).map(\.part) == [0])
        #expect(try Materialized(snapshot, parts, in: "/items").values.count == 3)
    }

    @Test("a commit that touches what counts, and something that commits before it have changed, fits all the same")
    mutating func leftOut() throws {
        core.run(Sample.Put(id: 1, name: "a"))
        var changes = EntityChanges(of: parts, in: ["/items/entities/1", "/items/marked/1"], at: snapshot)
        // Nothing of this counts, so it is left out.
        core.run(Sample.Put(id: 2, name: "b"))

        let turn = core.run([
            Transaction([.init(Sample.Remove(id: 2)), .init(Sample.Put(id: 1, name: "c"))], form: .batch)
        ])
        let marking = core.run([Transaction([.init(Sample.Both(id: 5)), .init(Sample.Both(id: 6))], form: .batch)])

        #expect(try changes.apply(#require(turn.commits.first)).map(\.name) == [.member(JSONKey("1"))])
        #expect(try changes.apply(#require(marking.commits.first)).map(\.after) == [[5, 6]])
    }

    @Test("entities that are not visible count for no position")
    mutating func invisible() throws {
        for id in 0..<20 { core.run(Sample.Put(id: id, name: "\(id)")) }
        let isVisible = { (pointer: JSONPointer) in pointer.tokens.last == "7" || pointer.tokens.last == "9" }

        let first = try EntityPage(of: snapshot, parts, in: .root, from: 0, bytesMax: 1, isVisible: isVisible)
        let second = try EntityPage(of: snapshot, parts, in: .root, from: first.end, bytesMax: 1, isVisible: isVisible)

        #expect((first.end, first.isMore, second.end, second.isMore) == (1, true, 2, false))
        #expect((first.entities + second.entities).map(\.name) == [.member(JSONKey("7")), .member(JSONKey("9"))])
    }

    @Test(
        "an operation around parts changes each entity that differs",
        arguments: [
            (
                #"[{"op":"replace","path":"","value":{"count":{"value":1},"items":{"entities":{"2":{"name":"b","size":0}},"ids":[2],"marked":[]}}}]"#,
                5
            ),
            (
                #"[{"op":"replace","path":"/items/entities","value":{"1":{"name":"a","size":0},"2":{"name":"b","size":0}}}]"#,
                1
            ),
            (#"[{"op":"replace","path":"/items","value":{"entities":{},"ids":[],"marked":[1]}}]"#, 3),
            (#"[{"op":"remove","path":"/items"}]"#, 3),
            (#"[{"op":"replace","path":"/items/ids","value":[1]}]"#, 0),
        ])
    mutating func around(patch: String, count: Int) throws {
        core.run(Sample.Put(id: 1, name: "a"))
        var changes = EntityChanges(of: parts, in: [.root], at: snapshot)

        let found = try changes.apply(Self.commit(core.version + 1, patch))

        #expect(found.count == count, "\(found)")
    }

    @Test("one changed member of a large plain slice is found without a search", .timeLimit(.minutes(1)))
    func members() throws {
        let members = (0..<30_000).map { "\"k\($0)\":\($0)" }.joined(separator: ",")
        var changes = EntityChanges(of: parts, in: [.root], at: snapshot)

        let all = try changes.apply(Self.commit(1, #"[{"op":"replace","path":"/count","value":{\#(members)}}]"#))
        let one = try changes.apply(Self.commit(2, #"[{"op":"replace","path":"/count/k7","value":0}]"#))

        // The member of the slice before the commits is gone.
        #expect(all.count == 30_001)
        #expect(one.map(\.name) == [.member(JSONKey("k7"))] && one.map(\.after) == [0])
    }

    @Test("a commit whose patch does not fit the state is an error")
    mutating func mismatch() {
        var changes = EntityChanges(of: parts, in: [.root], at: snapshot)

        #expect(throws: PatchMismatch.self) {
            try changes.apply(Self.commit(1, #"[{"op":"replace","path":"/items/entities/9/name","value":"x"}]"#))
        }
    }

    @Test("an insertion, a removal and a move change the links around them only")
    func links() throws {
        func changed(_ operations: [(String, String, JSONValue?)]) -> [String: String] {
            var order = EntityOrder([1, 2, 3, 4, 5])
            var links: [String: String] = [:]
            for (operation, token, value) in operations {
                order.apply(operation, [token], value) { key, _, after in links[key] = text(after?.text) ?? "gone" }
            }
            return links
        }
        let (first, after) = (#"{"after":null}"#, { (id: Int) in #"{"after":"\#(id)"}"# })

        #expect(changed([("add", "0", 9)]) == ["9": first, "1": after(9)])
        #expect(changed([("add", "5", 9)]) == ["9": after(5)])
        #expect(changed([("remove", "0", nil)]) == ["1": "gone", "2": first])
        #expect(changed([("remove", "4", nil)]) == ["5": "gone"])
        #expect(
            changed([("remove", "3", nil), ("add", "1", 4)]) == ["4": after(1), "5": after(3), "2": after(4)])
    }
}
