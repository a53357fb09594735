import TestSupport
import Testing

@testable import StateJSON
@testable import StateStore

@Suite("Encodings of large maps in parts")
struct PartEncodingsTests {
    typealias Map = PersistentMap<Int, String>
    let parts = PartEncodings<Int, String>()

    /// The bytes of a map, and how many elements were encoded for them.
    func encode(_ map: Map) throws -> (text: String, elementsCount: Int) {
        var writer = JSONWriter()
        var elementsCount = 0
        try parts.write(map, to: &writer) { key, value, writer in
            elementsCount += 1
            writer.integer(key)
            writer.byte(UInt8(ascii: ":"))
            writer.string(value)
        }
        return (String(decoding: writer.bytes, as: UTF8.self), elementsCount)
    }

    func plain(_ map: Map) -> String {
        var elements: [String] = []
        map.visit { elements.append("\($0):\"\($1)\"") }
        return elements.joined(separator: ",")
    }

    @Test(
        "the bytes are those of each element in order, whatever changed since, in maps of every size", arguments: 0..<8)
    func model(seed: UInt64) throws {
        var generator = SplitMix(seed: seed)
        var map = Map()
        var older: [Map] = []
        for step in 0..<80 {
            let range = [10, 64, 66, 300, 3000].randomElement(using: &generator) ?? 10
            for _ in 0..<[1, 1, 40, 500][Int.random(in: 0..<4, using: &generator)] {
                let key = Int.random(in: 0..<range, using: &generator)
                if Int.random(in: 0..<4, using: &generator) == 0 { map.remove(key) } else { map.set(key, "v\(step)") }
            }
            // A reader of an older version encodes between those of the newest.
            if let old = older.randomElement(using: &generator) { #expect(try encode(old).text == plain(old)) }
            #expect(try encode(map).text == plain(map), "seed \(seed), step \(step)")
            older.append(map)
        }
    }

    @Test("after one change only its part is encoded anew, and nothing after none")
    func changes() throws {
        var map = Map(sorted: (0..<20_000).map { ($0, "value") })
        #expect(try encode(map).elementsCount == 20_000)
        // The elements between the parts are encoded each time.
        let between = try encode(map).elementsCount
        #expect(between < 20_000 / 16)

        map.set(7000, "other")
        let encoded = try encode(map)

        #expect(encoded.elementsCount <= between + 2 * 64)
        #expect(encoded.text == plain(map))
    }

    @Test("parts beyond the limit are encoded each time, and their bytes are right")
    func bounded() throws {
        let long = String(repeating: "x", count: 1 << 18)
        let map = Map(sorted: (0..<200).map { ($0, long) })

        #expect(try encode(map).elementsCount == 200)
        let again = try encode(map)

        // 16 MiB hold 64 such values.
        #expect((200 - 64..<200).contains(again.elementsCount))
        #expect(again.text == plain(map))
    }
}
