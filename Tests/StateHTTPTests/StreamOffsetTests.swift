import StateStore
import Testing

@testable import StateHTTP

@Suite("Offsets of streams")
struct StreamOffsetTests {
    private static let epoch = Epoch("aaaaaaaaaaaaaaaa") ?? .random()

    @Test("offsets sort as bytes like the positions that they name")
    func order() {
        let places: [(Version, StreamOffset.Place)] = [
            (0, .behind), (9, .inSnapshot(0)), (9, .inSnapshot(9)), (9, .inSnapshot(10)), (9, .inSnapshot(100_000)),
            (9, .behind), (10, .inSnapshot(1)), (10, .behind), (255, .behind), (256, .behind), (.max, .behind),
        ]
        let texts = places.map { StreamOffset(Cursor(Self.epoch, $0), $1).text }

        #expect(texts == texts.sorted { $0.utf8.lexicographicallyPrecedes($1.utf8) })
        #expect(Set(texts).count == texts.count)
        #expect(texts.allSatisfy { $0.utf8.count < 64 })
    }

    @Test("an offset is read as it is written, and only in its own stream", arguments: [0, 1, 41, Version.max])
    func roundTrip(version: Version) {
        let cursor = Cursor(Self.epoch, version)
        for place in [nil, .behind, .inSnapshot(0), .inSnapshot(77)] as [StreamOffset.Place?] {
            let offset = StreamOffset(cursor, place)
            #expect(StreamOffset(text: offset.text, ofState: place != nil) == offset)
            #expect(StreamOffset(text: offset.text, ofState: place == nil) == nil)
        }
    }

    @Test(
        "any other text is no offset",
        arguments: [
            "", "-1", "now", "aaaaaaaaaaaaaaaa", "aaaaaaaaaaaaaaaa_1", "aaaaaaaaaaaaaaaa_000000000000000G",
            "aaaaaaaaaaaaaaaa_000000000000000A", "aaaaaaaaaaaaaaaa_+00000000000001a",
            "AAAAAAAAAAAAAAAA_0000000000000001",
            "aaaaaaaaaaaaaaaa_0000000000000001_", "aaaaaaaaaaaaaaaa_0000000000000001_zz",
            "aaaaaaaaaaaaaaaa_0000000000000001_1", "aaaaaaaaaaaaaaaa_00000000000000001", "aaaaaaaaaaaaaaaa.1",
        ])
    func malformed(text: String) {
        #expect(StreamOffset(text: text, ofState: false) == nil)
        #expect(StreamOffset(text: text, ofState: true) == nil)
    }

    @Test("the cursor of a live read is never the one that the client has, and never one before it")
    func times() {
        let start = Timestamp(milliseconds: 1_728_432_000_000)
        let time = StreamTime(start.advanced(by: .seconds(20_000)), random: 0.5)

        #expect(time.cursor(after: nil) == "1000")
        #expect(time.cursor(after: 999) == "1000")
        for known in [1000, 1001, 5000] as [UInt64] {
            #expect(UInt64(time.cursor(after: known)) ?? 0 > known)
            #expect(UInt64(time.cursor(after: known)) ?? 0 <= known + 180)
        }
        #expect(StreamTime(Timestamp(milliseconds: 0), random: 1).cursor(after: nil) == "0")
    }
}
