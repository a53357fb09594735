import StateJSON
import StateStore
import TestSupport
import Testing

@testable import StateCluster

@Suite("IDs of commits in etcd")
struct KnownIDsTests {
    let epoch = Epoch("aaaaaaaaaaaaaaaa") ?? .random()

    /// Commits, and for each name the versions that have it, newest first.
    private func named(seed: UInt64) -> (commits: [Commit], versions: [CommitName: [Version]]) {
        var maker = CommitMaker(seed: seed, epoch: epoch)
        let commits = maker.commits(1...600)
        var versions: [CommitName: [Version]] = [:]
        for commit in commits {
            for name in Set(commit.names) { versions[name, default: []].insert(commit.version, at: 0) }
        }
        return (commits, versions)
    }

    @Test(
        "each name finds the commits that have it, newest first, whether they come before or behind", arguments: 1...10)
    func found(seed: UInt64) {
        let (commits, versions) = named(seed: seed)
        var (ids, past) = (KnownIDs(since: 400), KnownIDs(since: 0))
        for commit in commits { commit.version > 400 ? ids.insert(commit) : past.insert(commit) }

        #expect(!ids.isWhole && past.isWhole)
        ids.insert(before: past, 400)

        #expect(ids.isWhole && ids.since == 0)
        for (name, expected) in versions {
            // A commit can have an ID twice.
            let found = ids.versions(name)
            #expect(found == found.sorted(by: >))
            #expect(Set(found) == Set(expected))
        }
        #expect(ids.versions(CommitName("none", by: nil)).isEmpty)
    }

    @Test("where there are too many the oldest are forgotten, and none of the newest", arguments: 1...10)
    func bounded(seed: UInt64) {
        let (commits, versions) = named(seed: seed)
        var ids = KnownIDs(since: 0, countMax: 160)
        for commit in commits { ids.insert(commit) }

        #expect(ids.isWhole && ids.since > 0)
        for (name, expected) in versions {
            #expect(Set(ids.versions(name)) == Set(expected.filter { $0 > ids.since }))
        }
        #expect(commits.count { $0.version > ids.since && !$0.names.isEmpty } > 20)
    }
}
