import StateHTTP
import Testing

@Suite("Numbers of requests")
struct RequestNumbersTests {
    @Test("IDs are different, and neither their order nor their differences tell the numbers")
    func scrambled() {
        let numbers = RequestNumbers.scrambled(by: 17)
        let ids = (0..<100_000).map { numbers.text(of: $0) }

        #expect(Set(ids).count == ids.count)
        #expect(ids.allSatisfy { $0.utf8.count <= 14 && $0.hasPrefix("r") })
        let values = ids.map { UInt64($0.dropFirst(), radix: 36) ?? 0 }
        // Of random numbers, half are greater than the one before.
        let rising = zip(values, values.dropFirst()).count { $0 < $1 }
        #expect((49_000...51_000).contains(rising))
        #expect(Set(zip(values, values.dropFirst()).map { $1 &- $0 }).count > 99_990)
    }

    @Test("another key gives other IDs, and exchanges above the sockets' range have theirs")
    func keys() {
        #expect(RequestNumbers.scrambled(by: 1).text(of: 1) != RequestNumbers.scrambled(by: 2).text(of: 1))
        #expect(RequestNumbers.scrambled(by: 1).text(of: 1) != RequestNumbers.scrambled(by: 1).text(of: 1 | 1 << 63))
        #expect(RequestNumbers.counting.text(of: 12) == "r12")
    }
}
