package import StateJSON

/// JSON Pointers, none of which lies inside another, found by a pointer that overlaps them.
///
/// A search costs O(depth of the pointer), however many pointers there are. It is an object with a hash of its own, because
/// the filters of a client's requests share it.
package final class PointerSet: Sendable {
    /// The pointers, those of fewer tokens first.
    package let pointers: [JSONPointer]
    private let tree: PointerTree<Int>
    private let hash: Int

    /// Makes a set of those of some pointers that lie in no other one of them.
    ///
    /// O(n log n) in the number of pointers.
    package init(_ pointers: [JSONPointer]) {
        var (tree, kept) = (PointerTree<Int>(), [JSONPointer]())
        for pointer in pointers.sorted(by: { $0.tokens.count < $1.tokens.count })
        where tree.overlap(pointer) != .above {
            tree.insert(kept.count, at: pointer)
            kept.append(pointer)
        }
        (self.tree, self.pointers, hash) = (tree, kept, kept.hashValue)
    }

    /// Whether a pointer is one of these, or lies inside one.
    package func covers(_ pointer: JSONPointer) -> Bool { tree.overlap(pointer) == .above }

    /// Whether a pointer is one of these, lies inside one, or has one inside.
    package func overlaps(_ pointer: JSONPointer) -> Bool { tree.overlap(pointer) != .none }

    /// The pointers of the set that overlap a pointer, in their order.
    package func overlapping(_ pointer: JSONPointer) -> [JSONPointer] {
        var found: Set<Int> = []
        tree.collect(overlapping: pointer, into: &found)
        return found.sorted().map { pointers[$0] }
    }
}

extension PointerSet: Hashable {
    /// Whether the sets have the same pointers in the same order.
    package static func == (left: PointerSet, right: PointerSet) -> Bool {
        left === right || left.hash == right.hash && left.pointers == right.pointers
    }

    /// Hashes the pointers, at a constant cost.
    package func hash(into hasher: inout Hasher) { hasher.combine(hash) }
}

/// The part of the state at a pointer, or what of it lies in a set.
package struct PointerFilter: Hashable, Sendable {
    private let path: JSONPointer
    /// The rest, without a pointer at the path or above it.
    private let parts: PointerSet?

    /// Makes a filter of the whole part at a pointer.
    package init(_ path: JSONPointer) { (self.path, parts) = (path, nil) }

    /// Makes a filter of what lies in a set of the part at a pointer.
    package init(_ path: JSONPointer, in set: PointerSet) {
        (self.path, parts) = (path, set.covers(path) ? nil : set)
    }

    /// The filter of nothing.
    package static let nothing = PointerFilter(.root, in: PointerSet([]))

    /// Whether a change at a pointer concerns the filter.
    package func overlaps(_ pointer: JSONPointer) -> Bool {
        guard path.overlaps(pointer) else { return false }
        return parts?.overlaps(pointer.tokens.count > path.tokens.count ? pointer : path) ?? true
    }
}
