import StateStore

/// The domain of the transcripts: a counter, tasks, and labels whose keys and values are anything.
struct Demo: Domain {
    struct State: StateType {
        var counter = Counter()
        var labels: [String: String?] = [:]
        var tasks = Tasks()
    }
    struct Counter: StateType, Codable { var value = 0 }
    struct Tasks: StateType { var table = EntityTable<Int, Task>() }
    struct Task: Codable { var title: String; var done = false }
    struct Titled: Codable { var title: String; var done: Bool?; var first: Int?; var order: Order? }
    enum Order: String, Codable, CaseIterable { case up, down }

    struct Add: Action { static let type = "counter/add"; var amount: Int }
    struct Reset: Action { static let type = "counter/reset" }
    struct AddTask: ValidatedAction {
        static let type = "tasks/add"
        var id: Int
        var title: String
        func validate() throws(Rejection) {
            guard !title.isEmpty else {
                throw Rejection("tasks.title", "a title is not empty", kind: .invalid, pointer: "/title")
            }
        }
    }
    struct CompleteTask: Action { static let type = "tasks/complete"; var id: Int; var done: Bool? }
    struct RemoveTask: Action { static let type = "tasks/remove"; var id: Int }
    struct MoveTask: Action { static let type = "tasks/move"; var id: Int; var to: Order }
    struct SetLabel: Action { static let type = "labels/set"; var key: String; var value: String? }

    var reducer: some Reducer<State> {
        Slice("counter", \.counter) {
            On(Add.self) { state, action throws(Rejection) in
                guard state.value + action.amount >= 0 else {
                    throw Rejection(
                        "counter.negative", "\(state.value) + \(action.amount) is below 0", pointer: "/amount")
                }
                state.value += action.amount
            }
            On(Reset.self) { state, _ in state.value = 0 }
        }
        Field("labels", \.labels)
        On(SetLabel.self) { state, action in state.labels[action.key] = .some(action.value) }
        Slice("tasks", \.tasks) {
            Entities("entities", ids: "ids", \.table)
            On(AddTask.self) { state, action throws(Rejection) in
                guard !state.table.contains(action.id) else {
                    throw Rejection("tasks.duplicate", "task \(action.id) exists already", pointer: "/id")
                }
                state.table[action.id] = Task(title: action.title)
            }
            On(CompleteTask.self) { state, action throws(Rejection) in
                try state.require(action.id)
                state.table.update(action.id) { $0.done = action.done ?? true }
            }
            On(RemoveTask.self) { state, action throws(Rejection) in
                try state.require(action.id)
                state.table[action.id] = nil
            }
            On(MoveTask.self) { state, action throws(Rejection) in
                try state.require(action.id)
                state.table.move(action.id, to: action.to == .up ? 0 : state.table.count - 1)
            }
            View("open", reads: ["/entities", "/ids"]) { state in state.table.filter { !$0.entity.done }.map(\.id) }
            View("titled", parameters: Titled.self) { state, titled in
                let found = state.table.filter { id, task in
                    task.title == titled.title && titled.done.map { $0 == task.done } ?? true
                }
                let ids = found.map(\.id)
                return Array((titled.order == .down ? ids.reversed() : ids).prefix(titled.first ?? .max))
            }
        }
        View("label", reading: [\.labels]) { state, context in
            ["of": context.subject, "is": context.subject.flatMap { state.labels[$0] ?? nil }]
        }
    }
}

extension Demo.Tasks {
    fileprivate func require(_ id: Int) throws(Rejection) {
        guard table.contains(id) else { throw Rejection("tasks.unknown", "there is no task \(id)", pointer: "/id") }
    }
}
