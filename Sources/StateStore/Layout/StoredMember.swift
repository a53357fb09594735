/// A key path to a part of a value, which reads a stored property at its offset.
///
/// A key path looks up the metadata of generic types at each access, which costs more than comparing a small part.
struct StoredMember<Root: Sendable, Part: Sendable>: Sendable {
    private let path: any WritableKeyPath<Root, Part> & Sendable
    /// The offset of the part in the memory of the value, or nil for a computed property, one with observers, and one
    /// behind a reference.
    private let offset: Int?

    init(_ path: any WritableKeyPath<Root, Part> & Sendable) {
        self.path = path
        offset = MemoryLayout<Root>.offset(of: path)
    }

    @inline(__always)
    func read<Result>(_ root: Root, _ body: (borrowing Part) throws -> Result) rethrows -> Result {
        guard let offset else { return try body(root[keyPath: path]) }
        return try withUnsafePointer(to: root) { root in
            try UnsafeRawPointer(root).advanced(by: offset).assumingMemoryBound(to: Part.self).lend(to: body)
        }
    }
}

extension UnsafePointer where Pointee: ~Copyable {
    /// Calls a function with the value that the pointer points to, without a copy of it.
    ///
    /// Swift copies a value of an unknown type where it can, and it cannot where the type need not be copyable.
    @inline(__always)
    func lend<Result>(to body: (borrowing Pointee) throws -> Result) rethrows -> Result { try body(pointee) }
}
