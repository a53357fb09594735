internal import FoundationEssentials
internal import StateJSON
internal import StateStore

struct HookProgress: Sendable, Codable, Equatable {
    struct Failing: Sendable, Codable, Equatable {
        var cursor: String
        var attempts: Int
        /// When the first attempt has failed, and when the next one is made; in RFC 3339.
        var since: String
        var next: String
        var reason: String
    }

    struct Refusals: Sendable, Codable, Equatable {
        var count: Int
        /// The cursor of the first commit answered so, and the time of that commit in RFC 3339, not that of the answer.
        var first: String
        var since: String
        var newest: String
        var reason: String
    }

    var id: String
    /// The cursor through which every commit is delivered, or does not concern the hook.
    var cursor: String
    var failing: Failing?
    var refusals: Refusals?
    var resent: String?

    static func shown(_ text: String) -> String {
        var shown = String.UnicodeScalarView()
        for scalar in text.unicodeScalars.prefix(300) {
            switch scalar.properties.generalCategory {
            case .control, .format, .lineSeparator, .paragraphSeparator, .privateUse, .unassigned:
                shown.append("\u{FFFD}")
            default: shown.append(scalar)
            }
        }
        return String(shown) + (text.unicodeScalars.count > 300 ? "..." : "")
    }

    static func pause(after attempts: Int) -> Duration {
        .seconds(min(secondsMax, 1 << min(max(0, attempts &- 1), 12)))
    }
    static let secondsMax = 3600
}

struct HookProgressFile: Sendable {
    struct Content: Sendable, Codable, Equatable {
        var hooks: [HookProgress] = []
        var roots: [Root] = []
    }

    struct Root: Sendable, Codable, Equatable {
        var id: String
        var actions: Int
        /// The version of the commit, if a hook has answered it itself.
        var version: Version?
    }

    static let name = "file of the hooks' progress"
    static let key = "hooks-progress"

    let file: any SharedDocument

    init(_ file: any SharedDocument) { self.file = file }

    func read() throws(SettingsFault) -> Content { try content(in: try file.bytes()) }

    /// A hook that another server has brought further stays there if the file `isShared`.
    func write(_ content: Content, isShared: Bool) throws(SettingsFault) {
        try file.change { (bytes) throws(SettingsFault) in
            // A file that cannot be read is replaced: it would hold every hook up.
            let old = (try? self.content(in: bytes)) ?? Content()
            var merged = content
            for index in merged.hooks.indices where isShared {
                guard let known = old.hooks.first(where: { $0.id == merged.hooks[index].id }),
                    let there = Cursor(text: known.cursor), let here = Cursor(text: merged.hooks[index].cursor),
                    there.epoch == here.epoch
                else { continue }
                // A hook that an operator has sent back is behind.
                let isNewer =
                    known.resent == merged.hooks[index].resent
                    ? there.version > here.version : (merged.hooks[index].resent ?? "") < (known.resent ?? "")
                guard isNewer else { continue }
                merged.hooks[index] = known
            }
            return merged == old ? nil : try file.encode(merged)
        }
    }

    private func content(in bytes: Data?) throws(SettingsFault) -> Content {
        guard let bytes else { return Content() }
        return try file.decode(bytes, as: Content.self)
    }
}

/// How many actions the answers of hooks have dispatched because of a commit, so that a hook that wakes itself ends.
struct HookBudget: Sendable {
    /// The count that was spent from last is the last one.
    private var roots: [HookProgressFile.Root] = []
    private static let rootsMax = 1000
    /// A count up to here is not worth a place in a file.
    private static let passingMax = 10

    init(_ roots: [HookProgressFile.Root] = []) {
        for root in roots { _ = spend(max(0, root.actions), of: root.id, begunAt: root.version, max: .max) }
    }

    /// A client may use an ID again: the newer commit has a count of its own, from the first answer to it on.
    mutating func spend(_ actions: Int, of id: String, begunAt version: Version? = nil, max: Int) -> Bool {
        let index = index(of: id)
        var root = index.map { roots[$0] } ?? .init(id: id, actions: 0)
        if let version, root.version.map({ $0 < version }) ?? true {
            root = .init(id: id, actions: 0, version: version)
        }
        guard actions <= max - root.actions else { return false }
        root.actions += actions
        if let index { roots.remove(at: index) }
        roots.append(root)
        if roots.count > Self.rootsMax { roots.removeFirst() }
        return true
    }

    mutating func giveBack(_ actions: Int, of id: String) {
        if let index = index(of: id) { roots[index].actions = max(0, roots[index].actions - actions) }
    }

    private func index(of id: String) -> Int? { roots.firstIndex { ExactText($0.id) == ExactText(id) } }

    var lasting: [HookProgressFile.Root] { roots.filter { $0.actions > Self.passingMax } }
}
