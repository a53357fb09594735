internal import StateJSON
internal import StateStore

extension Document {
    /// The pointer into an action's payload to what a place of the document does not fit for: into the value that the action
    /// has put there, or else to its path.
    static func pointer(to place: JSONPointer, in action: some Action) -> String {
        typealias Change = (name: String, path: String, hasValue: Bool)
        let changes: [Change] =
            switch action {
            case let set as Set: [("", set.path, true)]
            case let add as Add: [("", add.path, true)]
            case let merge as Merge: [("", merge.path ?? "", true)]
            case let remove as Remove: [("", remove.path, false)]
            case let increment as Increment: [("", increment.path, false)]
            case let patch as Patch:
                patch.patch.enumerated().map { index, operation in
                    ("/patch/\(index)", operation.path, operation.op != .test && operation.value != nil)
                }
            default: []
            }
        for change in changes.reversed() {
            guard let path = JSONPointer(text: change.path)?.tokens, path.count <= place.tokens.count,
                // The place behind the last element has got a number.
                zip(path, place.tokens).allSatisfy({ JSONPointer.sameBytes($0, $1) || $0 == "-" })
            else { continue }
            let rest = JSONPointer(Array(place.tokens[path.count...]))
            return change.hasValue ? "\(change.name)/value\(rest)" : "\(change.name)/path"
        }
        return action is Patch ? "/patch" : "/path"
    }
}
