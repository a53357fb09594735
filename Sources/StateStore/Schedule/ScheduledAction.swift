internal import StateJSON

/// An action that is to be dispatched at a time, as the commit that wanted it has recorded it.
package final class ScheduledAction: Sendable {
    package let name: ScheduledName
    // Beside the name both take no room of their own, and there may be 100,000 of these objects.
    /// Whether a reducer has scheduled it, and not its sender: no grant is asked then, as for what a reducer does at once.
    package let isOfReducer: Bool
    /// The kind of credential of the client that has scheduled it; nil for none, and for an entry of an older program.
    package let credential: CredentialKind?
    package let due: Timestamp
    package let version: Version
    package let index: Int
    /// The ID of the commit that began the cascade; nil if that is the commit that has scheduled it.
    package let root: String?
    /// How many scheduled actions lie between the beginning of the chain and this one, and when the chain began.
    package let chain: Chain
    /// UTF-8 JSON: the action as its commit will record it.
    package let action: [UInt8]
    package let type: String
    private let delayOrMinusOne: Int64
    /// The address of the client to whose share it counts; nil for the share of the subject, and for one of the process.
    let client: String?

    package struct Chain: Sendable, Equatable {
        package var count: Int
        package var since: Timestamp

        /// The most actions that count: one a second for 68 years.
        static let countMax = 1 << 31

        var next: Chain { Chain(count: min(count + 1, Self.countMax), since: since) }

        /// The earliest time of the next action of the chain, which has one a second in the mean.
        var earliest: Timestamp { Timestamp(milliseconds: since.milliseconds &+ Int64(count) * 1000) }
    }

    init(
        name: ScheduledName, due: Timestamp, delay: Int64? = nil, version: Version, index: Int, root: String?,
        chain: Chain, action: [UInt8], type: String, isOfReducer: Bool = false, client: String? = nil,
        credential: CredentialKind? = nil
    ) {
        (self.isOfReducer, self.credential, self.client) = (isOfReducer, credential, client)
        delayOrMinusOne = delay ?? -1
        (self.name, self.due, self.version, self.index, self.root) = (name, due, version, index, root)
        (self.chain, self.action, self.type) = (chain, action, type)
    }

    /// How long after its commit it was wanted, in milliseconds; nil where a time was named.
    var delay: Int64? { delayOrMinusOne < 0 ? nil : delayOrMinusOne }

    /// The ID that the client gave to the action; O(n) in the size of the action.
    package var id: String? {
        // Losing the error is right: what is recorded is JSON.
        (try? JSONDocument(action, depthMax: 1010)).flatMap { Self.member("id", of: JSONNode($0)) }
    }

    var order: Order { Order(due: due, version: version, index: index) }

    /// Whether it belongs to the state, as a place that expires and what a reducer has scheduled do: it comes back where the
    /// state does.
    package var isOfState: Bool { isOfReducer || name.isPlace }

    /// The action as a commit brings it back: its delay begins anew, and a time that was named stays.
    func again(by version: Version, index: Int, at time: Timestamp) -> ScheduledAction {
        let due = (delay.map(DueTime.after) ?? .at(due)).time(of: time)
        return ScheduledAction(
            name: name, due: min(due, max(time, DueTime.latest)), delay: delay, version: version,
            index: index, root: nil, chain: Chain(count: 0, since: time), action: action, type: type,
            isOfReducer: isOfReducer, client: client, credential: credential)
    }

    /// Whose share of the schedule it takes; nil for one of the process.
    var owner: ScheduleKey? { ScheduleKey(ownerOf: name.by, from: client) }

    struct Order: Comparable, Sendable {
        var due: Timestamp
        var version: Version
        var index: Int

        static func < (left: Order, right: Order) -> Bool {
            (left.due, left.version, left.index) < (right.due, right.version, right.index)
        }
    }

    var weight: Int { 400 + action.count }
}

package enum CredentialKind: String, Sendable, Codable {
    case file
    case jwt
}

package struct ScheduledName: Sendable {
    package var text: String
    package var by: String?
    /// Whether the name is a JSON Pointer to a place that expires, of which there is one for all subjects.
    package var isPlace: Bool

    package init(_ text: String, by: String?, isPlace: Bool = false) {
        (self.text, self.by, self.isPlace) = (text, by, isPlace)
    }

    var key: ScheduleKey { isPlace ? ScheduleKey(place: text) : ScheduleKey(text, by: by) }
}

/// The bytes by which scheduled actions are found; the places below a place follow it.
package struct ScheduleKey: Comparable, Sendable {
    private let bytes: [UInt8]

    package init(_ name: String, by subject: String?) {
        // No subject has a control character.
        bytes = [subject == nil ? 1 : 2] + (subject ?? "").utf8 + [0] + name.utf8
    }

    /// The key of what a client has in all: a subject, or else an address; nil for the process.
    init?(ownerOf subject: String?, from client: String?) {
        guard let owner = subject ?? client else { return nil }
        self.init(subject == nil ? owner : "", by: subject)
    }

    init(place pointer: String) { bytes = [3] + pointer.utf8 + [UInt8(ascii: "/")] }

    package static func < (left: ScheduleKey, right: ScheduleKey) -> Bool {
        left.bytes.lexicographicallyPrecedes(right.bytes)
    }

    func isAtOrBelow(_ other: ScheduleKey) -> Bool { bytes.starts(with: other.bytes) }
}

// MARK: As JSON

extension ScheduledAction {
    var json: [UInt8] {
        JSONWriter.object { write(to: &$0) }
    }

    func write(to writer: inout JSONWriter) {
        name.write(to: &writer)
        writer.member("due", due.milliseconds)
        writer.member("version", version)
        if index > 0 { writer.member("index", index) }
        writer.member("root", root)
        writer.member("client", client)
        if chain.count > 0 { writer.member("chain", chain.count) }
        writer.member("since", chain.since.milliseconds)
        if isOfReducer { writer.member("reducer", true) }
        writer.member("credential", credential?.rawValue)
        // A delay is the difference of the two times, but in a chain.
        if isOfState, delay == nil || chain.count > 0 {
            writer.member("after", json: (delay.map(String.init) ?? "null").utf8)
        }
        writer.member("action", json: action)
    }

    /// Reads an action; `root` gives the ID of a commit its spelling, and `shared` a type the string that others have.
    convenience init(
        _ node: JSONNode, root: (String) -> String = { $0 }, shared: (String) -> String = { $0 }
    ) throws(JSONFault) {
        var members: [ExactText: JSONNode] = [:]
        if let found = node.members { for (key, value) in found { members[ExactText(key)] = value } }
        func text(_ name: ExactText) -> String? { members[name]?.string }
        func integer(_ name: ExactText) -> Int64? { members[name]?.integer }
        let (count, index) = (integer("chain") ?? 0, integer("index") ?? 0)
        guard let action = members["action"], let due = integer("due"),
            let version = integer("version").flatMap(Version.init(exactly:)),
            let name = text("name") ?? text("place"), let type = Self.member("type", of: action),
            (0...Int64(Chain.countMax)).contains(count)
        else { throw JSONFault(.mismatch, at: node.pointer, "expected a scheduled action") }
        let since = integer("since") ?? due
        // The buffer of the text has room for more, and there may be 100,000 of them.
        var bytes = [UInt8]()
        let written = action.text
        bytes.reserveCapacity(written.count)
        bytes += written
        // Versions before 0.3.0 have not recorded the delay of one in a chain: the mean of the chain's is near it.
        let delay = members["after"].map(\.integer) ?? max(0, due &- since) / (count + 1)
        self.init(
            name: ScheduledName(name, by: text("by"), isPlace: text("name") == nil),
            due: Timestamp(milliseconds: due), delay: delay, version: version, index: Int(index),
            root: text("root").map(root), chain: Chain(count: Int(count), since: Timestamp(milliseconds: since)),
            action: bytes, type: shared(type), isOfReducer: members["reducer"]?.value == .bool(true),
            client: text("client").map(shared), credential: text("credential").flatMap(CredentialKind.init))
    }

    static func member(_ name: String, of action: JSONNode) -> String? {
        action.members?.first { $0.key == name }?.value.string
    }
}

extension ScheduledName {
    init?(_ node: JSONNode) {
        let name = ScheduledAction.member("name", of: node)
        guard let text = name ?? ScheduledAction.member("place", of: node) else { return nil }
        self.init(text, by: ScheduledAction.member("by", of: node), isPlace: name == nil)
    }

    func write(to writer: inout JSONWriter) {
        if isPlace { writer.member("place", text) } else { writer.member("name", text) }
        writer.member("by", by)
    }
}

extension JSONNode {
    fileprivate var integer: Int64? { if case .integer(let number) = value { number } else { nil } }
}
