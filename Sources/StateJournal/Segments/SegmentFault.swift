/// Why bytes are not a segment.
struct SegmentFault: Error, Equatable {
    /// What is wrong, as a clause.
    let detail: String

    init(_ detail: String) { self.detail = detail }

    static let cut = SegmentFault("it is cut off")
    static let malformed = SegmentFault("its parts do not fit together")
}
