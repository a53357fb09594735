/// A fault in a JSON text, or in the value that it holds.
package struct JSONFault: Error, Sendable, Equatable {
    /// The kinds of fault.
    package enum Kind: Sendable, Equatable {
        /// The text is not JSON (RFC 8259).
        case malformed
        /// A number is beyond what 64-bit floating point can hold (RFC 8259, section 6, lets a receiver limit the range).
        case numberOutOfRange
        /// An object has the same key twice.
        case duplicateKey
        /// The text nests deeper than the limit.
        case tooDeep
        /// The text is JSON, but a field is missing, unknown, or of another type or range.
        case mismatch
        /// The text is JSON, but breaks a rule of the schema that the whole state is held to.
        case schema
    }

    /// The place in words: its pointer, or that it is the root.
    package var place: String { pointer.tokens.isEmpty ? "its root" : pointer.description }

    package var kind: Kind
    package var pointer: JSONPointer
    /// The found and the expected value, as a sentence without the pointer.
    package var detail: String

    package init(_ kind: Kind, at pointer: JSONPointer, _ detail: String) {
        self.kind = kind
        self.pointer = pointer
        self.detail = detail
    }
}
