package import StateStore

/// A task list, normalised: a table of the tasks by ID, and lists of IDs for the order and the favourites.
package struct Tasks: Domain {
    package struct State: StateType {
        var tasks = EntityTable<Int, Task>()
        var favourites: [Int] = []
        package init() {}
    }

    struct Task: Codable {
        var title: String
        var done = false
    }

    struct Add: ValidatedAction {
        static let type = "tasks/add"
        var id: Int
        var title: String

        func validate() throws(Rejection) { try Tasks.check(title) }
    }

    struct Rename: ValidatedAction {
        static let type = "tasks/rename"
        var id: Int
        var title: String

        func validate() throws(Rejection) { try Tasks.check(title) }
    }

    /// Marks a task as done, or, with `done` false, as to be done again.
    struct Complete: Action {
        static let type = "tasks/complete"
        var id: Int
        var done: Bool?
    }

    /// Removes a task, from the favourites too.
    struct Remove: Action {
        static let type = "tasks/remove"
        var id: Int
    }

    struct Favourite: Action {
        static let type = "tasks/favourite"
        var id: Int
        var favourite: Bool?
    }

    /// Moves a task to a position in the order, counted from 0.
    struct Move: Action {
        static let type = "tasks/move"
        var id: Int
        var position: Int
    }

    package init() {}

    package var reducer: some Reducer<State> {
        Entities("entities", ids: "ids", \.tasks)
        Field("favourites", \.favourites)

        On(Add.self) { state, action throws(Rejection) in
            guard !state.tasks.contains(action.id) else {
                throw Rejection("tasks.duplicate", "task \(action.id) exists already", pointer: "/id")
            }
            state.tasks[action.id] = Task(title: action.title)
        }
        On(Rename.self) { state, action throws(Rejection) in
            try state.change(action.id) { $0.title = action.title }
        }
        On(Complete.self) { state, action throws(Rejection) in
            try state.change(action.id) { $0.done = action.done ?? true }
        }
        On(Remove.self) { state, action throws(Rejection) in
            try state.require(action.id)
            state.tasks[action.id] = nil
            state.favourites.removeAll { $0 == action.id }
        }
        On(Favourite.self) { state, action throws(Rejection) in
            try state.require(action.id)
            switch (state.favourites.firstIndex(of: action.id), action.favourite ?? true) {
            case (nil, true): state.favourites.append(action.id)
            case (let index?, false): state.favourites.remove(at: index)
            default: break
            }
        }
        On(Move.self) { state, action throws(Rejection) in
            try state.require(action.id)
            guard (0..<state.tasks.count).contains(action.position) else {
                throw Rejection(
                    "tasks.position", "position \(action.position) is not in a list of \(state.tasks.count)",
                    pointer: "/position")
            }
            state.tasks.move(action.id, to: action.position)
        }

        View("open", reads: ["/entities", "/ids"]) { state in
            state.tasks.filter { !$0.entity.done }.map(\.id)
        }
    }

    private static func check(_ title: String) throws(Rejection) {
        guard !title.allSatisfy(\.isWhitespace) else {
            throw Rejection("tasks.title", "a title needs a visible character", kind: .invalid, pointer: "/title")
        }
    }
}

extension Tasks.State {
    fileprivate func require(_ id: Int) throws(Rejection) {
        guard tasks.contains(id) else {
            throw Rejection("tasks.unknown", "there is no task \(id)", pointer: "/id")
        }
    }

    fileprivate mutating func change(_ id: Int, _ change: (inout Tasks.Task) -> Void) throws(Rejection) {
        try require(id)
        tasks.update(id, change)
    }
}
