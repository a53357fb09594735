internal import StateJSON
internal import StateStore

extension Document {
    /// The pointer leads into the value that the action has put at the place, or else to its path.
    static func pointer(to place: JSONPointer, in action: some Action) -> String {
        let places = (action as? any PlacedAction)?.places ?? []
        for (name, path) in places.reversed() where name.tokens.last == "path" {
            guard path.tokens.count <= place.tokens.count,
                // The place behind the last element has got a number.
                zip(path.tokens, place.tokens).allSatisfy({ JSONPointer.sameBytes($0, $1) || $0 == "-" })
            else { continue }
            let hasValue =
                switch action {
                case is Remove, is Increment: false
                case let patch as Patch: Int(name.tokens[1]).map { patch.patch[$0].puts } ?? false
                default: true
                }
            let rest = place.tokens[path.tokens.count...]
            return hasValue ? "\(JSONPointer(name.tokens.dropLast() + ["value"] + rest))" : "\(name)"
        }
        return action is Patch ? "/patch" : "/path"
    }
}

extension Document.Patch.Operation {
    fileprivate var puts: Bool { op != .test && value != nil }
}
