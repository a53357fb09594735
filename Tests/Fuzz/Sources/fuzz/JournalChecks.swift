@testable import StateJSON
@testable import StateJournal
@testable import StateStore

private let epoch = require(Epoch("aaaaaaaaaaaaaaaa"), "no epoch")

/// No bytes make the readers of segments and keys trap, and what they read is written and read again.
@Sendable func checkSegment(_ bytes: [UInt8]) {
    checkKeys(bytes)
    var first = Version(1)
    var body = bytes
    // Most versions are small; a few are at the end of their range.
    if body.last == 0xFF, body.count > 1 { first = .max - Version(body[body.count - 2]) }
    let read = commits(body, first: first, alone: false)
    expect(contents(commits(body, first: first, alone: true)) == contents(read), "alone, a commit is another")
    guard let read, !read.isEmpty else { return }
    var encoder = SegmentEncoder(epoch: epoch)
    encoder.encode(read, from: 0, to: read.count)
    body = encoder.body.bytes
    let again = require(commits(body, first: first, alone: false), "what was read is written, and refused")
    expect(contents(again) == contents(read), "what was read is written, and read as another")
}

/// The commits of a body; nil where one of them cannot be read.
private func commits(_ body: [UInt8], first: Version, alone: Bool) -> [Commit]? {
    body.withUnsafeBytes { bytes in
        guard var decoder = try? SegmentDecoder(bytes, first: first, epoch: epoch) else { return nil }
        var commits: [Commit] = []
        var isWhole = true
        // A patch that is read alone is that of the commit; it may be read where the rest is damaged.
        for index in 0..<decoder.count {
            if alone { decoder = require(try? SegmentDecoder(bytes, first: first, epoch: epoch), "read once only") }
            let patch = try? decoder.patch(at: index)
            guard let commit = try? decoder.commit(at: index) else {
                isWhole = false
                continue
            }
            expect(patch == commit.patch, "alone, the patch is another")
            commits.append(commit)
        }
        return isWhole ? commits : nil
    }
}

/// Everything that a segment keeps of commits, as bytes.
private func contents(_ commits: [Commit]?) -> [[[UInt8]]]? {
    commits?.map { commit in
        let key = commit.idempotency
        let instant = "\(commit.version) \(commit.time.milliseconds)"
        let kept: String? = key.map { "\($0.version) \($0.isChange) \($0.expiry.milliseconds)" }
        var strings: [String?] = [instant, commit.id, commit.cause, commit.root, commit.by]
        strings += [key?.key.recorded, key?.fingerprint, key?.id, key?.client, kept]
        strings += ["types"] + commit.types + ["pointers"] + commit.changedPointers.map(\.description)
        strings += ["ids"] + commit.clientIDs
        return [commit.action, commit.patch] + strings.map { Array(($0 ?? "none").utf8) }
    }
}

private func checkKeys(_ bytes: [UInt8]) {
    guard let keys = bytes.withUnsafeBytes({ try? KeyTable.read($0, epoch) }), !keys.isEmpty else { return }
    var writer = ByteWriter()
    let expiry = KeyTable.write(keys, epoch, to: &writer)
    expect(expiry == keys.map(\.expiry).max(), "the last expiry is another")
    let again = writer.bytes.withUnsafeBytes { try? KeyTable.read($0, epoch) }
    expect(again == keys, "the keys became \(String(describing: again))")
}

/// A recording is read or refused with a sentence, and what is read is written and read again.
@Sendable func checkRecording(_ bytes: [UInt8]) {
    var lines = bytes.split(separator: 0x0A).map(Array.init)[...]
    var reader: RecordingReader
    do throws(RecordingFault) {
        reader = try RecordingReader(lines.popFirst(), for: epoch)
    } catch {
        return expect(!error.description.isEmpty, "refused without a sentence")
    }
    var written = [Recording.line(of: reader.header)]
    written[0] = Recording.line(
        of: Recording.Header(
            epoch: epoch, version: reader.header.version, latest: reader.header.latest, state: reader.header.state))
    var commits: [Commit] = []
    while let line = lines.popFirst() {
        guard let commit = try? reader.take(line) else { return }
        commits.append(commit)
        written.append(Recording.line(of: commit))
    }
    var again = require(try? RecordingReader(written[0], for: epoch), "refused: \(quoted(written[0]))")
    for (commit, line) in zip(commits, written.dropFirst()) {
        let read = require(try? again.take(line), "refused: \(quoted(line))")
        expect(contents([read]) == contents([commit]), "read as another: \(quoted(line))")
    }
    expect(((try? reader.end()) == nil) == ((try? again.end()) == nil), "one of the two is complete")
}
