package struct JSONFault: Error, Sendable, Equatable {
    package enum Kind: Sendable, Equatable {
        case malformed
        /// RFC 8259, section 6, lets a receiver limit the range.
        case numberOutOfRange
        case duplicateKey
        case tooDeep
        case mismatch
        case schema
    }

    package var place: String { pointer.tokens.isEmpty ? "its root" : pointer.description }

    package var kind: Kind
    package var pointer: JSONPointer
    package var detail: String

    package init(_ kind: Kind, at pointer: JSONPointer, _ detail: String) {
        self.kind = kind
        self.pointer = pointer
        self.detail = detail
    }
}
