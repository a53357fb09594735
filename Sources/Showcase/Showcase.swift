package import StateStore

/// All the example domains as one.
package struct Showcase: Domain {
    package struct State: StateType {
        var counter = Counter.State()
        var tasks = Tasks.State()
        package init() {}
    }

    package init() {}

    package var reducer: some Reducer<State> {
        Slice("counter", \.counter) { Counter() }
        Slice("tasks", \.tasks) { Tasks() }
    }
}
