import Testing

@testable import StateJournal

@Suite("Heads of files in a tar archive")
struct TarHeaderTests {
    private func text(_ header: TarHeader, _ range: Range<Int>) -> String {
        String(decoding: header.bytes[range].prefix { $0 != 0 }, as: UTF8.self)
    }

    @Test("a head has the name, the mode, the size and the time in octal, and the sum of its bytes")
    func fields() {
        let header = TarHeader("journal.sqlite", size: 4097, modified: 1_767_225_600)

        #expect(header.bytes.count == 512)
        #expect(text(header, 0..<100) == "journal.sqlite")
        #expect(text(header, 100..<108) == "0000600")
        #expect(text(header, 124..<136) == "00000010001")
        #expect(text(header, 136..<148) == "15125334400")
        #expect(Array(header.bytes[257..<265]) == Array("ustar\u{0}00".utf8))
        let sum = header.bytes.enumerated().reduce(0) { $0 + ((148..<156) ~= $1.0 ? 32 : Int($1.1)) }
        #expect(Int(text(header, 148..<156), radix: 8) == sum)
        #expect(Array(header.bytes[154..<156]) == [0, 32])
    }

    @Test("a size of 8 GiB is in base 256, the one below in octal")
    func large() {
        let below = TarHeader("a", size: (8 << 30) - 1, modified: 0)
        let above = TarHeader("a", size: 8 << 30, modified: 0)

        #expect(text(below, 124..<136) == "77777777777")
        #expect(Array(above.bytes[124..<136]) == [0x80, 0, 0, 0, 0, 0, 0, 2, 0, 0, 0, 0])
    }

    @Test("padding fills the last block", arguments: [(0, 0), (1, 511), (511, 1), (512, 0), (513, 511)])
    func padding(size: Int, count: Int) { #expect(TarHeader.padding(behind: size) == count) }
}
