package import StateStore

/// The form of a segment's body: a head, the sizes of the records, and a record for each commit.
///
/// | part | content |
/// | --- | --- |
/// | head | the number of this form; the algorithm of the hash; the fence, which is the term of the writer, or 0; the members that occur in any record; the number of commits; the time of the first commit |
/// | sizes | the size of each record in bytes, from which a reader finds one record without reading the others; absent for one commit |
/// | record | the members that it has; the number of its model, and its time; action, patch and changed pointers; IDs; causation; subject; trace; key; named members, each with its size |
///
/// A record whose commit has the types of an earlier one of the segment has that commit as its model: it takes the types
/// from it, the changed pointers if they are equal, and of action and patch all that is equal at the start and at the end. A
/// model has no model itself, so that a commit is read from at most two records. A model has its types and its first pointer
/// in front, and takes from ``ByteWriter/fillAction(type:)`` and ``ByteWriter/fillPatch(path:)`` what others take from it.
/// Pointers and IDs that occur in the patch or in the action are places there. The version is not recorded, nor is an ID that
/// is the commit's own cursor.
package enum SegmentBody {
    static let form: UInt8 = 1

    /// Bounds what is read for one commit.
    package static let commitsMax = 256
    /// A larger commit has a segment of its own.
    static let bytesMax = 64 << 10

    static let scheduleName = "schedule"

    struct Members: OptionSet {
        let rawValue: UInt64
        static let model = Members(rawValue: 1 << 0)
        /// One client ID, which is the commit's ID.
        static let clientID = Members(rawValue: 1 << 1)
        /// Any other client IDs.
        static let clientIDs = Members(rawValue: 1 << 2)
        static let cause = Members(rawValue: 1 << 3)
        static let root = Members(rawValue: 1 << 4)
        static let key = Members(rawValue: 1 << 5)
        static let by = Members(rawValue: 1 << 6)
        static let trace = Members(rawValue: 1 << 7)
        /// A reader passes over unknown ones.
        static let named = Members(rawValue: 1 << 8)
        static let all = Members(rawValue: (1 << 9) - 1)
    }

    struct KeyMembers: OptionSet {
        let rawValue: UInt64
        static let isChange = KeyMembers(rawValue: 1 << 0)
        static let client = KeyMembers(rawValue: 1 << 1)
        /// An ID that is not that of the commit, or not the cursor of the version.
        static let id = KeyMembers(rawValue: 1 << 2)
        /// A version that is not that of the commit.
        static let version = KeyMembers(rawValue: 1 << 3)
        static let all = KeyMembers(rawValue: (1 << 4) - 1)
    }

    /// The index after the last commit.
    package static func end(of commits: [Commit], from start: Int) -> Int {
        var (end, bytes) = (start, 0)
        while end < commits.count, end - start < commitsMax {
            bytes += commits[end].action.count + commits[end].patch.count
            if bytes > bytesMax, end > start { break }
            end += 1
        }
        return end
    }
}

extension ByteWriter {
    mutating func fillAction(type: String) {
        removeAll()
        raw(#"{"type":""#)
        raw(type)
        raw(#"","payload":{}}"#)
    }

    mutating func fillPatch(path: UnsafeRawBufferPointer) {
        removeAll()
        raw(#"[{"op":"replace","path":""#)
        raw(path.bindMemory(to: UInt8.self))
        raw(#"","value":}]"#)
    }
}
