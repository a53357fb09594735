package import StateJSON
package import StateStore

extension Model {
    /// What a model is served with.
    package struct Serving: Sendable {
        /// The text of the file.
        package var source: [UInt8]
        /// The name of the file in faults.
        package var name: String
        /// How long a reducer may take of a processor; a view may take ten times as long.
        package var time: Duration
        /// How much memory the engine may have for a copy of the state.
        package var bytesMax: Int
        /// Makes the check of an action's payload of its JSON Schema.
        package var check:
            @Sendable (_ type: String, _ schema: JSONValue) throws(Fault) -> @Sendable ([UInt8]) -> [JSONFault]
        /// Takes what the file writes to the console.
        package var log: @Sendable (String) -> Void

        package init(
            source: [UInt8], name: String, time: Duration, bytesMax: Int,
            check:
                @escaping @Sendable (_ type: String, _ schema: JSONValue) throws(Fault) ->
                @Sendable ([UInt8]) ->
                [JSONFault],
            log: @escaping @Sendable (String) -> Void
        ) {
            (self.source, self.name, self.time, self.bytesMax) = (source, name, time, bytesMax)
            (self.check, self.log) = (check, log)
        }

        fileprivate func load() throws(Fault) -> Model { try Model(source, name: name, time: time) }
    }

    /// The domain that a file declares.
    ///
    /// - Throws: ``Fault`` where the file has one, or the machine has no engine.
    package static func domain(_ serving: Serving) throws(Fault) -> JSONDomain {
        let model = try serving.load()
        let description = model.description
        for line in model.takeConsole() { serving.log(line) }
        model.warmUp()
        let initial = JSONTree(description.initial)
        try model.load(initial.text)
        var mounts: [ExactText: JSONPointer] = [:]
        let parts = description.slices.map { slice in
            let pointer = JSONPointer(text: slice.mount) ?? .root
            mounts[ExactText(slice.name)] = pointer
            return JSONDomain.Part(pointer, schema: slice.schema)
        }
        var actions: [JSONDomain.Handled] = []
        for action in description.actions {
            let declaration =
                if let schema = action.schema {
                    DeclaredAction.Declaration(
                        action.type, payload: schema, faults: try serving.check(action.type, schema))
                } else { DeclaredAction.Declaration(action.type) }
            actions.append(.init(declaration, part: action.slice.flatMap { mounts[ExactText($0)] }))
        }
        let copies = ModelCopies(model, of: initial, bytesMax: serving.bytesMax, make: serving.load)
        let views = description.views.map { name in
            (
                name: name,
                look: { @Sendable (tree: JSONTree) throws(ViewFault) in
                    try look(name, tree, copies, serving.log)
                }
            )
        }
        return JSONDomain(
            initial: initial, parts: parts, actions: actions, views: views, failure: { copies.failure }
        ) { (tree, action, context) throws(Rejection) in
            if let reason = copies.failure { throw Rejection("model-too-large", reason, kind: .tooLarge) }
            return try reduce(tree, action, context, copies, serving.log)
        }
    }

    private static func reduce(
        _ tree: JSONTree, _ action: DeclaredAction, _ context: ReducerContext, _ copies: ModelCopies,
        _ log: (String) -> Void
    ) throws(Rejection) -> JSONTree {
        let type = action.declaration.type
        let result: Result<JSONTree, Rejection>
        do throws(Fault) {
            result = try copies.with(tree) { (model) throws(Fault) in
                defer { for line in model.takeConsole() { log("\(type): \(line)") } }
                switch try model.reduce(type, action.payload, meta: meta(context)) {
                case .rejected(let code, let detail, let pointer):
                    return (.failure(Rejection(code, detail, pointer: pointer)), tree)
                case .patch(let patch):
                    guard let changed = tree.applying(patch) else {
                        throw Fault(message: "the engine's copy of the state is another one")
                    }
                    return (.success(changed), changed)
                }
            }
        } catch {
            log("\(type): \(error)")
            throw error.rejection(of: type)
        }
        return try result.get()
    }

    /// What a reducer sees as `action.meta`.
    private static func meta(_ context: ReducerContext) -> [UInt8] {
        var writer = JSONWriter(capacity: 128)
        var isFirst = true
        writer.byte(UInt8(ascii: "{"))
        if let name = context.name {
            writer.member("id", name.id, &isFirst)
            writer.member("time", RFC3339.text(milliseconds: name.time.milliseconds), &isFirst)
        }
        writer.member("by", context.subject, &isFirst)
        writer.byte(UInt8(ascii: "}"))
        return writer.bytes
    }

    private static func look(
        _ name: String, _ tree: JSONTree, _ copies: ModelCopies, _ log: (String) -> Void
    ) throws(ViewFault) -> [UInt8] {
        do throws(Fault) {
            return try copies.with(tree) { (model) throws(Fault) in
                defer { for line in model.takeConsole() { log("view \(name): \(line)") } }
                return (try model.view(name).text, tree)
            }
        } catch {
            log("view \(name): \(error)")
            throw ViewFault(error.isTimeout ? "it took longer than it may" : error.sentence)
        }
    }
}

extension Model.Fault {
    /// The answer to an action whose reducer has a fault.
    fileprivate func rejection(of type: String) -> Rejection {
        isTimeout
            ? Rejection("reducer-timeout", "the reducer of \(type) took longer than it may", kind: .invalid)
            : Rejection("reducer-fault", "the reducer of \(type) has a fault: \(sentence)", kind: .invalid)
    }
}

extension JSONTree {
    /// The value with the operations of a patch; nil where one names a value that is not there.
    fileprivate func applying(_ patch: JSONValue) -> JSONTree? {
        guard case .array(let operations) = patch else { return nil }
        var tree = self
        for operation in operations {
            guard case .object(let members) = operation, case .string(let name)? = members["op"],
                case .string(let path)? = members["path"], let pointer = JSONPointer(text: path),
                let changed = tree.applying(name, at: pointer.tokens[...], members["value"].map { JSONTree($0) })
            else { return nil }
            tree = changed
        }
        return tree
    }
}
