internal import CSimdjson
internal import Synchronization

/// The idle parsers: to make a parser costs more than to parse an action.
///
/// Any thread may call it.
enum JSONParserPool {
    /// A simdjson parser.
    ///
    /// `@unchecked Sendable`: a parser is either in the pool, guarded by its mutex, or owned by exactly one document.
    struct Parser: @unchecked Sendable {
        let handle: OpaquePointer
    }

    private static let idle = Mutex<[Parser]>([])
    private static let idleMax = 16
    /// The depth that simdjson takes: above any configured limit, which then is the one that is reported, and small enough
    /// for the recursion of `check`.
    private static let parserDepthMax = 1024

    static func take() -> Parser {
        if let parser = idle.withLock({ $0.popLast() }) { return parser }
        guard let handle = storekeeper_json_parser_create(parserDepthMax) else {
            preconditionFailure("no memory for a JSON parser")
        }
        return Parser(handle: handle)
    }

    static func giveBack(_ parser: Parser) {
        let isKept = idle.withLock { parsers in
            guard parsers.count < idleMax else { return false }
            parsers.append(parser)
            return true
        }
        if !isKept { storekeeper_json_parser_destroy(parser.handle) }
    }
}
