import Foundation
import StateJSON
import StateStore
import TestSupport
import Testing

@testable import StateJournal

@Suite("Segments")
struct SegmentTests {
    let epoch = Epoch("aaaaaaaaaaaaaaaa") ?? .random()

    /// The bodies of the segments of commits.
    func bodies(_ commits: [Commit]) -> [[UInt8]] {
        var encoder = SegmentEncoder(epoch: epoch)
        var bodies: [[UInt8]] = []
        var start = 0
        while start < commits.count {
            let end = SegmentBody.end(of: commits, from: start)
            encoder.encode(commits, from: start, to: end)
            bodies.append(encoder.body.bytes)
            start = end
        }
        return bodies
    }

    /// The commits of a body: from the first to the last, or only those of the given indices, each alone.
    func commits(_ body: [UInt8], first: Version, alone: Bool = false) throws -> [Commit] {
        try body.withUnsafeBytes { bytes in
            var decoder = try SegmentDecoder(bytes, first: first, epoch: epoch)
            return try (0..<decoder.count).map { index in
                if alone { decoder = try SegmentDecoder(bytes, first: first, epoch: epoch) }
                return try decoder.commit(at: index)
            }
        }
    }

    @Test("commits of every form are read as they were written, in order and each alone", arguments: 1...20)
    func roundTrip(seed: UInt64) throws {
        var maker = CommitMaker(seed: seed, epoch: epoch)
        let written = maker.commits(1...300)
        var read: [Commit] = []
        var alone: [Commit] = []

        for body in bodies(written) {
            alone += try commits(body, first: Version(read.count + 1), alone: true)
            read += try commits(body, first: Version(read.count + 1))
        }

        #expect(read.map(Content.init) == written.map(Content.init), "seed \(seed)")
        #expect(alone.map(Content.init) == written.map(Content.init), "seed \(seed)")
    }

    @Test("a commit has every member, or none")
    func members() throws {
        let key = KeyRecord(
            key: "k", fingerprint: "f", version: 7, id: "mine", isChange: true, expiry: Timestamp(milliseconds: 9),
            client: "team")
        let full = Commit(
            version: 7, time: Timestamp(milliseconds: -1), id: "mine", cause: "\(epoch).6", root: "theirs", by: "ada",
            trace: "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01",
            types: ["set"], action: Array(#"{"id":"mine","type":"set"}"#.utf8), patch: Array("[]".utf8),
            changedPointers: ["/a", ""], clientIDs: ["other", "mine"], idempotency: key)
        let bare = Commit(
            version: 7, time: Timestamp(milliseconds: 0), id: "\(epoch).7", types: [], action: [], patch: [])

        for commit in [full, bare] {
            let read = try #require(try commits(bodies([commit])[0], first: 7).first)
            #expect(Content(read) == Content(commit))
        }
    }

    @Test("the trace of a commit costs 56 bytes, and none where there is no trace")
    func traceBytes() {
        func body(_ trace: String?) -> [UInt8] {
            bodies([
                Commit(
                    version: 7, time: Timestamp(milliseconds: 0), id: "\(epoch).7", trace: trace, types: [], action: [],
                    patch: [])
            ])[0]
        }
        let (with, without) = (body("00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01"), body(nil))

        // The two sets of members, of the segment and of the record, need a second byte each.
        #expect(with.count == without.count + 56 + 2)
        // These are the bytes of a program that knew no traces.
        #expect(without == [1, 1, 0, 0, 1, 0] + [UInt8](repeating: 0, count: 10))
    }

    @Test("a named member that this program does not know is passed over, and one that is cut is refused")
    func namedMembers() throws {
        let bare = Commit(
            version: 7, time: Timestamp(milliseconds: 0), id: "\(epoch).7", types: [], action: [], patch: [])
        let members = [2, 8] + Array("whatever".utf8) + [3, 1, 2, 3, 1, UInt8(ascii: "x"), 0]
        let body = [1, 1, 0, 0x80, 2, 1, 0, 0x80, 2] + [UInt8](repeating: 0, count: 9) + members

        #expect(try commits(body, first: 7).map(Content.init) == [Content(bare)])
        #expect(throws: SegmentFault.self) { try commits(body.dropLast(), first: 7) }
        #expect(throws: SegmentFault.self) { try commits(body + [0], first: 7) }
    }

    @Test("equal commits have equal bodies, whatever was encoded before")
    func deterministic() {
        var maker = CommitMaker(seed: 5, epoch: epoch)
        let commits = maker.commits(1...50)
        var encoder = SegmentEncoder(epoch: epoch)
        encoder.encode(maker.commits(1...200), from: 3, to: 150)
        encoder.encode(commits, from: 0, to: 50)

        #expect(encoder.body.bytes == bodies(commits)[0])
    }

    @Test("a segment ends at 256 commits or 64 KiB, and a larger commit has a segment of its own")
    func bounds() {
        func sizes(_ commits: [Commit]) -> [Int] {
            var (sizes, start) = ([Int](), 0)
            while start < commits.count {
                let end = SegmentBody.end(of: commits, from: start)
                sizes.append(end - start)
                start = end
            }
            return sizes
        }
        func large(_ version: Version, _ count: Int) -> Commit {
            Commit(
                version: version, time: Timestamp(milliseconds: 0), id: "x", types: ["t"],
                action: Array(repeating: 32, count: count),
                patch: [])
        }

        #expect(sizes((1...10_000).map { .setting($0) }) == Array(repeating: 256, count: 39) + [16])
        #expect(sizes([large(1, 65_536)]) == [1])
        #expect(sizes([large(1, 65_535), large(2, 1), large(3, 1)]) == [2, 1])
        #expect(sizes([large(1, 65_535), large(2, 2)]) == [1, 1])
        #expect(sizes([large(1, 10), large(2, 1 << 20), large(3, 10)]) == [1, 1, 1])
    }

    @Test("small commits of one type take a quarter of the bytes of their actions and patches")
    func small() {
        let commits = (1...256).map { Commit.setting($0) }
        let bytes = commits.reduce(0) { $0 + $1.action.count + $1.patch.count }

        #expect(bodies(commits)[0].count * 4 < bytes)
    }

    @Test("a flipped bit anywhere in a body changes the hash, and no bytes make the decoder trap")
    func damage() throws {
        var maker = CommitMaker(seed: 3, epoch: epoch)
        let body = bodies(maker.commits(1...5))[0]
        let predecessor = SegmentHash(beginning: epoch, version: 0)
        func hash(_ body: [UInt8], _ first: Version = 1, _ last: Version = 5) -> SegmentHash {
            SegmentHash(after: predecessor, first: first, last: last, body: body.span.bytes)
        }
        let whole = hash(body)
        var hashes: Set<SegmentHash> = [whole]

        for index in body.indices {
            for bit in 0..<8 {
                var damaged = body
                damaged[index] ^= 1 << bit
                hashes.insert(hash(damaged))
                _ = try? commits(damaged, first: 1)
                _ = try? commits(damaged, first: 1, alone: true)
            }
        }
        for count in body.indices {
            #expect(throws: SegmentFault.self) { try commits(Array(body[..<count]), first: 1) }
            hashes.insert(hash(Array(body[..<count])))
        }

        #expect(hashes.count == 1 + body.count * 9)
        #expect(hash(body, 2) != whole)
        #expect(hash(body, 1, 6) != whole)
        #expect(hash(body + [0]) != whole)
    }

    @Test("random bytes are refused, and never trap", arguments: 1...5)
    func noise(seed: UInt64) {
        var generator = SplitMix(seed: seed)
        for _ in 0..<2000 {
            let head: [UInt8] = [1, 1, 0, 127, UInt8.random(in: 0...4, using: &generator), 0]
            let noise = (0..<Int.random(in: 0...60, using: &generator)).map { _ in
                Bool.random(using: &generator)
                    ? UInt8.random(in: 0...8, using: &generator) : UInt8.random(in: 0...255, using: &generator)
            }
            _ = try? commits(head + noise, first: Version.random(in: 0 ... .max, using: &generator))
            noise.withUnsafeBytes { _ = try? KeyTable.read($0, epoch) }
        }
    }

    @Test("a model that has a model itself is refused, however long the chain is")
    func chains() throws {
        let count = 200_000
        // Members, time, and nothing else; then members, the commit before as the model, time, and all as the model has it.
        var records: [[UInt8]] = [[0, 0, 0, 0, 0, 0, 0, 0, 0, 0]]
        for index in 1..<count {
            var record = ByteWriter()
            record.byte(1)
            record.number(index - 1)
            records.append(record.bytes + [0, 0, 0, 0, 0, 0, 0, 0])
        }
        var head = ByteWriter()
        for number in [1, 1, 0, 1, count, 0] + records.map(\.count) { head.number(number) }
        let body = head.bytes + Array(records.joined())

        try body.withUnsafeBytes { bytes in
            var decoder = try SegmentDecoder(bytes, first: 1, epoch: epoch)
            #expect(throws: SegmentFault.malformed) { try decoder.commit(at: count - 1) }
            #expect(try decoder.commit(at: 1).patch == decoder.commit(at: 0).patch)
        }
    }

    @Test(
        "a body of a newer form, of another algorithm or with unknown members is refused with a sentence",
        arguments: [0, 1, 3])
    func newer(index: Int) {
        var body = bodies([.setting(1)])[0]
        body[index] = 0x7F &+ UInt8(index == 3 ? 1 : 0)
        // The first bit without a member: 512.
        if index == 3 { body.insert(4, at: 4) }

        let fault = #expect(throws: SegmentFault.self) { try commits(body, first: 1) }

        #expect(fault?.detail.contains("newer program") == true)
    }

    @Test("the hash of a segment is the same on every machine")
    func golden() {
        let body = bodies([.setting(1, ids: ["a"]), .setting(2)])
        let base = SegmentHash(beginning: epoch, version: 0)
        let first = body[0]
        let hash = SegmentHash(after: base, first: 1, last: 2, body: first.span.bytes)

        #expect(hex(base.bytes) == "f9cc7be60cf1a7d273ca10a238f4dcd2")
        #expect(
            hex(body[0])
                == "0101000302d20f180b0200010373657401062f76616c75650d01002902013103610100020e00002902013200")
        #expect(hex(hash.bytes) == "fb44f80c6e950e2dd0ed6787afc181c1")
        #expect(SegmentHash(hash.bytes) == hash)
        #expect(SegmentHash(hash.bytes.dropLast()) == nil)
    }

    private func hex(_ bytes: [UInt8]) -> String { bytes.map { String(format: "%02x", $0) }.joined() }

    @Test("keys are read as they were written")
    func keys() throws {
        let keys = (1...5).map { (number: Int) -> KeyRecord in
            let id = number == 1 ? "mine" : "\(epoch).\(number)"
            return KeyRecord(
                key: "k\(number)", fingerprint: "f", version: Version(number), id: id, isChange: number % 2 == 0,
                expiry: Timestamp(milliseconds: Int64(number) - 3), client: number == 4 ? "s" : nil)
        }
        var writer = ByteWriter()

        let expiry = KeyTable.write(keys, epoch, to: &writer)
        let read = try writer.bytes.withUnsafeBytes { try KeyTable.read($0, epoch) }

        #expect(expiry == Timestamp(milliseconds: 2))
        #expect(read == keys)
        for count in writer.bytes.indices {
            writer.bytes[..<count].withUnsafeBytes { bytes in
                let part = try? KeyTable.read(bytes, epoch)
                #expect(part != keys)
            }
        }
    }
}
