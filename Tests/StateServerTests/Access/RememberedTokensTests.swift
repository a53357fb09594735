import StateHTTP
import StateStore
import Testing

@testable import StateServer

@Suite("Remembered tokens")
struct RememberedTokensTests {
    static let keys = [
        VerificationKey(id: "a", algorithm: .edDSA, first: [1]),
        VerificationKey(id: "b", algorithm: .edDSA, first: [2]),
    ]

    static func time(_ milliseconds: Int64) -> Timestamp { Timestamp(milliseconds: milliseconds) }

    @Test("an access is found until it ends, and then returned once")
    func end() {
        var tokens = RememberedTokens()
        let access = Access()
        tokens.insert(access, [1], key: Self.keys[0], end: Self.time(10))
        tokens.insert(Access(), [2], key: Self.keys[0], end: Self.time(20))

        #expect(tokens.access([1], at: Self.time(9)) === access)
        #expect(tokens.access([1], at: Self.time(10)) == nil)
        #expect(tokens.access([3], at: Self.time(9)) == nil)
        #expect(tokens.removeEnded(at: Self.time(9)).isEmpty)
        #expect(tokens.removeEnded(at: Self.time(10)).map(ObjectIdentifier.init) == [ObjectIdentifier(access)])
        #expect(tokens.removeEnded(at: Self.time(19)).isEmpty)
        #expect(tokens.removeEnded(at: Self.time(20)).count == 1)
        #expect(tokens.count == 0)
        #expect(tokens.hasEnded([1], at: Self.time(20)) && tokens.hasEnded([2], at: Self.time(20)))
        #expect(!tokens.hasEnded([3], at: Self.time(20)))
        // The clock may have been wrong.
        #expect(!tokens.hasEnded([1], at: Self.time(9)))
    }

    @Test("as many ended tokens are known as accesses are held")
    func ended() {
        var tokens = RememberedTokens(heldMax: 3)
        for number in 1...4 { tokens.noteEnded([UInt8(number)], Self.time(1)) }
        tokens.noteEnded([4], Self.time(2))

        #expect((1...4).map { tokens.hasEnded([$0], at: Self.time(2)) } == [false, true, true, true])
    }

    @Test("the oldest are forgotten, and end in time where something holds them")
    func bound() {
        var tokens = RememberedTokens(heldMax: 3)
        let streaming = Access()
        tokens.insert(streaming, [0], key: Self.keys[0], end: Self.time(10))
        for number in 1...6 { tokens.insert(Access(), [UInt8(number)], key: Self.keys[0], end: Self.time(100)) }

        #expect(
            (0...6).map { tokens.access([$0], at: Self.time(0)) != nil } == [
                true, false, false, false, true, true, true,
            ])
        #expect(tokens.removeEnded(at: Self.time(10)).map(ObjectIdentifier.init) == [ObjectIdentifier(streaming)])
        #expect(tokens.count == 3)
    }

    @Test("entries of forgotten tokens do not pile up")
    func entries() {
        var tokens = RememberedTokens(heldMax: 10)
        for number in 0..<10_000 {
            tokens.insert(
                Access(), [UInt8(number >> 8), UInt8(number & 255)], key: Self.keys[0], end: Self.time(1000))
            #expect(tokens.count <= 2 * 10 + 128)
        }
    }

    @Test("the accesses of a key that has gone are returned")
    func keys() {
        var tokens = RememberedTokens()
        let access = Access()
        tokens.insert(access, [1], key: Self.keys[0], end: Self.time(10))
        tokens.insert(Access(), [2], key: Self.keys[1], end: Self.time(10))

        #expect(tokens.removeAll(except: [Self.keys[1]]).map(ObjectIdentifier.init) == [ObjectIdentifier(access)])
        #expect(tokens.access([1], at: Self.time(0)) == nil)
        #expect(tokens.access([2], at: Self.time(0)) != nil)
    }
}
