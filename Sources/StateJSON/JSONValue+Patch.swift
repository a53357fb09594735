/// A patch that does not fit the value it is applied to.
package struct PatchMismatch: Error, Sendable, Equatable {
    /// What was to be done, and why it could not be.
    package var detail: String
}

extension JSONValue {
    /// Applies a JSON Patch (RFC 6902) of the operations that this module writes: add, remove and replace.
    ///
    /// The cost is that of the operations; adding to or removing from an array is O(its length). When it throws, some
    /// operations may have been applied: work on a copy where that matters.
    ///
    /// - Throws: ``PatchMismatch`` when an operation names a place that is not there.
    package mutating func apply(patch: JSONValue) throws(PatchMismatch) {
        guard case .array(let operations) = patch else { throw PatchMismatch(detail: "a patch is an array") }
        for operation in operations {
            guard case .object(let members) = operation, case .string(let name)? = members["op"],
                case .string(let path)? = members["path"], let pointer = JSONPointer(text: path)
            else { throw PatchMismatch(detail: "an operation has \"op\" and \"path\"") }
            guard apply(name, at: pointer.tokens[...], members["value"]) else {
                throw PatchMismatch(detail: "cannot \(name) at \(path): there is no such place")
            }
        }
    }

    private mutating func apply(_ operation: String, at tokens: ArraySlice<String>, _ value: JSONValue?) -> Bool {
        guard let token = tokens.first else {
            guard operation != "remove", let value else { return false }
            self = value
            return true
        }
        switch self {
        case .object(var object):
            self = .null
            defer { self = .object(object) }
            if tokens.count > 1 {
                guard object[token] != nil else { return false }
                return object[token]?.apply(operation, at: tokens.dropFirst(), value) ?? false
            }
            switch (operation, value) {
            case ("add", let value?): object[token] = value
            case ("replace", let value?):
                guard object[token] != nil else { return false }
                object[token] = value
            case ("remove", _):
                guard object[token] != nil else { return false }
                object[token] = nil
            default: return false
            }
            return true
        case .array(var elements):
            self = .null
            defer { self = .array(elements) }
            guard let index = token == "-" ? elements.count : JSONPointer.index(token) else { return false }
            if tokens.count > 1 {
                guard index < elements.count else { return false }
                return elements[index].apply(operation, at: tokens.dropFirst(), value)
            }
            switch (operation, value) {
            case ("add", let value?) where index <= elements.count: elements.insert(value, at: index)
            case ("replace", let value?) where index < elements.count: elements[index] = value
            case ("remove", _) where index < elements.count: elements.remove(at: index)
            default: return false
            }
            return true
        default: return false
        }
    }
}
