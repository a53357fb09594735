internal import FoundationEssentials
internal import StateJSON

/// Google's rules for JSON: bytes in Base64, 64-bit numbers as texts, default values left out.
///
/// Source: etcd's `rpc.proto` and its pages "gRPC gateway" and "API reference".
enum Etcd {
    /// Another version of this program may have written members that are not known here.
    static func decode<Value: Decodable>(
        _ type: Value.Type, from bytes: some Sequence<UInt8>
    ) throws(JSONFault) -> Value {
        try JSON.decode(type, from: Array(bytes), ignoresUnknown: true)
    }

    struct Header: Decodable, Sendable {
        var cluster_id: String?
        var revision: String?

        var number: UInt64 { revision.flatMap { UInt64($0) } ?? 0 }
    }

    struct Pair: Decodable, Sendable {
        var key: Data
        var value: Data?
        var mod_revision: String

        var bytes: [UInt8] { Array(value ?? Data()) }
    }

    struct Range: Encodable, Sendable {
        var key: Data
        var range_end: Data?
        var limit: Int?
        var revision: String?
        var keys_only: Bool?
        var sort_order: String?

        init(_ key: String) { self.key = Data(key.utf8) }

        /// The end is not one of them.
        init(
            _ key: String, upTo end: String, limit: Int? = nil, keysOnly: Bool = false, isNewestFirst: Bool = false
        ) {
            self.init(key)
            (range_end, self.limit) = (Data(end.utf8), limit)
            if keysOnly { keys_only = true }
            if isNewestFirst { sort_order = "DESCEND" }
        }

        /// The prefix ends with a slash.
        init(below prefix: String, limit: Int? = nil, keysOnly: Bool = false) {
            self.init(prefix, upTo: ClusterKeys.end(of: prefix), limit: limit, keysOnly: keysOnly)
        }
    }

    struct Authenticated: Decodable, Sendable {
        var token: String
    }

    struct Lease: Codable, Sendable {
        var ID: String
    }

    struct LeaseLine: Decodable, Sendable {
        struct Result: Decodable, Sendable {
            /// Absent, or 0, where the lease has expired.
            var TTL: String?
        }
        var result: Result?
    }

    struct RangeResponse: Decodable, Sendable {
        var header: Header
        var kvs: [Pair]?
        var more: Bool?
    }

    struct Put: Encodable, Sendable {
        var key: Data
        var value: Data
        var lease: String?
    }

    struct AlarmResponse: Decodable, Sendable {
        struct Member: Decodable, Sendable {
            var alarm: String?
        }
        var alarms: [Member]?
    }

    struct Compare: Encodable, Sendable {
        var key: Data
        var range_end: Data?
        var target: String
        var result: String
        var create_revision: String?
        var mod_revision: String?
        var value: Data?

        static func equal(_ key: String, _ value: Data) -> Compare {
            Compare(key: Data(key.utf8), target: "VALUE", result: "EQUAL", value: value)
        }

        static func absent(_ key: String) -> Compare { absent(Range(key)) }

        static func absent(_ range: Range) -> Compare {
            Compare(
                key: range.key, range_end: range.range_end, target: "CREATE", result: "EQUAL", create_revision: "0")
        }

        static func present(_ key: String) -> Compare {
            Compare(key: Data(key.utf8), target: "CREATE", result: "GREATER", create_revision: "0")
        }

        static func unchanged(_ key: String, since revision: UInt64) -> Compare {
            Compare(key: Data(key.utf8), target: "MOD", result: "EQUAL", mod_revision: "\(revision)")
        }
    }

    struct Operation: Encodable, Sendable {
        var request_put: Put?
        var request_range: Range?
        var request_delete_range: Range?

        static func put(_ key: String, _ value: some Sequence<UInt8>, lease: String? = nil) -> Operation {
            Operation(request_put: Put(key: Data(key.utf8), value: Data(value), lease: lease))
        }

        static func read(_ range: Range) -> Operation { Operation(request_range: range) }

        static func delete(_ range: Range) -> Operation { Operation(request_delete_range: range) }
    }

    struct Transaction: Encodable, Sendable {
        var compare: [Compare]
        var success: [Operation]
        var failure: [Operation] = []
    }

    struct TransactionResponse: Decodable, Sendable {
        struct Result: Decodable, Sendable {
            var response_range: RangeResponse?
        }
        /// Every answer of etcd has it; another JSON object with status 200 is a proxy's.
        var header: Header
        var succeeded: Bool?
        var responses: [Result]?

        var found: [Pair?] { (responses ?? []).map { $0.response_range?.kvs?.first } }
    }

    struct Watch: Encodable, Sendable {
        struct Create: Encodable, Sendable {
            var key: Data
            var range_end: Data
            var start_revision: String
            var progress_notify = true
        }
        var create_request: Create
    }

    struct WatchLine: Decodable, Sendable {
        struct Event: Decodable, Sendable {
            /// `DELETE`; absent for a put.
            var type: String?
            var kv: Pair
        }
        struct Result: Decodable, Sendable {
            var header: Header
            var canceled: Bool?
            var cancel_reason: String?
            var compact_revision: String?
            var events: [Event]?

            /// Nil for a message without events: while the watch catches up, the header's revision is ahead of events
            /// that are yet to come.
            var nextRevision: UInt64? {
                guard let last = events?.last, let revision = UInt64(last.kv.mod_revision) else { return nil }
                let (next, isTooLarge) = revision.addingReportingOverflow(1)
                return isTooLarge ? nil : next
            }
        }
        var result: Result?
        var error: Fault?
    }

    struct Fault: Decodable, Sendable {
        var message: String?
        var code: Int?
    }

    struct Nothing: Codable, Sendable {}
}
