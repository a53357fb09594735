internal import StateHTTP
internal import StateStore

/// Makes, lists and revokes the bearer tokens in the token file of a server, which notices each change within a second.
struct TokenTool: Sendable {
    private let file: TokenFile
    private let settings: Settings

    /// Makes a tool for the file in the setting `tokens`.
    ///
    /// - Throws: ``SettingsFault`` where the settings name no file: `tokens` and `data` are `none`.
    init(settings: Settings) throws(SettingsFault) {
        guard let file = settings.tokenFile else {
            throw SettingsFault(
                description: "there is no token file: name it with the setting tokens, or the data directory")
        }
        self.file = file
        self.settings = settings
    }

    /// Makes a token and adds its hash to the file.
    ///
    /// - Parameter catalogue: the names of the domain, with which the grant is compared; nil where they are not known.
    /// - Returns: the token, which cannot be found out later, its name, and what follows that the operator may not expect.
    /// - Throws: ``SettingsFault`` for a subject or an entry that is misspelled, or a file that cannot be read or written.
    func create(
        subject: String, _ grant: Grant, in catalogue: Catalogue? = nil
    ) throws(SettingsFault) -> (token: String, id: String, warnings: [String]) {
        if let fault = grant.fault ?? TokenFile.fault(inSubject: subject) { throw SettingsFault(description: fault) }
        let token = Token()
        let entry = TokenFile.Entry(token, subject: subject, grant)
        var warnings = catalogue.map { grant.warnings(in: $0) } ?? []
        try file.change { entries in
            if entries == nil, settings.access == .auto, settings.jwtKeys == "none" {
                warnings.append(
                    "this is the first token: a server on loopback that was open to every client now asks each for a token"
                )
            }
            let all = (entries ?? []) + [entry]
            entries = all
            warnings += warningsWithoutAdministrator(all)
        }
        return (token.text, entry.id, warnings)
    }

    /// A warning where a server takes no other credentials than tokens of which none allows everything.
    private func warningsWithoutAdministrator(_ entries: [TokenFile.Entry]) -> [String] {
        guard settings.access != .open, settings.jwtKeys == "none", !entries.contains(where: \.grant.isEverything)
        else { return [] }
        return ["no token can do everything; `token create --all` makes one that can"]
    }

    /// The tokens in the file, oldest first.
    ///
    /// - Throws: ``SettingsFault`` for a file that cannot be read.
    func list() throws(SettingsFault) -> [TokenFile.Entry] { try file.read() ?? [] }

    /// Removes a token from the file; its streams and waits end within a second.
    ///
    /// - Returns: what follows that the operator may not expect.
    /// - Throws: ``SettingsFault`` where the file has no token of this name, or cannot be read or written.
    func revoke(_ id: String) throws(SettingsFault) -> [String] {
        var warnings: [String] = []
        try file.change { (entries) throws(SettingsFault) in
            let left = (entries ?? []).filter { $0.id != id }
            guard left.count < entries?.count ?? 0 else {
                throw SettingsFault(
                    description: "there is no token \(id) in \(file.path); `token list` shows them")
            }
            if left.isEmpty { warnings.append("no token is left, and the server does not open by that") }
            warnings += warningsWithoutAdministrator(left)
            entries = left
        }
        return warnings
    }
}
