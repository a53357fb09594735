internal import FoundationEssentials

/// A start need not fetch the snapshot; a copy that is damaged or cannot be read is as if it were not there.
struct SnapshotCache {
    let directory: String

    private static let prefix = "snapshot-"

    /// The caller compares their hash with the manifest's.
    func bytes(of manifest: SnapshotManifest) -> [UInt8]? {
        (try? Data(contentsOf: URL(fileURLWithPath: path(of: manifest)))).map { Array($0) }
    }

    func keep(_ bytes: [UInt8], of manifest: SnapshotManifest) {
        let path = path(of: manifest)
        let manager = FileManager.default
        try? manager.createDirectory(atPath: directory, withIntermediateDirectories: true)
        guard (try? Data(bytes).write(to: URL(fileURLWithPath: path), options: .atomic)) != nil else { return }
        for name in (try? manager.contentsOfDirectory(atPath: directory)) ?? []
        where name.hasPrefix(Self.prefix) && !path.hasSuffix("/\(name)") {
            try? manager.removeItem(atPath: "\(directory)/\(name)")
        }
    }

    private func path(of manifest: SnapshotManifest) -> String {
        "\(directory)/\(Self.prefix)\(manifest.version)-\(manifest.hash)"
    }
}
