internal import StateJSON
package import StateStore
internal import Synchronization

package final class ServedModel: Domain {
    package typealias State = JSONTree

    private let serving: Model.Serving
    private let description: Model.Description
    private let copies: Mutex<ModelCopies>
    private let source: Mutex<[UInt8]>
    private let checks: Model.Checks
    private let initial: JSONTree
    private let parts: [JSONLayout.Part]

    /// Of a file with `export const version`.
    private static let versionPart = JSONPointer(["_version"])
    /// How deep a reducer may make the state; a server reads no journal that is deeper than 1,000.
    private static let levelsMax = 400

    /// Throws for a schema with a fault, for a version that has no place in the state, and where the machine has no engine;
    /// a nil `source` reads the file.
    package init(_ serving: Model.Serving, source: [UInt8]? = nil) throws(Model.Fault) {
        let source = if let source { source } else { try serving.read() }
        self.source = Mutex(source)
        let model = try Self.load(source, serving)
        self.serving = serving
        description = model.description
        (initial, parts) = try Self.layout(of: description)
        checks = try model.checks(serving.check)
        copies = Mutex(try Self.copies(model, source, serving))
    }

    private static func load(_ source: [UInt8], _ serving: Model.Serving) throws(Model.Fault) -> Model {
        try Model(source, name: serving.name, time: serving.time, answerBytesMax: serving.answerBytesMax)
    }

    private static func copies(
        _ model: Model, _ source: [UInt8], _ serving: Model.Serving
    ) throws(Model.Fault) -> ModelCopies {
        for line in model.takeConsole() { serving.report(.console(line)) }
        let initial = JSONTree(model.description.initial)
        try model.load(initial.text)
        return ModelCopies(model, of: initial, bytesMax: serving.bytesMax) { () throws(Model.Fault) in
            try load(source, serving)
        }
    }

    /// Reduces by the new file from the next action on, where it declares the same.
    private func reload(for state: JSONTree) throws -> DomainReload {
        let source = try serving.read()
        let present = self.source.withLock(\.self)
        guard source != present else { return .unchanged }
        let model = try Self.load(source, serving)
        guard try model.description.declares(theSameAs: description) else {
            // The start that follows says what the state lacks.
            var checking = serving
            checking.report = { [serving] in if case .lacks = $0 {} else { serving.report($0) } }
            let other = try CompiledDomain(try ServedModel(checking, source: source))
            do {
                _ = try other.resumed(from: state.text)
            } catch {
                throw Model.Fault("the state does not fit the file: at \(error.place) \(error.detail)")
            }
            return .needsRestart
        }
        let new = try Self.copies(model, source, serving)
        reportLacks(of: state, model.description)
        // The old engines end outside the lock.
        _ = copies.withLock { exchange(&$0, with: new) }
        self.source.withLock { $0 = source }
        return .taken
    }

    private var current: ModelCopies { copies.withLock { $0 } }

    // MARK: The domain

    private static func layout(
        of description: Model.Description
    ) throws(Model.Fault) -> (initial: JSONTree, parts: [JSONLayout.Part]) {
        let initial = JSONTree(description.initial)
        let parts = description.slices.map { JSONLayout.Part($0.place, schema: $0.schema, isTable: $0.isTable) }
        guard let version = description.version else { return (initial, parts) }
        guard initial.tree(at: versionPart.tokens[...]) == nil, !parts.contains(where: { $0.pointer == .root }),
            let wider = initial.adding(JSONTree(version), at: versionPart)
        else {
            throw Model.Fault(
                message: "a file with a version must mount each reducer under a name, and not under _version")
        }
        return (wider, parts + [JSONLayout.Part(versionPart, schema: ["type": "integer"], isStore: false)])
    }

    package var reducer: some Reducer<JSONTree> {
        JSONLayout(initial: initial, parts: parts, hooks: hooks)
        for action in description.actions {
            let declaration = DeclaredAction.Declaration(
                action.type, payload: action.schema, isInternal: action.isInternal,
                faults: checks.payloads[ExactText(action.type)] ?? { _ in [] })
            let slice = description.slices.first { ExactText($0.name) == ExactText(optional: action.slice) }
            OnDeclared(declaration, of: slice?.place) { (tree, action, context) throws(Rejection) in
                try self.reduce(tree, action, context)
            }
        }
        for view in description.views {
            let parameters = view.parameters.flatMap { schema in
                checks.parameters[ExactText(view.name)].map { ViewParameters.declared(schema, faults: $0) }
            }
            View(
                view.name, reads: view.reads?.map { JSONPointer([$0]) } ?? [.root], parameters: parameters,
                takesSubject: view.takesSubject
            ) { (tree, arguments) throws(ViewFault) in try self.look(at: view.name, arguments, of: tree) }
        }
    }

    private var hooks: DomainHooks {
        var hooks = DomainHooks()
        hooks.resume = { recorded throws(JSONFault) in try self.resume(recorded) }
        hooks.reload = { try self.reload(for: $0) }
        hooks.failure = { self.current.failure }
        hooks.declines = { self.newerVersion(of: $0) }
        return hooks
    }

    /// A recorded state as this version of the file has it.
    private func resume(_ recorded: JSONTree) throws(JSONFault) -> JSONTree {
        var state = recorded
        let old = recorded.tree(at: Self.versionPart.tokens[...])
        let (from, to) = (old?.value ?? 1, description.version ?? 1)
        if from != to {
            guard description.migrates, case .integer(let number) = from else {
                throw JSONFault(
                    .mismatch, at: Self.versionPart,
                    "version \(String(decoding: from.text, as: UTF8.self)) of the model has made the state, this file is version \(String(decoding: to.text, as: UTF8.self)), and it exports no migrate(state, fromVersion)"
                )
            }
            state = state.applying("remove", at: Self.versionPart.tokens[...], nil) ?? state
            do throws(Model.Fault) {
                let migrated = try current.withAny { (model) throws(Model.Fault) in
                    try model.migrate(state.text, from: Double(number))
                }
                state = JSONTree(migrated)
            } catch {
                throw JSONFault(.mismatch, at: .root, "migrate has a fault: \(error.sentence)")
            }
        }
        if let version = description.version {
            state = state.applying("add", at: Self.versionPart.tokens[...], JSONTree(version)) ?? state
        } else if old != nil {
            state = state.applying("remove", at: Self.versionPart.tokens[...], nil) ?? state
        }
        reportLacks(of: state, description)
        let resumed = try JSONLayout.fit(
            state, to: parts.map(\.pointer), initial: initial, dropping: serving.dropped)
        current.prepare(resumed)
        return resumed
    }

    /// A reducer that reads such a member gets `undefined`.
    private func reportLacks(of state: JSONTree, _ description: Model.Description) {
        var lacking: [(place: JSONPointer, initial: JSONValue)] = []
        for slice in description.slices {
            guard case .object(let initial)? = description.initial[pointer: slice.place],
                let recorded = state.tree(at: slice.place.tokens[...]), recorded.isArray == false
            else { continue }
            for (name, value) in initial.members where recorded.tree(at: [name]) == nil {
                lacking.append((JSONPointer(slice.place.tokens + [name]), value))
            }
        }
        guard !lacking.isEmpty else { return }
        var version = 2
        if case .integer(let present)? = description.version { version = Int(present) + 1 }
        let lines = lacking.map { place, value in
            "state\(place.tokens.map(Self.member).joined()) = \(String(decoding: value.text, as: UTF8.self));"
        }
        let code =
            "export const version = \(version); export const migrate = (state) => { \(lines.joined(separator: " ")) };"
        serving.report(.lacks(members: lacking.map(\.place), code: code))
    }

    private static func member(_ name: String) -> String {
        let isWord = !name.isEmpty && name.utf8.allSatisfy { $0 == 0x5F || (0x61...0x7A).contains($0 | 0x20) }
        return isWord ? ".\(name)" : "[\(String(decoding: JSONValue.string(name).text, as: UTF8.self))]"
    }

    // MARK: Its functions

    private func reduce(
        _ tree: JSONTree, _ action: DeclaredAction, _ context: ReducerContext
    ) throws(Rejection) -> JSONTree {
        let copies = current
        if let failure = copies.failure { throw Rejection(failure.code, failure.detail, kind: .tooLarge) }
        let type = action.declaration.type
        var later: [JSONValue] = []
        func attempt() throws(Model.Fault) -> Result<JSONTree, Rejection> {
            try copies.with(tree) { (model) throws(Model.Fault) in
                defer { for line in model.takeConsole() { serving.report(.console("\(type): \(line)")) } }
                switch try model.reduce(type, action.payload, meta: Self.meta(context)) {
                case .rejected(let code, let detail, let pointer):
                    return (.failure(Rejection(code, detail, pointer: pointer)), tree)
                case .patch(let patch, let requests):
                    later = requests
                    guard let changed = try? tree.applying(patch: patch) else {
                        throw Model.Fault("the engine's copy of the state is another one", .engine)
                    }
                    return (.success(changed), changed)
                }
            }
        }
        let result: Result<JSONTree, Rejection>
        do throws(Model.Fault) {
            do throws(Model.Fault) {
                result = try attempt()
            } catch  where error.cause == .timeout || error.cause == .engine {
                // Another engine has no garbage to collect in the time of the reducer, and exactly this state.
                result = try attempt()
            }
        } catch {
            serving.report(.failed("\(type): \(error)"))
            if error.cause != .model { copies.prepare(tree) }
            throw rejection(of: type, with: error)
        }
        let changed = try result.get()
        // The engine counts the levels of each value that it adds, and not those above it.
        guard changed.depth <= max(Self.levelsMax, tree.depth) else {
            throw rejection(of: type, with: Model.Fault("the state has more than \(Self.levelsMax) levels"))
        }
        try check(changed, madeOf: tree)
        for request in later { try schedule(request, context) }
        return changed
    }

    private func schedule(_ request: JSONValue, _ context: ReducerContext) throws(Rejection) {
        guard case .object(let members) = request else { return }
        if case .string(let name)? = members["unschedule"] { return context.unschedule(name) }
        var name: String?
        if case .string(let text)? = members["name"] { name = text }
        let due: DueTime? =
            switch (members["after"], members["at"]) {
            case (.integer(let seconds)?, _): DueTime(seconds: Double(seconds))
            case (.double(let seconds)?, _): DueTime(seconds: seconds)
            case (_, .string(let text)?): DueTime(text: text)
            default: nil
            }
        guard let due, let action = members["action"] else {
            throw Rejection(
                "reducer-fault",
                "the reducer schedules an action without a time: it needs one such as 2030-01-31T12:00:00Z",
                kind: .invalid)
        }
        context.schedule(action.text, due, as: name)
    }

    /// The cost is that of the slices that have a schema and have changed.
    private func check(_ changed: JSONTree, madeOf tree: JSONTree) throws(Rejection) {
        guard changed !== tree else { return }
        for (part, faults) in checks.slices {
            let old = tree.tree(at: part.tokens[...])
            guard let new = changed.tree(at: part.tokens[...]), new !== old,
                let fault = faults(new.text, old.map { old in { old.text } }).first
            else { continue }
            let place = JSONPointer(part.tokens + fault.pointer.tokens)
            throw Rejection(
                "state-misfit", "the state would not fit its schema: \(place.shown): \(fault.detail)", kind: .invalid)
        }
    }

    /// A server with a newer file has made the state, in a history that both share.
    private func newerVersion(of tree: JSONTree) -> DomainFailure? {
        guard case .integer(let version) = description.version ?? 1,
            case .integer(let found)? = tree.tree(at: Self.versionPart.tokens[...])?.value, found > version
        else { return nil }
        return DomainFailure(
            "model-version",
            "another server has made the state version \(found) of the model, and this server's file is version \(version): give this server the newer file"
        )
    }

    private static func meta(_ context: ReducerContext) -> [UInt8] {
        JSONWriter.object { writer in
            if let name = context.name {
                writer.member("id", name.id)
                writer.member("time", RFC3339.text(milliseconds: name.time.milliseconds))
            }
            writer.member("by", context.subject)
        }
    }

    private func look(at name: String, _ arguments: ViewArguments, of tree: JSONTree) throws(ViewFault) -> [UInt8] {
        let copies = current
        do throws(Model.Fault) {
            return try copies.with(tree) { (model) throws(Model.Fault) in
                defer { for line in model.takeConsole() { serving.report(.console("view \(name): \(line)")) } }
                let value = try model.view(name, parameters: arguments.parameters, subject: arguments.subject)
                return (value.text, tree)
            }
        } catch {
            serving.report(.failed("view \(name): \(error)"))
            if error.cause != .model { copies.prepare(tree) }
            throw ViewFault(
                error.cause == .timeout
                    ? "it took longer than the \(milliseconds * 10) ms of processor time that it may, ten times model_milliseconds_max"
                    : error.sentence)
        }
    }

    private var milliseconds: Int { Int(serving.time / .milliseconds(1)) }

    private func rejection(of type: String, with fault: Model.Fault) -> Rejection {
        switch fault.cause {
        case .timeout:
            Rejection(
                "reducer-timeout",
                "the reducer of \(type) took longer than the \(milliseconds) ms of processor time that it may (model_milliseconds_max), also in another engine",
                kind: .invalid)
        case .size:
            Rejection(
                "model-too-large",
                "the reducer of \(type) makes a change of more than \(serving.answerBytesMax) bytes at once",
                kind: .tooLarge)
        case .model, .engine:
            Rejection("reducer-fault", "the reducer of \(type) has a fault: \(fault.sentence)", kind: .invalid)
        }
    }
}

extension Model.Description {
    /// Only the functions differ then.
    fileprivate func declares(theSameAs other: Self) throws -> Bool { try declared == other.declared }

    private var declared: JSONValue {
        get throws {
            var declared = self
            (declared.migrates, declared.initial) = (true, .null)
            for index in actions.indices {
                (declared.actions[index].slice, declared.actions[index].takesAction) = (nil, true)
            }
            return try JSONValue(parsing: JSON.encode(declared), depthMax: 1000)
        }
    }
}
