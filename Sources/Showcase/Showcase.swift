package import StateStore

/// The facet of the state that a view of the count reads.
protocol KnowsTheCount {
    var counterValue: Int { get }
}

/// All example domains, each as a slice.
package struct Showcase: Domain {
    package struct State: StateType {
        var counter = Counter.State()
        var navigation = Navigation.State()
        var session = Session.State()
        var tasks = Tasks.State()
        var canvas = Canvas.State()
        var films = Films.State()
        package init() {}
    }

    private let films: Films

    /// Makes all example domains; `fetchFilms` fetches the films.
    package init(fetchFilms: Films.Fetch? = nil) {
        films = fetchFilms.map { Films(fetch: $0) } ?? Films()
    }

    package var reducer: some Reducer<State> {
        Slice("counter", \.counter) { Counter() }
        Slice("navigation", \.navigation) { Navigation() }
        Slice("session", \.session) { Session() }
        Slice("tasks", \.tasks) { Tasks() }
        Slice("canvas", \.canvas) { Canvas() }
        Slice("films", \.films) { films }

        View("count", of: (any KnowsTheCount).self, reads: ["/counter"]) { ["count": $0.counterValue] }
    }
}

extension Showcase.State: KnowsTheCount {
    var counterValue: Int { counter.value }
}
