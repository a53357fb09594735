import StateStore

/// What is in stock.
package struct Inventory: Domain {
    package struct State: StateType {
        package var items = EntityTable<String, Item>()
        package init() {}
    }

    package struct Item: Codable, Sendable {
        package var quantity: Int

        package init(quantity: Int) { self.quantity = quantity }
    }

    /// Takes goods in.
    package struct Receive: Action {
        package static let type = "inventory/receive"
        package var item: String
        package var quantity: Int

        package init(item: String, quantity: Int) {
            self.item = item
            self.quantity = quantity
        }
    }

    /// Takes goods out, as far as there are any.
    package struct Ship: Action {
        package static let type = "inventory/ship"
        package var item: String
        package var quantity: Int

        package init(item: String, quantity: Int) {
            self.item = item
            self.quantity = quantity
        }
    }

    /// The item at which the reducer traps, as one with a bug does; nil for none.
    private let trap: String?

    package init(trap: String? = nil) { self.trap = trap }

    package var reducer: some Reducer<State> {
        Entities("items", \.items)
        On(Receive.self) { state, action throws(Rejection) in
            precondition(trap == nil || action.item != trap, "the reducer has a bug")
            guard (1...1_000_000).contains(action.quantity) else {
                throw Rejection("inventory.quantity", "1 to 1,000,000 at a time", kind: .invalid, pointer: "/quantity")
            }
            let stock = state.items[action.item]?.quantity ?? 0
            state.items[action.item] = Item(quantity: stock + action.quantity)
        }
        On(Ship.self) { state, action throws(Rejection) in
            let stock = state.items[action.item]?.quantity ?? 0
            guard (1...max(1, stock)).contains(action.quantity), stock > 0 else {
                throw Rejection("inventory.short", "there are \(stock) of \(action.item)", pointer: "/quantity")
            }
            state.items[action.item] = stock == action.quantity ? nil : Item(quantity: stock - action.quantity)
        }
        View("total", reads: ["/items"]) { state in state.items.reduce(0) { $0 + $1.entity.quantity } }
    }
}
