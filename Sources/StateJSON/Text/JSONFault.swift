/// What is wrong with a JSON text or with the value in it, and where.
public struct JSONFault: Error, Sendable, Equatable {
    /// The kinds of fault, for a program to tell apart.
    public enum Kind: Sendable, Equatable {
        /// Not JSON as RFC 8259 has it.
        case malformed
        /// An object has the same key twice.
        case duplicateKey
        /// Nested deeper than the limit.
        case tooDeep
        /// Well formed, but a field is missing, unknown, or of another type or range.
        case mismatch
    }

    /// The kind of fault.
    public var kind: Kind
    /// The place of the fault.
    public var pointer: JSONPointer
    /// What was found and what was expected, as a sentence without the place.
    public var detail: String

    /// Makes a fault.
    public init(_ kind: Kind, at pointer: JSONPointer, _ detail: String) {
        self.kind = kind
        self.pointer = pointer
        self.detail = detail
    }
}
