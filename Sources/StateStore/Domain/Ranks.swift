enum Ranks {
    /// Between two appended neighbours there is room for 64 halvings.
    typealias Rank = UInt128
    static var first: Rank { 1 << 127 }
    static var step: Rank { 1 << 64 }

    static func appended(_ position: Int) -> Rank { first + Rank(position) * step }
}

extension PersistentMap where Key == Ranks.Rank {
    mutating func insert(_ value: Value, at position: Int) {
        while true {
            if let rank = freeRank(before: position) { return set(rank, value) }
            let moved = spread(around: position)
            for (old, _, _) in moved { remove(old) }
            for (_, new, value) in moved { set(new, value) }
        }
    }

    /// A free rank between the neighbours of a position, or at the nearest end for a position outside; nil if no
    /// rank is free, which is so after 64 insertions at one position.
    func freeRank(before position: Int) -> Ranks.Rank? {
        guard let last, let first else { return Ranks.first }
        if position >= count { return last.key + Ranks.step }
        if position <= 0 { return first.key - Ranks.step }
        let (below, above) = (self[at: position - 1].key, self[at: position].key)
        return above - below < 2 ? nil : below + (above - below) / 2
    }

    /// Some 32 elements get new ranks, or more where their neighbours leave no room; the position is inside the order.
    func spread(around position: Int) -> [(old: Ranks.Rank, new: Ranks.Rank, value: Value)] {
        var width = 16
        while true {
            let range = Swift.max(0, position - width)..<Swift.min(count, position + width)
            let room = Ranks.step * Ranks.Rank(range.count)
            let below = range.lowerBound > 0 ? self[at: range.lowerBound - 1].key : self[at: 0].key - room
            let above = range.upperBound < count ? self[at: range.upperBound].key : self[at: count - 1].key + room
            let gap = (above - below) / Ranks.Rank(range.count + 1)
            guard gap >= 1 << 32 else {
                width *= 2
                continue
            }
            return range.enumerated().map { index, position in
                let (rank, value) = self[at: position]
                return (rank, below + gap * Ranks.Rank(index + 1), value)
            }
        }
    }
}
