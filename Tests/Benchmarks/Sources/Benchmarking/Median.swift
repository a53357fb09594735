extension Collection<Double> {
    /// The middle value, or the mean of the middle two; nil for an empty array.
    package var median: Double? {
        let ordered = sorted()
        guard !ordered.isEmpty else { return nil }
        let middle = ordered.count / 2
        return ordered.count.isMultiple(of: 2) ? (ordered[middle - 1] + ordered[middle]) / 2 : ordered[middle]
    }

    /// The value that this fraction of all values does not exceed, by the nearest rank; nil for an empty array.
    package func percentile(_ fraction: Double) -> Double? {
        let ordered = sorted()
        guard !ordered.isEmpty else { return nil }
        let rank = Int((fraction * Double(ordered.count)).rounded(.up))
        return ordered[Swift.min(Swift.max(rank, 1), ordered.count) - 1]
    }
}
