import StateStore
import Testing

@testable import StateJournal

@Suite("The retention of snapshots")
struct SnapshotRetentionTests {
    private func kept(
        _ versions: [Version], countMax: Int, surplus: Version = 0, heavy: Version = 0
    ) -> [Version] {
        let retention = SnapshotRetention(countMax: countMax, surplus: surplus, heavy: heavy)
        let dropped = retention.dropped(of: versions)
        return versions.filter { !dropped.contains($0) }
    }

    @Test("after many stops the oldest snapshot is there, and the others divide the history")
    func stops() {
        var versions: [Version] = [0]
        for stop in 1...64 { versions = kept(versions + [Version(stop * 5)], countMax: 8) }

        #expect(versions.count == 8)
        #expect(versions.first == 0)
        #expect(versions.suffix(2) == [315, 320])
        let gaps = zip(versions.dropFirst(), versions).map(-)
        #expect(gaps.allSatisfy { $0 <= 120 }, "\(versions)")
    }

    @Test("the oldest snapshot goes where its commits exceed their number, and there are too many snapshots")
    func surplus() {
        #expect(kept([0, 10, 20, 30], countMax: 3, surplus: 1) == [10, 20, 30])
        #expect(kept([0, 10, 20, 30], countMax: 3, surplus: 0) == [0, 20, 30])
        #expect(kept([0, 10, 20], countMax: 3, surplus: 15) == [0, 10, 20])
    }

    @Test("older snapshots than the bytes of the commits allow go, but not the two newest")
    func heavy() {
        #expect(kept([0, 10, 20, 30], countMax: 8, heavy: 15) == [20, 30])
        #expect(kept([0, 10, 20, 30], countMax: 8, heavy: 99) == [20, 30])
    }

    @Test("of two snapshots both stay", arguments: [1, 2])
    func two(countMax: Int) {
        #expect(kept([0, 10, 20], countMax: countMax) == [10, 20])
        #expect(kept([10, 20], countMax: countMax) == [10, 20])
        #expect(kept([10], countMax: countMax) == [10])
    }
}
