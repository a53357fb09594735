import Benchmark
import StateJSON
import StateStore

// What a request costs before any socket is involved: a turn of the store, and JSON read, written, compared and patched.

let benchmarks: @Sendable () -> Void = {
    Benchmark.defaultConfiguration = .init(
        metrics: [.wallClock, .throughput], timeUnits: .nanoseconds, scalingFactor: .kilo,
        maxDuration: .seconds(2))

    turns()
    texts()
    patches()
}

/// One action from the caller to its receipt: mailbox, middleware, reducer, patch, publication.
private func turns() {
    Benchmark("turn: counter, through validation and logging") { benchmark, store in
        for _ in benchmark.scaledIterations { blackHole(try store.dispatch(Counter.Add(amount: 1))) }
    } setup: {
        try Store(Counter(), middleware: [.validation, .logging { blackHole($0) }])
    }
    Benchmark("dispatch: counter, told to nobody") { benchmark, store in
        for _ in benchmark.scaledIterations { blackHole(try store.dispatch(Counter.Add(amount: 1))) }
    } setup: {
        try Store(Counter())
    }
    Benchmark("dispatch: counter, of the baseline") { benchmark, store in
        for _ in benchmark.scaledIterations { blackHole(store.dispatch(Plus(amount: 1))) }
    } setup: {
        DirectStore(Counter.State()) { action, state in
            guard let action = action as? Plus else { return state }
            return Counter.State(value: state.value &+ action.amount)
        }
    }
    for count in [10, 1000] {
        Benchmark("dispatch: toggle one of \(count) tasks in an array") { benchmark, store in
            for turn in benchmark.scaledIterations {
                blackHole(try store.dispatch(Tasks.Toggle(index: turn * 7919 % count)))
            }
        } setup: {
            try Store(Tasks(), state: Tasks.State(count: count))
        }
    }
    for count in [100, 100_000] {
        Benchmark("turn: move one of \(count)") { benchmark, store in
            for turn in benchmark.scaledIterations {
                // Each move goes where the object was not.
                let id = turn * 7919 % count
                let x = (store.state.places[id]?.x ?? 0) + 1
                blackHole(try store.dispatch(Places.Move(id: id, x: x)))
            }
        } setup: {
            try Store(Places(), state: Places.State(count: count))
        }
    }
}

private struct Plus: DirectAction { var amount: Int }

/// JSON text to typed values and back.
private func texts() {
    let action = Array(#"{"id":4711,"x":12.5}"#.utf8)
    Benchmark("decode: an action of \(action.count) bytes") { benchmark in
        for _ in benchmark.scaledIterations { blackHole(try JSON.decode(Places.Move.self, from: action)) }
    }
    for count in [1, 1000] {
        let places = (0..<count).map { Places.Place(x: Double($0), y: 0.5, label: "place \($0)") }
        Benchmark("encode: \(count) places", configuration: configuration(count)) { benchmark in
            for _ in benchmark.scaledIterations { blackHole(try JSON.encode(places)) }
        }
        Benchmark("decode: \(count) places", configuration: configuration(count)) { benchmark, text in
            for _ in benchmark.scaledIterations { blackHole(try JSON.decode([Places.Place].self, from: text)) }
        } setup: {
            try JSON.encode(places)
        }
    }
}

/// The difference of two texts, and its application to a value.
private func patches() {
    for count in [1, 1000] {
        var places = (0..<count).map { Places.Place(x: Double($0), y: 0.5, label: "place \($0)") }
        let old = places
        places[count / 2].label = "elsewhere"
        let new = places
        Benchmark("compare: \(count) places, one differs", configuration: configuration(count)) { benchmark, texts in
            for _ in benchmark.scaledIterations {
                var patch = JSONPatch()
                patch.compare(texts.old, texts.new)
                blackHole(patch)
            }
        } setup: {
            (old: try JSON.encode(old), new: try JSON.encode(new))
        }
        Benchmark("patch: one of \(count) places", configuration: configuration(count)) { benchmark, values in
            for _ in benchmark.scaledIterations {
                var value = values.old
                try value.apply(patch: values.patch)
                blackHole(value)
            }
        } setup: {
            (
                old: try JSONValue(parsing: JSON.encode(old)),
                patch: try JSONValue(
                    parsing: Array(
                        #"[{"op":"replace","path":"/\#(count / 2)/label","value":"elsewhere"}]"#.utf8))
            )
        }
    }
}

/// Fewer turns of what is larger.
private func configuration(_ count: Int) -> Benchmark.Configuration {
    var configuration = Benchmark.defaultConfiguration
    if count > 1 { configuration.scalingFactor = .one }
    return configuration
}
