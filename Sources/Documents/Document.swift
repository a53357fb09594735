package import StateJSON
package import StateStore

package struct Document: Domain {
    package typealias State = JSONTree

    /// Parts that are the same in the document before may break rules that are newer than they are.
    package typealias Check = @Sendable (_ json: [UInt8], _ before: @escaping () -> [UInt8]) -> JSONFault?

    private let initial: JSONTree
    private let check: Check?
    private let schema: JSONValue?
    private let hooks: DomainHooks

    /// `check` runs after each action, on the whole document: its cost is that of the document.
    package init(
        initial: JSONValue = .object(JSONObject()), schema: JSONValue? = nil, check: Check? = nil,
        reload: @escaping @Sendable (JSONTree) throws -> DomainReload = { _ in .unchanged }
    ) {
        var hooks = DomainHooks()
        hooks.resume = { recorded throws(JSONFault) in
            if let misfit = check?(recorded.text, { recorded.text }) {
                throw JSONFault(.schema, at: misfit.pointer, misfit.detail)
            }
            return recorded
        }
        hooks.reload = reload
        (self.initial, self.schema, self.check, self.hooks) = (JSONTree(initial), schema, check, hooks)
    }

    /// Makes the objects on the way; `-` is behind the last element, and a time to live removes the place later, unless
    /// it is set again or removed before.
    struct Set: ValidatedAction, AtPath, Valued {
        static let type = "document/set"
        var path: String
        var value: JSONTree
        /// Seconds, with a fraction.
        var ttl: Double?

        func validate() throws(Rejection) { try Place(path).check(ttl) }
    }

    /// RFC 7396: a member that is null is removed.
    struct Merge: ValidatedAction, Valued {
        static let type = "document/merge"
        var path: String?
        /// Empty in place of one with more members than a request merges: a tree of these is large.
        var value: JSONTree
        let membersCount: Int

        private enum CodingKeys: CodingKey { case path, value }

        init(from decoder: any Decoder) throws {
            let members = try decoder.container(keyedBy: CodingKeys.self)
            path = try members.decodeIfPresent(String.self, forKey: .path)
            let value = try members.decode(JSONValue.self, forKey: .value)
            membersCount = value.membersCount
            self.value = membersCount > WorkMeter.placesMax ? .emptyObject : JSONTree(value)
        }

        var places: [(name: JSONPointer, place: JSONPointer)] { namedPlace(path ?? "", "path") }

        func validate() throws(Rejection) { _ = try Place(path ?? "") }
    }

    /// RFC 6902, all or none.
    struct Patch: ValidatedAction, PlacedAction, SharingAction {
        static let type = "document/patch"
        var patch: [Operation]

        struct Operation: Codable, Sendable {
            var op: Name
            var path: String
            var from: String?
            var value: Operand?

            init(from decoder: any Decoder) throws {
                let members = try decoder.container(keyedBy: CodingKeys.self)
                op = try members.decode(Name.self, forKey: .op)
                path = try members.decode(String.self, forKey: .path)
                from = try members.decodeIfPresent(String.self, forKey: .from)
                // A value that is null is not a missing one.
                guard members.contains(.value) else { return }
                value =
                    op == .test
                    ? .compared(try members.decode(JSONValue.self, forKey: .value))
                    : .stored(try members.decode(JSONTree.self, forKey: .value))
            }

            enum Name: String, Codable, CaseIterable, Sendable { case add, remove, replace, move, copy, test }
        }

        /// A value of an operation: one that is only compared needs no tree.
        enum Operand: Encodable, Sendable {
            case stored(JSONTree)
            case compared(JSONValue)

            func encode(to encoder: any Encoder) throws {
                switch self {
                case .stored(let tree): try tree.encode(to: encoder)
                case .compared(let value): try value.encode(to: encoder)
                }
            }
        }

        var places: [(name: JSONPointer, place: JSONPointer)] {
            patch.enumerated().flatMap { index, operation in
                namedPlace(operation.path, "patch", "\(index)", "path")
                    + (operation.from.map { namedPlace($0, "patch", "\(index)", "from") } ?? [])
            }
        }

        func sharing(_ state: JSONTree) -> Self {
            var action = self
            for (index, operation) in patch.enumerated() {
                guard case .stored(let value)? = operation.value else { continue }
                let place = JSONPointer(text: operation.path)
                action.patch[index].value = .stored(value.sharing(place.flatMap { state.tree(at: $0.tokens[...]) }))
            }
            return action
        }

        func validate() throws(Rejection) {
            for (index, operation) in patch.enumerated() {
                let name = "/patch/\(index)"
                _ = try Place(operation.path, "\(name)/path")
                switch operation.op {
                case .move, .copy:
                    guard let from = operation.from else {
                        throw Place.invalid("\(name)/from", "is missing; expected a JSON Pointer")
                    }
                    _ = try Place(from, "\(name)/from")
                case .add, .replace, .test:
                    if operation.value == nil { throw Place.invalid("\(name)/value", "is missing; expected a value") }
                case .remove: break
                }
            }
        }
    }

    /// As the operation `add` of RFC 6902.
    struct Add: ValidatedAction, AtPath, Valued {
        static let type = "document/add"
        var path: String
        var value: JSONTree
        /// Seconds, with a fraction.
        var ttl: Double?

        func validate() throws(Rejection) { try Place(path).check(ttl) }
    }

    struct Remove: ValidatedAction, AtPath {
        static let type = "document/remove"
        var path: String

        func validate() throws(Rejection) { _ = try Place(path) }
    }

    /// Where nothing is, the number is 0.
    struct Increment: ValidatedAction, AtPath {
        static let type = "document/increment"
        var path: String
        /// 1 where it is missing; it may be negative, and have a fraction.
        var by: JSONValue?
        /// Seconds, with a fraction.
        var ttl: Double?

        func validate() throws(Rejection) {
            try Place(path).check(ttl)
            switch by {
            case nil, .integer?, .unsigned?, .double?: break
            default: throw Place.invalid("/by", "expected a number of 64 bits")
            }
        }
    }

    package var reducer: some Reducer<JSONTree> {
        JSONLayout(initial: initial, parts: schema.map { [JSONLayout.Part(.root, schema: $0)] }, hooks: hooks)
        on(Set.self) { edit, action throws(Rejection) in
            let place = try Place(action.path)
            try edit.set(action.value, at: place)
            edit.endExpiry(at: place)
            try edit.expire(place, after: action.ttl)
        }
        on(Merge.self) { edit, action throws(Rejection) in
            try edit.merge(action.value, of: action.membersCount, at: Place(action.path ?? ""))
        }
        on(Patch.self) { edit, action throws(Rejection) in
            for (index, operation) in action.patch.enumerated() { try edit.apply(operation, number: index) }
        }
        on(Add.self) { edit, action throws(Rejection) in
            let place = try Place(action.path)
            try edit.apply("add", at: place, action.value)
            try edit.expire(place, after: action.ttl)
        }
        on(Remove.self) { edit, action throws(Rejection) in try edit.apply("remove", at: Place(action.path), nil) }
        on(Increment.self) { edit, action throws(Rejection) in
            let place = try Place(action.path)
            try edit.increment(by: action.by ?? 1, at: place)
            try edit.expire(place, after: action.ttl)
        }
    }

    private static func sentence(of misfit: JSONFault) -> String {
        "\(misfit.pointer.tokens.isEmpty ? "the document" : misfit.pointer.shown): \(misfit.detail)"
    }

    private func on<Handled: PlacedAction>(
        _ type: Handled.Type, _ change: @escaping @Sendable (inout DocumentEdit, Handled) throws(Rejection) -> Void
    ) -> On<JSONTree, Handled> {
        On(type) { [check] state, action, context throws(Rejection) in
            let before = state
            var edit = DocumentEdit(before, context)
            try change(&edit, action)
            state = edit.tree
            guard let check else { return }
            if let misfit = check(edit.tree.text, { before.text }) {
                throw Rejection(
                    "document.misfit", "the document would not fit its schema: \(Self.sentence(of: misfit))",
                    kind: .invalid, pointer: Self.pointer(to: misfit.pointer, in: action))
            }
            if let place = edit.expiring, let rest = edit.tree.applying("remove", at: place.tokens, nil),
                let misfit = check(rest.text, { edit.tree.text })
            {
                throw place.rejection(
                    "document.no-ttl", "it cannot expire, because its schema requires it: \(Self.sentence(of: misfit))")
            }
        }
    }

    /// The pointer leads into the value that the action has put at the place, or else to its path.
    private static func pointer(to place: JSONPointer, in action: some PlacedAction) -> String {
        for (name, path) in action.places.reversed() where name.tokens.last == "path" {
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

private protocol AtPath: PlacedAction { var path: String { get } }

extension AtPath {
    var places: [(name: JSONPointer, place: JSONPointer)] { namedPlace(path, "path") }
}

private protocol Valued: PlacedAction, SharingAction { var value: JSONTree { get set } }

extension Valued {
    func sharing(_ state: JSONTree) -> Self {
        var action = self
        action.value = value.sharing(places.first.flatMap { state.tree(at: $0.place.tokens[...]) })
        return action
    }
}

private func namedPlace(_ text: String, _ name: String...) -> [(name: JSONPointer, place: JSONPointer)] {
    JSONPointer(text: text).map { [(JSONPointer(name), $0)] } ?? []
}
