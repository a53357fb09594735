import Inventory
import StateJSON
import StateServer
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

        try await store.finish()
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

    @Test("what a public signature has comes from a product: JSON values, settings, and the errors of a start")
    func signatures() async throws {
        let plain = StandardAction(type: "inventory/receive", payload: ["item": "bolt", "quantity": 3])
        let store = try Store(Inventory())
        try await store.dispatch(plain)
        var settings = Settings()
        settings.data = "/dev/null/no-directory"

        let client = try TestClient(of: Inventory())
        try await client.dispatch(#"{"type":"inventory/receive","payload":{"item":"bolt","quantity":3}}"#)
        let quantity: JSONValue = try await client.get("/v1/state/items/bolt/quantity").json()
        let fault = #expect(throws: ServerFault.self) { _ = try TestClient(of: Inventory(), settings: settings) }

        #expect(store.state.items["bolt"]?.quantity == 3)
        #expect(quantity == 3)
        #expect(fault?.cause == .journal)
    }
}
