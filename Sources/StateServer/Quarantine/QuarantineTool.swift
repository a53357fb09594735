/// Lists and changes the actions that a server has set aside; the server notices each change within a second.
struct QuarantineTool: Sendable {
    /// An action that is set aside, or was.
    struct Listing: Sendable {
        /// The name by which ``drop(_:)`` and ``retry(_:)`` know it.
        var id: String
        /// Whether the server refuses it; otherwise the operator has let it pass.
        var isRefused: Bool
        /// The type of the action, or of the first action of a batch.
        var type: String
        /// What identifies it, such as `key order-7 of ci`.
        var name: String
        /// How many crashes there were.
        var crashes: Int
        /// When it was set aside, in RFC 3339.
        var since: String
    }

    private let file: QuarantineFile

    /// Makes a tool for the directory in the setting `data`.
    ///
    /// - Throws: ``SettingsFault`` when `data` is `none`.
    init(settings: Settings) throws(SettingsFault) {
        let directory = settings.data
        guard directory != "none" else {
            throw SettingsFault(description: "data is none: nothing is set aside; name its directory with --data")
        }
        file = QuarantineFile(directory: directory)
    }

    /// The actions, oldest first.
    ///
    /// - Throws: ``SettingsFault`` for a file that cannot be read.
    func list() throws(SettingsFault) -> [Listing] {
        try file.read().map { entry in
            var name = entry.by
            // A client has chosen the text, and a terminal obeys control characters.
            if let text = entry.name { name += " " + String(text.map { $0.isASCII && $0 < " " ? "?" : $0 }) }
            if let line = entry.line { name += " line \(line)" }
            if let subject = entry.subject { name += " of \(subject)" }
            return Listing(
                id: entry.id, isRefused: entry.state == .quarantined, type: entry.type, name: name,
                crashes: entry.crashes, since: entry.since)
        }
    }

    /// Forgets an action: it passes, and takes two crashes to be set aside again.
    ///
    /// - Throws: ``SettingsFault`` where the file has no action of this name, or cannot be read or written.
    func drop(_ id: String) throws(SettingsFault) {
        try change(id) { entries, index in entries.remove(at: index) }
    }

    /// Lets an action pass; one crash sets it aside again.
    ///
    /// - Throws: ``SettingsFault`` where the file has no action of this name, or cannot be read or written.
    func retry(_ id: String) throws(SettingsFault) {
        try change(id) { entries, index in entries[index].state = .retry }
    }

    private func change(
        _ id: String, _ body: (inout [QuarantineFile.Entry], Int) -> Void
    ) throws(SettingsFault) {
        try file.change { (entries) throws(SettingsFault) in
            guard let index = entries.firstIndex(where: { $0.id == id }) else {
                throw SettingsFault(
                    description:
                        "there is no action \(id) in \(file.path); `journal quarantine list` shows them")
            }
            body(&entries, index)
        }
    }
}
