import TestSupport
import Testing

@testable import StateJSON

@Suite("An encoding session that is used again")
struct SpareSessionTests {
    struct Point: Codable { var x = 1, y = 2 }
    /// It has the keys of a point in another order, and asks for its container twice.
    struct Twice: Encodable {
        var value = 7
        func encode(to encoder: any Encoder) throws {
            var first = encoder.container(keyedBy: Keys.self)
            try first.encode(value, forKey: .y)
            var second = encoder.container(keyedBy: Keys.self)
            try second.encode(Once(), forKey: .x)
            try first.encode(value, forKey: .z)
        }
    }
    /// It shares its keys with ``Twice``, inside which it is.
    struct Once: Encodable {
        func encode(to encoder: any Encoder) throws {
            var container = encoder.container(keyedBy: Keys.self)
            try container.encode("once", forKey: .z)
        }
    }
    /// It asks for two kinds of keys.
    struct Mixed: Encodable {
        func encode(to encoder: any Encoder) throws {
            var first = encoder.container(keyedBy: Keys.self)
            try first.encode(1, forKey: .x)
            var second = encoder.container(keyedBy: OtherKeys.self)
            try second.encode(2, forKey: .other)
        }
    }
    enum Keys: String, CodingKey { case x, y, z }
    enum OtherKeys: String, CodingKey { case other }
    class Base: Encodable { var base = 1 }
    final class Derived: Base {
        var own = 2
        private enum CodingKeys: String, CodingKey { case own }
        override func encode(to encoder: any Encoder) throws {
            try super.encode(to: encoder)
            var container = encoder.container(keyedBy: CodingKeys.self)
            try container.encode(own, forKey: .own)
        }
    }
    struct Failing: Encodable {
        func encode(to encoder: any Encoder) throws {
            var container = encoder.container(keyedBy: Keys.self)
            try container.encode(1, forKey: .x)
            try container.encode(Double.nan, forKey: .y)
        }
    }
    struct Empty: Codable {}

    @Test("the bytes are those of a session of their own, whatever was encoded before", arguments: 0..<40)
    func agreement(seed: UInt64) {
        let values: [any Encodable] = [
            Point(), Twice(), Once(), Mixed(), Base(), Derived(), Failing(), Empty(), ["b": 2, "a": 1], [1, 2], 5,
            ["k": Point()], [Once()], Optional<Point>.none,
        ]
        var generator = SplitMix(seed: seed)
        let spare = SpareEncodingSession()
        var last = 0
        for step in 0..<200 {
            // A value often follows one of its own type.
            if Int.random(in: 0..<2, using: &generator) == 0 {
                last = Int.random(in: 0..<values.count, using: &generator)
            }
            let value = values[last]
            let expected = try? JSON.encode(value)
            let found = try? KnownText(value, in: spare).bytes
            #expect(found == expected, "seed \(seed), step \(step): \(type(of: value))")
        }
    }

    @Test("a session for one value is freed, also where the value asks for its container twice")
    func once() throws {
        weak var session: JSONEncodingSession?
        do {
            var writer = JSONWriter()
            let own = JSONEncodingSession(taking: &writer)
            try own.encode(Twice())
            try own.finish()
            session = own
        }
        #expect(session == nil)
    }

    @Test("a session that is no longer used is freed")
    func freed() throws {
        weak var session: JSONEncodingSession?
        do {
            let spare = SpareEncodingSession()
            for _ in 0..<3 { _ = try KnownText(Point(), in: spare) }
            spare.use { session = $0 }
            #expect(session != nil)
        }
        #expect(session == nil)
    }
}
