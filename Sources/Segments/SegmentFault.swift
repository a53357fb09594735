/// Why bytes are not a segment.
package struct SegmentFault: Error, Equatable {
    /// The fault, as a clause.
    package let detail: String

    package init(_ detail: String) { self.detail = detail }

    static let cut = SegmentFault("it is cut off")
    package static let malformed = SegmentFault("its parts do not fit together")
}
