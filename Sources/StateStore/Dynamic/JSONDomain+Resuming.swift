package import StateJSON

extension JSONDomain {
    /// Fits a recorded state to the parts that a domain has: new ones begin with their initial values.
    ///
    /// - Parameter dropped: parts of earlier times whose values go.
    /// - Throws: ``JSONFault`` for a part that the domain does not have and that is not dropped.
    package static func fit(
        _ recorded: JSONTree, to parts: [JSONPointer], initial: JSONTree, dropping dropped: [JSONPointer]
    ) throws(JSONFault) -> JSONTree {
        var state = recorded
        for part in dropped { state = state.applying("remove", at: part.tokens[...], nil) ?? state }
        state = try state.with(parts, from: initial)
        if let unknown = state.firstPlace(outside: parts) {
            let names = parts.map(\.description).joined(separator: ", ")
            throw JSONFault(
                .mismatch, at: unknown,
                "the model has no slice any more; it has \(names). --drop-slice \(unknown.tokens.first ?? "NAME") drops the value, and another version with migrate moves it"
            )
        }
        return state
    }
}
