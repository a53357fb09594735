import StateStore
import Testing

@testable import StateCluster

@Suite("What a history in etcd keeps")
struct KeptHistoryTests {
    /// Saves a snapshot each 10,000 versions, and deletes behind each what is not kept; every turn has one commit.
    private func kept(
        _ retention: JournalRetention, through latest: Version
    ) throws -> (snapshots: [Version], oldestTurn: Version) {
        var (snapshots, oldest): ([Version], Version) = ([0], 0)
        for version in stride(from: Version(10_000), through: latest, by: 10_000) {
            snapshots.append(version)
            let surplus = version - min(version, Version(retention.commitsMax))
            let kept = try #require(
                KeptHistory(
                    snapshots.map { ($0, $0) }, snapshotsMax: retention.snapshotsMax,
                    from: surplus > 0 ? max(oldest, surplus + 1) : 0))
            snapshots.removeAll { $0 < kept.snapshot }
            oldest = max(oldest, kept.turn)
            #expect(kept.secondNewest == snapshots[snapshots.count - 2])
            let haveTurns = snapshots.allSatisfy { $0 >= oldest }
            #expect(haveTurns, "each snapshot has the turns behind it")
        }
        return (snapshots, oldest)
    }

    @Test(
        "turns before the newest commits go, but never what is behind the second-newest snapshot",
        arguments: [
            (1_000_000, 8, 1_000_000, 8, 0), (1_000_000, 8, 2_000_000, 8, 1_000_001), (25_000, 2, 60_000, 2, 35_001),
            (5_000, 2, 60_000, 2, 50_000), (5_000, 8, 60_000, 2, 50_000), (0, 0, 60_000, 2, 50_000),
        ] as [(Int, Int, Version, Int, Version)])
    func turns(
        commitsMax: Int, snapshotsMax: Int, latest: Version, snapshotsCount: Int, oldestTurn: Version
    ) throws {
        let found = try kept(JournalRetention(commitsMax: commitsMax, snapshotsMax: snapshotsMax), through: latest)

        #expect(found.snapshots.count == snapshotsCount)
        #expect(found.snapshots.last == latest)
        #expect(found.oldestTurn == oldestTurn)
    }

    @Test("everything is kept where there is one snapshot")
    func one() {
        #expect(KeptHistory([(7, 5)], snapshotsMax: 2, from: 6) == nil)
    }
}
