import Testing

@testable import StateStore

@Suite("Cascades")
struct CascadesTests {
    @Test("a watcher that has stopped watching is not called, and the others are")
    func stopWatching() {
        var cascades = Cascades(limits: StoreLimits())
        let causation = Causation(cause: "a", root: "a", rootVersion: 7, depth: 1)
        let called = Collection<Int>()
        cascades.begin(causation)
        for number in 1...3 { _ = cascades.watch(7, as: UInt64(number)) { _ in called.add(number) } }

        cascades.stopWatching(7, as: 2)
        let end = cascades.end(causation)

        for watcher in end?.watchers ?? [] { watcher(end?.report ?? CascadeReport()) }
        #expect(called.values == [1, 3])
    }
}
