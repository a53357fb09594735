extension Core {
    func dispatch(_ action: any Action, _ context: MiddlewareContext<State>) throws(Rejection) {
        // Where no middleware has anything to do, the way through them would only cost time.
        if onlyValidates, let entry = domain.entry(of: action), !entry.isValidated {
            return try reduce(action, by: entry, context)
        }
        try pass(action, context, from: 0)
    }

    private func pass(_ action: any Action, _ context: MiddlewareContext<State>, from index: Int) throws(Rejection) {
        guard index < steps.count else {
            guard let entry = domain.entry(of: action) else { throw CompiledDomain<State>.unknown(action) }
            return try reduce(action, by: entry, context)
        }
        try steps[index].process(action, context) { (next) throws(Rejection) in
            try pass(next, context, from: index + 1)
        }
    }

    private func reduce(
        _ action: any Action, by entry: ActionEntry, _ context: MiddlewareContext<State>
    ) throws(Rejection) {
        if entry.isCommand { return try create(from: action, entry, context) }
        try context.reduce(action, entry) { (state) throws(Rejection) in
            try domain.reduce(&state, action, by: entry, context.reducerContext)
        }
    }

    private func create(
        from command: any Action, _ entry: ActionEntry, _ context: MiddlewareContext<State>
    ) throws(Rejection) {
        guard let action = try domain.create(command, by: entry, in: context.state) else { return }
        // A command may make a command. A command that makes itself would never end without this limit.
        guard context.commands.depth < 16 else {
            throw Rejection(
                "command-loop", "\(command.typeName) has made 16 commands of commands, and still no action")
        }
        context.commands.depth += 1
        context.commands.haveMade = true
        defer { context.commands.depth -= 1 }
        try dispatch(action, context)
    }
}
