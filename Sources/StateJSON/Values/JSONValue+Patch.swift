package struct PatchMismatch: Error, Sendable, Equatable {
    package var detail: String

    package init(detail: String) { self.detail = detail }
}

package struct PatchOperation {
    package private(set) var name: String
    /// Begin at the value that the operation is applied to.
    package private(set) var tokens: ArraySlice<String>
    /// Nil for a removal.
    package private(set) var value: JSONValue?
    private let path: String

    private init(_ json: JSONValue) throws(PatchMismatch) {
        guard case .object(let members) = json, case .string(let name)? = members["op"],
            case .string(let path)? = members["path"], let pointer = JSONPointer(text: path),
            name == "remove" || ["add", "replace"].contains(name) && members["value"] != nil
        else { throw PatchMismatch(detail: "an operation is add, remove or replace, with a path") }
        (self.name, self.path, tokens) = (name, path, pointer.tokens[...])
        value = name == "remove" ? nil : members["value"]
    }

    package static func all(of patch: JSONValue) throws(PatchMismatch) -> [PatchOperation] {
        guard case .array(let operations) = patch else { throw PatchMismatch(detail: "a patch is an array") }
        var found: [PatchOperation] = []
        for operation in operations { found.append(try PatchOperation(operation)) }
        return found
    }

    package var inner: PatchOperation {
        var inner = self
        inner.tokens = tokens.dropFirst()
        return inner
    }

    package var pointer: JSONPointer { JSONPointer(Array(tokens)) }

    /// May replace or remove a value around the place.
    package func inside(_ place: JSONPointer) -> PatchOperation {
        var inner = self
        inner.tokens = tokens.dropFirst(place.tokens.count)
        guard tokens.count < place.tokens.count else { return inner }
        inner.value = value?[pointer: JSONPointer(Array(place.tokens.dropFirst(tokens.count)))]
        inner.name = inner.value == nil ? "remove" : "replace"
        return inner
    }

    package var mismatch: PatchMismatch { PatchMismatch(detail: "cannot \(name) at \(path): there is no such place") }

    package func apply(to value: inout JSONValue) throws(PatchMismatch) {
        guard value.apply(name, at: tokens, self.value) else { throw mismatch }
    }
}

extension JSONValue {
    /// O(n) in the operations, and for arrays in their length; after an error, some operations may have been applied.
    package mutating func apply(patch: JSONValue) throws(PatchMismatch) {
        for operation in try PatchOperation.all(of: patch) { try operation.apply(to: &self) }
    }

    /// As ``JSONPatch/changedPointers``, before the patch is applied.
    package func places(changing patch: JSONValue) throws(PatchMismatch) -> [JSONPointer] {
        var pointers: [JSONPointer] = []
        for operation in try PatchOperation.all(of: patch) {
            var pointer = JSONPointer(Array(operation.tokens))
            let parent = JSONPointer(Array(pointer.tokens.dropLast()))
            if operation.name != "replace", pointer != parent, case .array? = self[pointer: parent] { pointer = parent }
            if pointers.last != pointer { pointers.append(pointer) }
        }
        return pointers
    }

    /// False where the operation names a value that is not there; only a removal has no value.
    package mutating func apply(_ operation: String, at tokens: ArraySlice<String>, _ value: JSONValue?) -> Bool {
        guard let token = tokens.first else {
            guard let value else { return false }
            self = value
            return true
        }
        let rest = tokens.dropFirst()
        if var object = takeObject() {
            defer { self = .object(object) }
            if !rest.isEmpty { return object[token]?.apply(operation, at: rest, value) ?? false }
            guard operation == "add" || object.contains(token) else { return false }
            object[token] = value
            return true
        }
        guard var elements = takeElements() else { return false }
        defer { self = .array(elements) }
        guard let index = token == "-" ? elements.count : JSONPointer.index(token),
            index < elements.count || operation == "add" && rest.isEmpty && index == elements.count
        else { return false }
        if !rest.isEmpty { return elements[index].apply(operation, at: rest, value) }
        switch (operation, value) {
        case ("add", let value?): elements.insert(value, at: index)
        case (_, let value?): elements[index] = value
        case (_, nil): elements.remove(at: index)
        }
        return true
    }

    /// Leaves one reference to the members, so that a mutation copies nothing; inlined, a `switch` would keep a second.
    @inline(never)
    private mutating func takeObject() -> JSONObject? {
        guard case .object(let object) = self else { return nil }
        self = .null
        return object
    }

    /// Takes the elements out of the value, for the reason of ``takeObject()``.
    @inline(never)
    private mutating func takeElements() -> [JSONValue]? {
        guard case .array(let elements) = self else { return nil }
        self = .null
        return elements
    }
}
