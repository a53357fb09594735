internal import StateJSON
internal import StateStore

/// Ends where the answer would have more than ``MemberQuery/answerBytesMax``.
struct AnswerWriter {
    private let query: MemberQuery
    private var writer = JSONWriter()
    private var last: Anchor?
    private var isFull = false

    init(_ query: MemberQuery) {
        self.query = query
        writer.raw("{\"members\":[")
    }

    /// Nil where the answer has become too long for another member.
    mutating func take(_ member: ArraySlice<UInt8>, _ anchor: Anchor) -> Range<Int>? {
        // The first one always comes.
        isFull = last != nil && writer.bytes.count + member.count > MemberQuery.answerBytesMax
        guard !isFull else { return nil }
        if last != nil { writer.byte(UInt8(ascii: ",")) }
        writer.raw(member)
        last = anchor
        return writer.bytes.count - member.count..<writer.bytes.count
    }

    /// The error is ``QueryStop/page``: the members that are left out could not be asked for.
    mutating func end(count: Int, hasMore: Bool) throws(QueryStop) -> JSONWriter {
        writer.byte(UInt8(ascii: "]"))
        let next = hasMore || isFull ? last?.text(query: query.hash) : nil
        guard next != nil || !isFull else { throw .page }
        if let next {
            writer.raw(",\"next\":")
            writer.string(next)
        }
        if query.wantsCount {
            writer.raw(",\"count\":")
            writer.integer(count)
        }
        writer.byte(UInt8(ascii: "}"))
        return writer
    }
}
