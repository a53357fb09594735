/// The versions between which a journal has something.
package struct HistoryVersions: Sendable, Encodable {
    /// The oldest version whose state can be read.
    package var oldestState: Version
    /// The version of the oldest commit; one above `latest` without commits.
    package var oldestCommit: Version
    package var latest: Version

    package init(oldestState: Version, oldestCommit: Version, latest: Version) {
        (self.oldestState, self.oldestCommit, self.latest) = (oldestState, oldestCommit, latest)
    }
}

/// A saved state.
package struct SnapshotSize: Sendable, Encodable {
    package var version: Version
    /// The size of its JSON.
    package var bytes: Int

    package init(version: Version, bytes: Int) {
        (self.version, self.bytes) = (version, bytes)
    }
}
