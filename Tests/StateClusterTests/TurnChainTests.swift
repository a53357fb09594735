import StateJournal
import StateStore
import TestSupport
import Testing

@testable import StateCluster

@Suite("The chain of turns in etcd")
struct TurnChainTests {
    let epoch = Epoch("aaaaaaaaaaaaaaaa") ?? .random()

    /// The keys and values of a history of 600 commits, its beginning first.
    private var values: [(first: Version, value: [UInt8])] {
        let beginning = ChainLink(beginning: epoch, version: 0)
        var encoder = SegmentEncoder(epoch: epoch, fence: 1)
        let segments = ClusterTurns.groups((1...600).map { .setting($0) }, after: beginning, with: &encoder).joined()
        return [(0, beginning.hash.bytes)] + segments.map { ($0.first, $0.value) }
    }

    /// Reads turns behind each other, and returns their commits and the last turn's link.
    private func read(_ turns: [(first: Version, value: [UInt8])]) throws -> ([Commit], ChainLink?) {
        var (commits, tip): ([Commit], ChainLink?) = ([], nil)
        for (first, value) in turns {
            let turn = try RecordedTurn(first, value, after: tip, epoch)
            commits += turn.commits
            tip = turn.link
        }
        return (commits, tip)
    }

    @Test("turns that follow each other are read in order, from the beginning or from a later one", arguments: 0...2)
    func whole(start: Int) throws {
        let (commits, tip) = try read(Array(values[start...]))

        #expect(commits.map(\.version) == Array(max(1, values[start].first)...600))
        #expect(tip?.version == 600)
    }

    @Test("a turn that is damaged is named by its version, and so is one that is missing")
    func refused() throws {
        let values = values
        for index in [0, 16, values[2].value.count - 1] {
            var damaged = values[2].value
            damaged[index] ^= 1
            let turns = [values[0], values[1], (first: values[2].first, value: damaged)]
            let fault = #expect(throws: ClusterFault.self) { try read(turns) }
            #expect(fault?.description.hasPrefix("the turn of version 257 in etcd is not what was recorded: ") == true)
        }
        let missing = #expect(throws: ClusterFault.self) { try read([values[0], values[2]]) }
        #expect(missing?.description == "the turn of version 1 in etcd is missing")
        let cut = #expect(throws: ClusterFault.self) { try read([values[0], (first: 1, value: [1, 2, 3])]) }
        #expect(cut?.description.contains("it has 3 bytes") == true)
    }

    @Test("the beginning of a history stands before all turns")
    func beginning() throws {
        #expect(throws: ClusterFault.self) { try read([values[0], values[1], (first: 257, value: values[0].value)]) }
    }
}
