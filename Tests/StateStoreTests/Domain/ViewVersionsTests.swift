import StateJSON
import Testing

@testable import StateStore
@testable import TestSupport

@Suite("Versions of views")
struct ViewVersionsTests {
    @Test(
        "each view has the version that was set last, whichever views the commits set",
        arguments: [1, 5, 63, 64, 65, 130])
    func model(count: Int) {
        var generator = SplitMix(seed: UInt64(count))
        var versions = ViewVersions(count: count)
        var expected = [Version](repeating: 0, count: count)
        var kept: [(ViewVersions, [Version])] = []
        for version in 1...2000 as ClosedRange<Version> {
            // Commits set the views of the one before, a few others, or none.
            for view in (0..<count) where Int.random(in: 0..<(version % 3 == 0 ? 2 : 4), using: &generator) == 0 {
                versions[view] = version
                expected[view] = version
            }
            if version.isMultiple(of: 50) { kept.append((versions, expected)) }
            #expect((0..<count).map { versions[$0] } == expected)
        }
        // A copy that a snapshot has stays as it was.
        for (versions, expected) in kept { #expect((0..<count).map { versions[$0] } == expected) }
    }
}
