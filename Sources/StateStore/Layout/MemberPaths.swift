internal import StateJSON

/// The names of an object's members, for a search by the bytes of a path.
struct MemberPaths: Sendable {
    /// The names one after the other, each with a slash behind it; without those that no path without escapes has.
    private var bytes: [UInt8] = []
    private var ends: [Int] = []

    init(_ names: [String]) {
        for name in names {
            if !name.utf8.contains(UInt8(ascii: "/")) { bytes += name.utf8 + [UInt8(ascii: "/")] }
            ends.append(bytes.count)
        }
    }

    /// Finds the member whose name is the first token of a path.
    ///
    /// - Parameter path: tokens with a slash between each two.
    /// - Returns: the index of the member, and the path behind the slash; nil where no name fits, or no slash follows.
    func match(_ path: UnsafeBufferPointer<UInt8>) -> (index: Int, rest: UnsafeBufferPointer<UInt8>)? {
        bytes.withUnsafeBufferPointer { bytes in
            var start = 0
            for index in ends.indices {
                let name = bytes[start..<ends[index]]
                start = ends[index]
                // Names of different lengths seldom have a slash at the same place.
                guard !name.isEmpty, name.count <= path.count, path[name.count - 1] == UInt8(ascii: "/") else {
                    continue
                }
                let head = UnsafeBufferPointer(rebasing: path[..<name.count])
                if UnsafeBufferPointer(rebasing: name).hasBytes(of: head) {
                    return (index, UnsafeBufferPointer(rebasing: path[name.count...]))
                }
            }
            return nil
        }
    }
}
