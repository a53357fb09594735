package import StateStore

/// The end of a segment, or the beginning of a history: what the next segment builds on.
package struct ChainLink: Hashable, Sendable {
    package var version: Version
    package var hash: SegmentHash

    package init(version: Version, hash: SegmentHash) {
        self.version = version
        self.hash = hash
    }

    /// The link on which the first segment of a history builds.
    package init(beginning epoch: Epoch, version: Version) {
        self.init(version: version, hash: SegmentHash(beginning: epoch, version: version))
    }
}
