/// The figures of a hub at one instant.
package struct HubFigures: Sendable {
    /// How many requests wait, streams not included.
    package let waits: CountByRoute
    /// How many streams there are.
    package let streams: CountByRoute
    /// The version of the published snapshot.
    package let latest: Version
    /// The oldest version that a client can follow from.
    package let oldest: Version
    /// How many commits are in memory.
    package let historyCommitsCount: Int
    /// About how many bytes the commits in memory have.
    package let historyBytes: Int
}

/// How many watches there are of each route.
package struct CountByRoute: Sendable, Equatable {
    private var counts = [Int](repeating: 0, count: Watch.Route.allCases.count)

    /// How many watches there are of a route.
    package internal(set) subscript(route: Watch.Route) -> Int {
        get { counts[route.rawValue] }
        set { counts[route.rawValue] = newValue }
    }
}
