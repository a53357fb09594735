public import HTTPMessages
import Synchronization

/// One request that is owed an answer.
///
/// Any thread may answer it. The first of an answer, a deadline, a hang-up and the server's stop wins, by one atomic
/// step from armed to fired; whatever comes later is ignored.
public final class Exchange: Sendable {
    /// The number of this exchange, unique in its server and rising in order of arrival.
    public let id: UInt64
    /// The client's address without its port.
    public let client: String

    private let fired = Atomic(false)
    private let inbox: Inbox

    init(id: UInt64, client: String, inbox: Inbox) {
        self.id = id
        self.client = client
        self.inbox = inbox
    }

    /// Sends the answer, unless this exchange has been answered or has ended before.
    public func answer(_ response: Response) {
        guard fire() else { return }
        inbox.put(.answer(self, response))
    }

    /// Whether it has been answered or has ended: an answer would be ignored.
    public var isOver: Bool { fired.load(ordering: .acquiring) }

    /// Claims the right to answer; true for the first caller only.
    func fire() -> Bool {
        // Resuming a connection that is not suspended is undefined behaviour (MICROHTTPD.md 4): this step is the gate.
        !fired.exchange(true, ordering: .acquiringAndReleasing)
    }
}

extension Exchange: Hashable {
    /// Exchanges are equal when they are the same object.
    public static func == (left: Exchange, right: Exchange) -> Bool { left === right }

    /// Hashes the identity.
    public func hash(into hasher: inout Hasher) {
        hasher.combine(ObjectIdentifier(self))
    }
}
