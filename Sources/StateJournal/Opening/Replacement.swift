internal import GRDB
internal import StateStore

/// The replacement of a damaged journal by a whole one that lies beside it.
///
/// A process can be killed after any step: the next start goes on from there.
enum Replacement {
    /// Completes a replacement, if one is due.
    ///
    /// The damaged files stay in the directory as `damaged-1.sqlite`, with the next free number.
    @discardableResult
    static func complete(_ directory: DataDirectory) throws -> [String] {
        guard directory.size(directory.replacement) != nil else { return [] }
        let fence: FenceRecord
        do {
            fence = try Inspection.open(directory.replacement).read { db in
                let rows = SegmentRows(
                    path: directory.replacement, epoch: try SegmentRows.epoch(db, directory.replacement))
                return FenceRecord(epoch: rows.epoch, term: 0, link: try rows.tip(db), stage: .closed)
            }
        } catch {
            throw JournalError("open", directory.replacement, error)
        }
        let name = freeName(in: directory)
        // The file itself goes last: while it is there, the next start finds the same name.
        var moved: [String] = []
        for (file, suffix) in DataDirectory.companions.map({ (directory.journal + $0, ".sqlite" + $0) })
            + [(directory.fence, ".fence"), (directory.journal, ".sqlite")]
        where directory.size(file) != nil {
            try directory.rename(file, to: directory.path + "/" + name + suffix)
            moved.append(name + suffix)
        }
        _ = try Fence(directory, fence)
        try directory.rename(directory.replacement, to: directory.journal)
        try directory.sync(directory.path)
        return moved
    }

    private static func freeName(in directory: DataDirectory) -> String {
        var number = 1
        while directory.size("\(directory.path)/damaged-\(number).sqlite") != nil { number += 1 }
        return "damaged-\(number)"
    }
}
