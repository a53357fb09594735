internal import MicroHTTP
internal import StateStore

extension ClientMemory {
    init(_ budget: MemoryBudget) {
        self.init()
        count = { more, client in
            guard more > 0 else {
                budget.release(-more, for: client)
                return nil
            }
            return budget.reserve(more, for: client).map {
                if case .shareExhausted = $0 { Refusal.client } else { Refusal.all }
            }
        }
    }
}
