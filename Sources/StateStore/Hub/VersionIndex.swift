internal import HeapModule

/// Which watches wait for which version.
///
/// O(log n) a watch, whatever versions clients name.
struct VersionIndex: Sendable {
    private var watches: [Version: Set<Watch.ID>] = [:]
    /// The versions that watches wait for, and some that they no longer wait for.
    private var versions = Heap<Version>()

    mutating func insert(_ id: Watch.ID, at version: Version) {
        if watches[version] == nil { versions.insert(version) }
        watches[version, default: []].insert(id)
    }

    mutating func remove(_ id: Watch.ID, at version: Version) {
        watches[version]?.remove(id)
        guard watches[version]?.isEmpty == true else { return }
        watches[version] = nil
        // Clients that come and go leave versions behind: they are swept out when they are the most.
        if versions.count > 1024, versions.count > 2 * watches.count { versions = Heap(watches.keys) }
    }

    /// How many versions are kept, those that no watch waits for any more included.
    var versionsCount: Int { versions.count }

    /// Whether a watch waits for this version or an older one.
    func isReached(_ version: Version) -> Bool { versions.min.map { $0 <= version } ?? false }

    /// Takes out the watches that wait for this version or an older one.
    mutating func takeReached(_ version: Version) -> [Watch.ID] {
        var found: [Watch.ID] = []
        while let next = versions.min, next <= version {
            versions.removeMin()
            found += watches.removeValue(forKey: next) ?? []
        }
        return found.sorted()
    }
}
