internal import Showcase
internal import StateServer
internal import StateStore

/// The domains that this program can serve.
enum Domains {
    private static let all: [String: any Domain] = [
        "showcase": Showcase(), "counter": Counter(), "tasks": Tasks(),
    ]

    static var names: [String] { all.keys.sorted() }

    /// The domain of a name.
    ///
    /// - Throws: `SettingsFault` when there is none.
    static func named(_ name: String) throws(SettingsFault) -> any Domain {
        guard let domain = all[name] else {
            throw SettingsFault(description: "domain must be one of \(names.joined(separator: ", "))")
        }
        return domain
    }
}
