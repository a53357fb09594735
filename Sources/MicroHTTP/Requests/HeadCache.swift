import CMicroHTTPD
import CXXHash
import Glibc
import HTTPMessages

/// Request heads seen before, found again by their bytes.
///
/// A client sends the same head again and again: a poller always, a writer as long as its bodies are of one length. What
/// was read out of it then is what would be read now, and while nothing has changed so is the answer. Finding it costs a
/// hash and a comparison of the bytes instead of the reading of each field.
///
/// Direct-mapped and fixed in size: a collision only costs the older head its place. Belongs to the loop thread.
final class HeadCache {
    /// A head, and what has been found out about it.
    final class Entry {
        fileprivate let key: [UInt8]
        /// The request, without body and client.
        let request: Request
        let framing: BodyFraming
        /// The answer, if it is the same for everybody as long as a server's answers hold.
        fileprivate var answer: (prepared: PreparedResponse, generation: UInt64)?

        fileprivate init(key: [UInt8], request: Request, framing: BodyFraming) {
            self.key = key
            var request = request
            request.notes = HeadNotes()
            self.request = request
            self.framing = framing
        }

        /// The request as a client's own.
        func request(client: String) -> Request {
            var request = request
            request.client = client
            return request
        }

        /// The answer, unless it is of an earlier generation.
        func answer(of generation: UInt64) -> PreparedResponse? {
            guard let answer, answer.generation == generation else { return nil }
            return answer.prepared
        }

    }

    private var entries = [Entry?](repeating: nil, count: 8192)
    /// About how many bytes they hold.
    private var keptCount = 0
    private static let keptMax = 32 << 20
    /// Heads that have been seen at least once, by their hashes: what is asked for only once is not worth keeping.
    private var seen = [UInt64](repeating: 0, count: 8192)
    private var key: [UInt8] = []
    private var hash: UInt64 = 0
    /// Longer heads are read each time.
    private static let bytesMax = 1024
    /// Answers with longer bodies are not kept: together they could be many megabytes.
    private static let bodyBytesMax = 16 << 10

    /// The head that has these bytes, if it was kept.
    ///
    /// - Parameters:
    ///   - target: the request's target as it came: libmicrohttpd has decoded its own copy (MICROHTTPD.md 19).
    ///   - version: the part of the head behind the target, up to its end.
    func entry(
        of connection: OpaquePointer, method: UnsafePointer<CChar>, target: RawTarget, version: UnsafePointer<CChar>
    ) -> Entry? {
        guard fillKey(method, target.bytes, version, Int(microhttpd_head_size(connection))) else { return nil }
        guard let entry = entries[slot], entry.key == key else { return nil }
        // A NUL in a head looks like an end that libmicrohttpd has marked; but it makes fewer lines, and so fewer fields.
        guard RequestReader.fieldsCount(of: connection) == entry.request.fields.count else { return nil }
        return entry
    }

    /// Keeps what has been read out of the head that was last asked for, if it was asked for before.
    func keep(_ request: Request, _ framing: BodyFraming) -> Entry? {
        guard !key.isEmpty else { return nil }
        guard seen[slot] == hash else {
            seen[slot] = hash
            return nil
        }
        let entry = Entry(key: key, request: request, framing: framing)
        count(key.count + 1024)
        entries[slot] = entry
        return entry
    }

    /// Keeps the answer to a head, unless it is long.
    func keep(_ prepared: PreparedResponse, _ bodyCount: Int, of generation: UInt64, for entry: Entry) {
        guard bodyCount <= Self.bodyBytesMax else { return }
        count(bodyCount)
        entry.answer = (prepared, generation)
    }

    /// Begins anew when there is too much: what is asked for again comes back by itself.
    private func count(_ bytes: Int) {
        keptCount += bytes
        guard keptCount > Self.keptMax else { return }
        entries = [Entry?](repeating: nil, count: entries.count)
        keptCount = bytes
    }

    private var slot: Int { Int(truncatingIfNeeded: hash) & (entries.count - 1) }

    /// Puts together what tells one head from another: its bytes as libmicrohttpd leaves them, with the ends of names
    /// and values marked in the same way for the same head, and the target.
    private func fillKey(
        _ method: UnsafePointer<CChar>, _ target: [UInt8], _ version: UnsafePointer<CChar>, _ headCount: Int
    ) -> Bool {
        key.removeAll(keepingCapacity: true)
        let end = UnsafePointer(method + headCount)
        // Between the target and the version stands what libmicrohttpd has put in place of a space.
        guard headCount <= Self.bytesMax, version > method, version < end else { return false }
        // The end of the method keeps it apart from the target.
        key.append(contentsOf: UnsafeRawBufferPointer(start: method, count: strlen(method) + 1))
        key.append(contentsOf: target)
        key.append(contentsOf: UnsafeRawBufferPointer(start: version, count: end - version))
        hash = key.withUnsafeBytes { storekeeper_short_hash($0.baseAddress, $0.count) }
        return true
    }
}
