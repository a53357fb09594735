/// The limits on watches.
package struct WatchLimits: Sendable {
    /// How many watches there may be in all.
    package var watchesMax: Int
    /// How many watches one client's address may have.
    package var watchesPerClientMax: Int

    /// About how many bytes the values may have that the watches wait for; one client's, half of them.
    package var valuesBytesMax: Int
    /// How many different views with arguments may be watched.
    package var viewsMax: Int

    /// How many different queries may be watched.
    package var queriesMax: Int
    /// About how many bytes may be kept of watched queries; one that would take more is evaluated anew.
    package var queriesBytesMax: Int
    /// The memory in which evaluations of watched queries, and what is kept of them, count.
    package var memory: ClientMemory

    package init(
        watchesMax: Int = 20_000, watchesPerClientMax: Int = 20_000, valuesBytesMax: Int = 64 << 20,
        viewsMax: Int = 10_000, queriesMax: Int = 2000, queriesBytesMax: Int = 64 << 20,
        memory: ClientMemory = ClientMemory()
    ) {
        self.memory = memory
        (self.queriesMax, self.queriesBytesMax) = (queriesMax, queriesBytesMax)
        self.watchesMax = watchesMax
        self.watchesPerClientMax = watchesPerClientMax
        self.valuesBytesMax = valuesBytesMax
        self.viewsMax = viewsMax
    }
}

/// The limit for which a watch was not registered.
package enum WatchRefusal: Error, Sendable {
    /// There are as many watches as the store allows.
    case all
    /// There are as many watches of this client as its share allows.
    case client
    /// As many different views with arguments are watched as the store allows.
    case views
    /// There are as many different queries as may be watched.
    case queries
    /// There is no memory for what the hub would keep.
    case memory(ClientMemory.Refusal)
}
