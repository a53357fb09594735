package import StateJSON

/// JSON Pointers, none of which lies inside another; a search costs O(depth of the pointer).
///
/// It is an object with a hash of its own, because the filters of a client's requests share it.
package final class PointerSet: Sendable {
    /// The pointers, those of fewer tokens first.
    package let pointers: [JSONPointer]
    private let tree: PointerTree<Int>
    private let hash: Int

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

    package func covers(_ pointer: JSONPointer) -> Bool { tree.overlap(pointer) == .above }

    package func overlaps(_ pointer: JSONPointer) -> Bool { tree.overlap(pointer) != .none }

    package func overlapping(_ pointer: JSONPointer) -> [JSONPointer] {
        var found: Set<Int> = []
        tree.collect(overlapping: pointer, into: &found)
        return found.sorted().map { pointers[$0] }
    }
}

extension PointerSet: Hashable {
    package static func == (left: PointerSet, right: PointerSet) -> Bool {
        left === right || left.hash == right.hash && left.pointers == right.pointers
    }

    package func hash(into hasher: inout Hasher) { hasher.combine(hash) }
}

/// The part of the state at a pointer, or what of it lies in a set.
package struct PointerFilter: Hashable, Sendable {
    private let path: JSONPointer
    /// The rest, without a pointer at the path or above it.
    private let parts: PointerSet?

    package init(_ path: JSONPointer) { (self.path, parts) = (path, nil) }

    package init(_ path: JSONPointer, in set: PointerSet) {
        (self.path, parts) = (path, set.covers(path) ? nil : set)
    }

    package static let nothing = PointerFilter(.root, in: PointerSet([]))

    package func overlaps(_ pointer: JSONPointer) -> Bool {
        guard path.overlaps(pointer) else { return false }
        return parts?.overlaps(pointer.tokens.count > path.tokens.count ? pointer : path) ?? true
    }
}
