internal import StateJSON
internal import StateJournal
internal import StateStore

/// There is no index of IDs in etcd: each server makes its own of the turns that it takes, and of earlier ones where a
/// client asks; it has hashes, so the reader of a version compares the commit's ID.
struct KnownIDs: Sendable {
    private struct Generation {
        /// All IDs of commits behind this version are known, up to the next generation's.
        let since: Version
        var ids = IDVersions()
    }

    private var generations: [Generation]
    private let generationMax: Int
    private let generationsMax = 8
    /// Whether the history has no further IDs before ``since``, or they would be too many.
    private(set) var isWhole: Bool

    /// `countMax` is about how many names are known; each ID of a commit with a subject has two.
    init(since version: Version, countMax: Int = 1_000_000) {
        generations = [Generation(since: version)]
        generationMax = max(1, countMax / generationsMax)
        isWhole = version == 0
    }

    var since: Version { generations[0].since }

    mutating func insert(_ commit: Commit) {
        generations[generations.count - 1].ids.insert(commit)
        guard generations[generations.count - 1].ids.count >= generationMax else { return }
        generations.append(Generation(since: commit.version))
        trim()
    }

    mutating func insert(before past: KnownIDs, _ version: Version) {
        // Where IDs were forgotten meanwhile, what is older has to be, too.
        if since == version { generations = past.generations + generations }
        isWhole = true
        trim()
    }

    private mutating func trim() {
        guard generations.count > generationsMax else { return }
        generations.removeFirst(generations.count - generationsMax)
        isWhole = true
    }

    func versions(_ name: CommitName) -> [Version] {
        let hash = Int64(bitPattern: name.hash.low)
        return generations.reversed().flatMap { $0.ids.versions(hash) }
    }
}
