import Foundation
import StateStore
import Testing

@Suite("The README and the guide")
struct GuideTests {
    private static let root = URL(fileURLWithPath: #filePath).deletingLastPathComponent().deletingLastPathComponent()
        .deletingLastPathComponent()

    private static func text(_ path: String) throws -> String {
        try String(contentsOf: root.appending(path: path), encoding: .utf8)
    }

    @Test(
        "the domain that they begin with is the one that is tested here",
        arguments: ["README.md", "Sources/StateServer/StateServer.docc/Guides/Adopting.md"])
    func sameCounter(path: String) throws {
        let counter = try Self.text("Tests/StateServerTests/GuideCounter.swift").dropFirst(
            "import StateStore\n\n".count)

        #expect(try Self.text(path).contains(counter))
    }

    @Test("an amount that does not fit is rejected, and the store goes on", arguments: [Int.max, 1])
    func overflow(amount: Int) throws {
        let store = try Store(Counter())
        try store.dispatch(Counter.Add(amount: .max))

        #expect { try store.dispatch(Counter.Add(amount: amount)) } throws: {
            ($0 as? DispatchError)?.code == "counter.overflow"
        }
        try store.dispatch(Counter.Add(amount: -1))

        #expect(store.state.value == .max - 1)
    }

    @Test(
        "the server that they end with is the command line of the package",
        arguments: ["README.md", "Sources/StateServer/StateServer.docc/Guides/Adopting.md"])
    func endsWithCommand(path: String) throws {
        let calls = try Self.text(path).split(separator: "\n").filter { $0.hasPrefix("await ServerCommand.main(") }

        #expect(calls.count == 1)
    }
}
