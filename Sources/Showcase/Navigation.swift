package import StateStore

/// The route of the user: a stack of segments, and the transition from the route before.
///
/// The transition is data, so that a client turns it into pops and pushes of its own screens without comparing routes.
package struct Navigation: Domain {
    package struct State: StateType, Codable {
        var route: [String] = []
        var transition = Transition()
        package init() {}
    }

    /// The difference between two routes: after their common prefix, the popped and then the pushed segments.
    struct Transition: Codable, Equatable {
        var kept = 0
        /// The segments that the new route does not have, the deepest last.
        var popped: [String] = []
        /// The segments that only the new route has, the deepest last.
        var pushed: [String] = []
    }

    struct Set: ValidatedAction {
        static let type = "navigation/set"
        var route: [String]

        func validate() throws(Rejection) {
            guard route.count <= depthMax else {
                throw Rejection(
                    "navigation.depth", "a route has at most \(depthMax) segments", kind: .invalid, pointer: "/route")
            }
            for (index, segment) in route.enumerated() { try Navigation.check(segment, "/route/\(index)") }
        }
    }

    struct Push: ValidatedAction {
        static let type = "navigation/push"
        var segment: String

        func validate() throws(Rejection) { try Navigation.check(segment, "/segment") }
    }

    struct Pop: Action {
        static let type = "navigation/pop"
    }

    package init() {}

    package var reducer: some Reducer<State> {
        On(Set.self) { state, action in state.go(to: action.route) }
        On(Push.self) { state, action throws(Rejection) in
            guard state.route.count < depthMax else {
                throw Rejection("navigation.depth", "the route has \(depthMax) segments already")
            }
            state.go(to: state.route + [action.segment])
        }
        On(Pop.self) { state, _ throws(Rejection) in
            guard !state.route.isEmpty else { throw Rejection("navigation.empty", "there is nowhere to go back to") }
            state.go(to: state.route.dropLast())
        }
    }

    private static func check(_ segment: String, _ pointer: String) throws(Rejection) {
        guard (1...segmentBytesMax).contains(segment.utf8.count) else {
            throw Rejection(
                "navigation.segment", "a segment has 1 to \(segmentBytesMax) bytes", kind: .invalid, pointer: pointer)
        }
    }
}

private let depthMax = 100
private let segmentBytesMax = 200

extension Navigation.State {
    fileprivate mutating func go(to next: [String]) {
        // The comparison is by bytes, as in JSON: Swift takes two spellings of one accented letter for one string.
        let kept = zip(route, next).prefix { $0.utf8.elementsEqual($1.utf8) }.count
        transition = .init(kept: kept, popped: Array(route.dropFirst(kept)), pushed: Array(next.dropFirst(kept)))
        route = next
    }
}
