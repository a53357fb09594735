internal import Showcase
internal import StateServer
internal import StateStore

/// The domains that this program can serve.
enum Domains {
    private static let all: [String: @Sendable (Settings) throws(SettingsFault) -> any Domain] = [
        "canvas": { _ in Canvas() },
        "counter": { _ in Counter() },
        "films": { settings throws(SettingsFault) in Films(fetch: try FilmsClient.fetch(settings)) },
        "navigation": { _ in Navigation() },
        "session": { _ in Session() },
        "showcase": { settings throws(SettingsFault) in Showcase(fetchFilms: try FilmsClient.fetch(settings)) },
        "tasks": { _ in Tasks() },
    ]

    static var names: [String] { all.keys.sorted() }

    /// Makes the domain that the setting `domain` names.
    ///
    /// - Throws: `SettingsFault` when no domain has that name, or a setting that the domain needs is invalid.
    static func domain(_ settings: Settings) throws(SettingsFault) -> any Domain {
        guard let make = all[settings.text("domain")] else {
            throw SettingsFault(description: "domain must be one of \(names.joined(separator: ", "))")
        }
        return try make(settings)
    }
}
