internal import HeapModule

/// The watches that wait for a version, by version.
///
/// Each watch costs O(log n), whichever version its client names.
struct VersionIndex: Sendable {
    private var watches: [Version: Set<Watch.ID>] = [:]
    private var versions = Heap<Version>()

    mutating func insert(_ id: Watch.ID, at version: Version) {
        if watches[version] == nil { versions.insert(version) }
        watches[version, default: []].insert(id)
    }

    mutating func remove(_ id: Watch.ID, at version: Version) {
        watches[version]?.remove(id)
        guard watches[version]?.isEmpty == true else { return }
        watches[version] = nil
        // Removed watches leave their versions in the heap, which is built anew when most versions have no watch.
        if versions.count > 1024, versions.count > 2 * watches.count { versions = Heap(watches.keys) }
    }

    /// The number of versions in the heap, with those of former watches.
    var versionsCount: Int { versions.count }

    func isReached(_ version: Version) -> Bool { versions.min.map { $0 <= version } ?? false }

    mutating func takeReached(_ version: Version) -> [Watch.ID] {
        var found: [Watch.ID] = []
        while let next = versions.min, next <= version {
            versions.removeMin()
            found += watches.removeValue(forKey: next) ?? []
        }
        return found.sorted()
    }
}
