internal import StateJSON

/// An operation of a recorded patch, on its way to the part that it changes.
struct PatchOperation {
    let name: String
    /// Where the operation applies, from the part that has it.
    private(set) var tokens: ArraySlice<String>
    let value: JSONValue?
    private let pointer: JSONPointer

    static func operations(of patch: [UInt8]) throws -> [PatchOperation] {
        guard case .array(let elements) = try JSONValue(parsing: patch, depthMax: 1000) else {
            throw PatchMismatch(detail: "a patch is an array")
        }
        return try elements.map { element in
            guard case .object(let members) = element, case .string(let name)? = members["op"],
                case .string(let path)? = members["path"], let pointer = JSONPointer(text: path),
                name == "remove" || ["add", "replace"].contains(name) && members["value"] != nil
            else { throw PatchMismatch(detail: "an operation is add, remove or replace, with a path") }
            return PatchOperation(
                name: name, tokens: pointer.tokens[...], value: name == "remove" ? nil : members["value"],
                pointer: pointer)
        }
    }

    var inner: PatchOperation {
        var inner = self
        inner.tokens = tokens.dropFirst()
        return inner
    }

    var mismatch: PatchMismatch { PatchMismatch(detail: "cannot \(name) at \(pointer): there is no such place") }

    func apply(to part: inout JSONValue) throws(PatchMismatch) {
        guard part.apply(name, at: tokens, value) else { throw mismatch }
    }

    static func node(_ value: JSONValue) throws(JSONFault) -> JSONNode {
        JSONNode(try JSONDocument(value.text, depthMax: 1000))
    }
}
