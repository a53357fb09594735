import TestSupport
import Testing

@testable import StateJSON

/// Values that are encoded one after the other, and the patches between their texts.
@Suite("Differences of values")
struct ValueDifferenceTests {
    /// Fields with gaps between them, strings short and long, parts that are empty at times.
    struct Task: Codable {
        struct Place: Codable {
            var isNear: Bool
            var x: Double
            var name: String?
        }
        enum Level: String, Codable { case low, high }
        var isDone = false
        var id: Int
        var title: String
        var level = Level.low
        var weight: Float = 0
        var due: Double?
        var tags: [String] = []
        var counts: [String: Int] = [:]
        var place: Place?
    }

    enum Step: Codable, Equatable { case idle, failed(String) }

    struct State: Codable {
        var filter = "all"
        var tasks: [Task] = []
        var steps: [Step] = []
        var names: [String?] = []
        var numbers: [Int] = []
        var byKey: [String: [Task]] = [:]
        var groups: [[Task]] = []
    }

    static func task(_ id: Int, _ generator: inout SplitMix) -> Task {
        let words = ["é", "e\u{301}", "", "a title that is too long to lie in the string itself", "\"\\\u{1}", "x"]
        func word() -> String { words[Int.random(in: 0..<words.count, using: &generator)] }
        return Task(
            isDone: .random(using: &generator), id: id, title: word(), level: .random(using: &generator) ? .low : .high,
            weight: [0, -0.0, 0.5].randomElement(using: &generator) ?? 1, due: .random(using: &generator) ? 2.5 : nil,
            tags: .random(using: &generator) ? [word()] : [], counts: .random(using: &generator) ? [word(): id] : [:],
            place: .random(using: &generator) ? .init(isNear: true, x: 1, name: word()) : nil)
    }

    /// Changes a list of any kind: one element, some, the order, the length.
    static func change<Element>(
        _ list: inout [Element], _ generator: inout SplitMix, _ new: (Int, inout SplitMix) -> Element
    ) {
        let index = list.isEmpty ? 0 : Int.random(in: 0..<list.count, using: &generator)
        switch Int.random(in: 0..<8, using: &generator) {
        case 0: list = (0..<Int.random(in: 28..<80, using: &generator)).map { new($0, &generator) }
        case 1 where !list.isEmpty: list.remove(at: index)
        case 2: list.insert(new(index, &generator), at: index)
        case 3 where !list.isEmpty: list.swapAt(index, list.count - 1)
        case 4 where !list.isEmpty: list.removeSubrange(index..<min(list.count, index + 5))
        case 5: list += [new(list.count, &generator)]
        case 6 where !list.isEmpty: list.append(list[index])
        case _ where !list.isEmpty: list[index] = new(index, &generator)
        default: break
        }
    }

    @Test("a session that is used again encodes as a new one does", arguments: 0..<15)
    func likeWhole(seed: UInt64) throws {
        var generator = SplitMix(seed: seed)
        var old = State()
        var text = try JSON.encode(old)
        let encoder = JSONEncodingSession()
        for _ in 0..<40 {
            var new = old
            switch Int.random(in: 0..<8, using: &generator) {
            case 0: new.filter = new.filter == "all" ? "[{\"open\",é" : "all"
            case 1, 2: Self.change(&new.tasks, &generator, Self.task)
            case 3:
                Self.change(&new.steps, &generator) { $0.isMultiple(of: 2) ? Step.idle : .failed("\($0)\($1.next())") }
            case 4: Self.change(&new.names, &generator) { $0.isMultiple(of: 3) ? nil : "\($0)\($1.next())" }
            case 5: Self.change(&new.numbers, &generator) { index, _ in index }
            case 6:
                for key in ["b", "a"] { Self.change(&new.byKey[key, default: []], &generator, Self.task) }
            default:
                Self.change(&new.groups, &generator) { count, generator in
                    (0..<count % 40).map { Self.task($0, &generator) }
                }
                if !new.groups.isEmpty { Self.change(&new.groups[0], &generator, Self.task) }
            }
            if Bool.random(using: &generator) { Self.change(&new.tasks, &generator, Self.task) }

            let whole = try JSON.encode(new)
            try #require(encoder.text(of: new, unlike: text) == (text == whole ? nil : whole), "seed \(seed)")
            (old, text) = (new, whole)
        }
    }

    /// A value that fails to be encoded inside of an object in an array.
    private struct Nested: Codable {
        var outer: [Inner]
        struct Inner: Codable {
            var names: [String]
            var size: Double
        }
    }

    @Test("an encoding that fails leaves nothing to the next one of the same session")
    func behindFailure() throws {
        let old = Nested(outer: (0..<40).map { .init(names: ["\($0)"], size: 1) })
        var (bad, new) = (old, old)
        bad.outer[35].size = .nan
        new.outer[2].names = ["other"]
        let encoder = JSONEncodingSession()
        #expect(throws: EncodingError.self) { try encoder.text(of: bad, unlike: []) }

        #expect(try encoder.text(of: new, unlike: JSON.encode(old)) == JSON.encode(new))
        #expect(try encoder.text(of: new, unlike: JSON.encode(new)) == nil)
    }

    @Test("a long value that has not changed, has changed, or cannot be encoded leaves no long buffer")
    func buffers() throws {
        let encoder = JSONEncodingSession()
        let old = Nested(outer: (0..<4000).map { .init(names: ["a name of some length, \($0)"], size: 1) })
        let text = try JSON.encode(old)
        var (bad, new) = (old, old)
        bad.outer[3999].size = .nan
        new.outer[2].names = []

        #expect(try encoder.text(of: old, unlike: text) == nil)
        #expect(encoder.writer.bytes.capacity <= 64 << 10)
        #expect(try encoder.text(of: new, unlike: text) != nil)
        #expect(encoder.writer.bytes.capacity <= 64 << 10)
        #expect(throws: EncodingError.self) { try encoder.text(of: bad, unlike: text) }
        #expect(encoder.writer.bytes.capacity <= 64 << 10)
        var patch = JSONPatch()
        patch.replace(0, with: text)
        #expect(patch.takeText().count > 100_000)
        patch.begin()
        #expect(patch.isEmpty && patch.takeText() == Array("[]".utf8))
    }

    /// Equal where the IDs are, whatever the titles.
    struct Named: Codable, Equatable {
        var id: Int
        var title: String
        static func == (left: Named, right: Named) -> Bool { left.id == right.id }
    }

    @Test("equal elements with other bytes are in the patch: of an ID only, and of one letter spelled in two ways")
    func equality() throws {
        let old = (0..<40).map { Named(id: $0, title: "é") }
        var new = old
        new[7].title = "e\u{301}"
        new[9].title = "other"

        #expect(old == new)
        #expect(try Self.changes(old, new) == ["/7/title", "/9/title"])
    }

    /// The pointers that a patch changes.
    private static func changes<Value: Encodable>(_ old: Value, _ new: Value) throws -> [String] {
        var patch = JSONPatch()
        patch.compare(try JSON.encode(old), try JSON.encode(new))
        return patch.changedPointers.map(\.description)
    }
}
