internal import StateHTTP

/// Makes, lists and revokes the bearer tokens in the token file of a server, which notices each change within a second.
struct TokenTool: Sendable {
    /// What a new token allows.
    struct Allowance: Sendable {
        /// What its subject may read: JSON Pointers, `view:NAME`, `store:NAME`, `actions:TYPE`, or `*`.
        var read: [String] = []
        /// The action types that its subject may dispatch, also with `*` at the end.
        var dispatch: [String] = []
        /// Whether its subject may see the actions of other subjects.
        var seesOthers = false
        /// Whether its subject may see metrics and operate the journal.
        var operates = false

        /// Makes an allowance of nothing.
        init() {}

        /// The allowance of everything.
        static var everything: Allowance {
            var allowance = Allowance()
            (allowance.read, allowance.dispatch) = (["*"], ["*"])
            (allowance.seesOthers, allowance.operates) = (true, true)
            return allowance
        }
    }

    /// A token in the file, without the token itself, of which the file has a hash.
    struct Listing: Sendable {
        /// The name by which ``revoke(_:)`` knows it.
        var id: String
        /// Who holds it.
        var subject: String
        /// When it was made, in RFC 3339.
        var created: String
        /// What it allows.
        var allowance: Allowance
    }

    private let file: TokenFile

    /// Makes a tool for the file in the setting `tokens`.
    ///
    /// - Throws: ``SettingsFault`` where the settings name no file: `tokens` and `data` are `none`.
    init(settings: Settings) throws(SettingsFault) {
        guard let file = settings.tokenFile else {
            throw SettingsFault(
                description: "there is no token file: name it with the setting tokens, or the data directory")
        }
        self.file = file
    }

    /// Makes a token and adds its hash to the file.
    ///
    /// - Returns: the token, which cannot be found out later, and its name.
    /// - Throws: ``SettingsFault`` for a subject or an entry that is misspelled, or a file that cannot be read or written.
    func create(subject: String, _ allowance: Allowance) throws(SettingsFault) -> (token: String, id: String) {
        let grant = Grant(
            read: allowance.read, dispatch: allowance.dispatch, others: allowance.seesOthers,
            operate: allowance.operates)
        if let fault = grant.fault ?? TokenFile.fault(inSubject: subject) { throw SettingsFault(description: fault) }
        let token = Token()
        let entry = TokenFile.Entry(token, subject: subject, grant)
        try file.write((file.read() ?? []) + [entry])
        return (token.text, entry.id)
    }

    /// The tokens in the file, oldest first.
    ///
    /// - Throws: ``SettingsFault`` for a file that cannot be read.
    func list() throws(SettingsFault) -> [Listing] {
        (try file.read() ?? []).map { entry in
            var allowance = Allowance()
            (allowance.read, allowance.dispatch) = (entry.grant.read, entry.grant.dispatch)
            (allowance.seesOthers, allowance.operates) = (entry.grant.others, entry.grant.operate)
            return Listing(id: entry.id, subject: entry.subject, created: entry.created, allowance: allowance)
        }
    }

    /// Removes a token from the file; its streams and waits end within a second.
    ///
    /// - Throws: ``SettingsFault`` where the file has no token of this name, or cannot be read or written.
    func revoke(_ id: String) throws(SettingsFault) {
        let entries = try file.read() ?? []
        let left = entries.filter { $0.id != id }
        guard left.count < entries.count else {
            throw SettingsFault(
                description: "there is no token \(id) in \(file.path); `token list` shows them")
        }
        try file.write(left)
    }
}
