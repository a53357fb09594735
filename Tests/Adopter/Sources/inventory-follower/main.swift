import Foundation
import Inventory
import StateClient

// Another process than the server's: it takes goods in by two writers, follows every commit and the total, and prints what it
// sees, until it has seen as many commits as it has made.
//
// Usage: inventory-follower URL COUNT [TOKEN]

let arguments = CommandLine.arguments
guard arguments.count > 2, let url = URL(string: arguments[1]), let count = Int(arguments[2]) else {
    fatalError("usage: inventory-follower URL COUNT [TOKEN]")
}

@Sendable func say(_ words: Any...) {
    FileHandle.standardOutput.write(Data((words.map { "\($0)" }.joined(separator: " ") + "\n").utf8))
}

let client = StateClient(url, token: arguments.dropFirst(3).first) { say("waits", $0.code) }
do {
    try await withThrowingTaskGroup(of: Void.self) { group in
        group.addTask {
            var left = count
            for try await change in client.changes(since: "oldest", types: [Inventory.Receive.type]) {
                guard case .commit(let commit) = change else { fatalError("the history is another one") }
                let items = try commit.actions(Inventory.Receive.self).map(\.item)
                say("commit", commit.version, commit.id, items.joined())
                left -= 1
                if left == 0 { break }
            }
        }
        group.addTask {
            for try await total in client.values("view:total", as: Int.self) {
                say("total", total ?? -1)
                if total == count { break }
            }
        }
        for writer in ["bolt", "nut"] {
            group.addTask {
                for number in 0..<count / 2 {
                    let goods = Inventory.Receive(item: writer, quantity: 1)
                    let receipt = try await client.dispatch(goods, id: "\(writer)-\(number)")
                    say("receipt", receipt.version ?? 0, "\(writer)-\(number)")
                }
            }
        }
        try await group.waitForAll()
    }
} catch let problem as StateClient.Problem {
    say("problem", problem.status, problem.code)
    exit(1)
}
