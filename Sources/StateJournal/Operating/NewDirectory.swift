internal import Segments
internal import StateStore

/// A locked data directory without a journal, where one appears whole or not at all.
struct NewDirectory {
    let directory: DataDirectory
    let lock: DirectoryLock

    /// Locks the directory, and makes a missing one.
    init(_ path: String) throws {
        directory = DataDirectory(path: path)
        lock = try DirectoryLock(directory)
        // SQLite would take a leftover file of an old journal, such as its WAL, for a part of the new one.
        for file in [directory.journal, directory.replacement] {
            for suffix in [""] + DataDirectory.companions where directory.size(file + suffix) != nil {
                throw JournalError("the data directory \(path) has a journal already; an empty one is needed")
            }
        }
        if case .record(let fence, _) = try Fence.read(directory), fence.stage != .beginning {
            throw JournalError(
                "the data directory \(path) has the fence of a journal, although the journal is gone; an empty one is needed"
            )
        }
    }

    /// Makes the draft of a directory its journal, with a fence; the draft is on the disk.
    ///
    /// A process that is killed meanwhile leaves no journal, or a whole one.
    static func publish(_ directory: DataDirectory, _ epoch: Epoch, term: UInt64, _ tip: ChainLink) throws {
        // The fence comes first: a journal without one is refused.
        let fence = try Fence(directory, FenceRecord(epoch: epoch, term: term, link: tip, stage: .beginning))
        try directory.rename(directory.draft, to: directory.journal)
        try directory.sync(directory.path)
        try fence.close()
    }
}
