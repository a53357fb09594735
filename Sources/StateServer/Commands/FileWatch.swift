/// Looks at a file for a new content, as an editor saves it: in place, or as another file under its name.
struct FileWatch {
    private let file: SharedFile
    private var taken: [Int]?
    private var last: [Int]?

    init(_ path: String) {
        file = SharedFile(path: path, name: "watched file")
        taken = file.stamp
        last = taken
    }

    /// Whether the file is another one than at the last change, and the same as at the look before: its writer is done.
    mutating func hasChanged() -> Bool {
        let now = file.stamp
        defer { last = now }
        guard let now, now == last, now != taken else { return false }
        taken = now
        return true
    }
}
