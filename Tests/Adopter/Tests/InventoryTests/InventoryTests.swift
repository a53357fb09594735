import Inventory
import StateServerTesting
import StateStore
import Testing

@Suite("The inventory")
struct InventoryTests {
    @Test("what comes in can go out, and no more")
    func stock() async throws {
        let store = try TestStore(Inventory())

        try await store.send(Inventory.Receive(item: "bolt", quantity: 5)) {
            $0.items["bolt"] = .init(quantity: 5)
        }
        try await store.send(Inventory.Ship(item: "bolt", quantity: 6), rejectedAs: "inventory.short")
        try await store.send(Inventory.Ship(item: "bolt", quantity: 5)) { $0.items["bolt"] = nil }

        try store.finish()
    }

    @Test("a subscriber is told of what it selects")
    func subscriber() async throws {
        let store = try Store(Inventory())
        var totals: [Int] = []
        let values = store.values(buffering: .unbounded) { $0.select { $0.items["nut"]?.quantity ?? 0 } }

        try await store.dispatch(Inventory.Receive(item: "nut", quantity: 2))
        try await store.dispatch(Inventory.Receive(item: "bolt", quantity: 2))
        try await store.dispatch(Inventory.Receive(item: "nut", quantity: 1))
        for await value in values {
            totals.append(value)
            if value == 3 { break }
        }

        #expect(totals == [0, 2, 3])
    }
}
