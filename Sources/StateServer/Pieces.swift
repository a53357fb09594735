internal import MicroHTTP
internal import StateHTTP
internal import StateStore

/// Pieces for many streams, each made once for all who get the same.
struct Pieces {
    enum Key: Hashable {
        case value(Selection, Cursor, isFirst: Bool)
        case reset(Selection, Cursor, ResetReason, StreamRequest.Format)
        case commits(Position, Version)
        case heartbeat(StreamRequest.Format, Cursor?)
    }

    private var groups: [Key: (bytes: [UInt8], exchanges: [Exchange])] = [:]

    mutating func add(_ exchanges: [Exchange], _ key: Key, _ make: () -> [UInt8]) {
        groups[key, default: (make(), [])].exchanges += exchanges
    }

    func send() {
        for (bytes, exchanges) in groups.values { Exchange.send(bytes, to: exchanges) }
    }
}
