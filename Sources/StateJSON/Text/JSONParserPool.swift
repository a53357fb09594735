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
    /// The longest text after which a parser is kept: it keeps some ten times the bytes of the longest one for ever.
    private static let bytesMax = 1 << 20
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

    /// - Parameter bytesCount: the length of the text that it has parsed.
    static func giveBack(_ parser: Parser, after bytesCount: Int) {
        let isKept = idle.withLock { parsers in
            guard parsers.count < idleMax, bytesCount <= bytesMax else { return false }
            parsers.append(parser)
            return true
        }
        if !isKept { storekeeper_json_parser_destroy(parser.handle) }
    }
}
