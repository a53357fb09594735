import Testing

@testable import HTTPMessages

@Suite("Content codings")
struct ContentCodingTests {
    @Test(
        "the preferred coding is the one of the highest weight, and the one that compresses better",
        arguments: [
            ("gzip", .gzip), ("gzip, deflate", .gzip), ("gzip, deflate, br, zstd", .zstd), ("zstd;q=0.5, gzip", .gzip),
            ("GZIP ; q=1.0", .gzip), ("*", .zstd), ("*;q=0.5, zstd;q=0", .gzip), ("gzip;q=0", nil), ("identity", nil),
            ("identity;q=1, gzip;q=0.5", nil), ("", nil), ("br", nil), ("gzip;q=x", nil), (",,gzip,", .gzip),
            ("identity, gzip", .gzip), ("*;q=0", nil),
        ] as [(String, ContentCoding?)])
    func preferred(field: String, coding: ContentCoding?) {
        #expect(ContentCoding.preferred(field) == coding)
    }

    @Test("compressed bytes are short, and begin as the standards say")
    func compressed() throws {
        let bytes = Array(String(repeating: "{\"title\":\"milk\",\"done\":false},", count: 1000).utf8)

        let gzip = try #require(ContentCoding.gzip.compressed(bytes))
        let zstd = try #require(ContentCoding.zstd.compressed(bytes))

        #expect(gzip.starts(with: [0x1F, 0x8B]) && gzip.count < bytes.count / 20)
        #expect(zstd.starts(with: [0x28, 0xB5, 0x2F, 0xFD]) && zstd.count < bytes.count / 20)
        #expect(ContentCoding.gzip.compressed([])?.isEmpty == false)
    }

    @Test("a tag without the name of its coding is the tag of the value")
    func tags() {
        #expect(ContentCoding.plainTag("abc.gzip") == "abc" && ContentCoding.plainTag("abc.zstd") == "abc")
        #expect(ContentCoding.plainTag("abc") == "abc" && ContentCoding.plainTag("abc.lzma") == "abc.lzma")
    }

    @Test(
        "what a proxy that compresses has added to a tag is no part of it",
        arguments: ["-gzip", "--gzip", "-br", "-zstd", "-deflate", ".br"])
    func proxies(suffix: String) {
        #expect(ContentCoding.plainTag("abc" + suffix) == "abc")
        #expect(ContentCoding.plainTag("abc" + suffix + "x") == "abc" + suffix + "x")
    }
}
