internal import StateJSON

/// The last-changed version of each view, by the view's number; 0 where nothing it reads has changed since the start.
///
/// Each commit sets those of some views, most often of the same ones as the commit before. The views of the last two commits
/// are therefore noted in sets, and the list of all views, which other snapshots share, changes only where another view than
/// those of the last commit was set before it.
struct ViewVersions: Sendable {
    /// The views, of the first 64, that a commit has set.
    private struct Group {
        var views: UInt64 = 0
        var version: Version = 0
    }

    private var all: [Version]
    private var last = Group()
    private var beforeLast = Group()

    /// Makes the versions of views that have not changed.
    init(count: Int = 0) { all = Array(repeating: 0, count: count) }

    /// Whether there is no view, or the versions are not known.
    var isEmpty: Bool { all.isEmpty }

    subscript(view: Int) -> Version {
        get {
            if Self.bit(view) & last.views != 0 { return last.version }
            return Self.bit(view) & beforeLast.views != 0 ? beforeLast.version : all[view]
        }
        set {
            guard Self.bit(view) != 0 else {
                all[view] = newValue
                return
            }
            if newValue != last.version { begin(newValue) }
            last.views |= Self.bit(view)
        }
    }

    private mutating func begin(_ version: Version) {
        var left = beforeLast.views & ~last.views
        while left != 0 {
            all[left.trailingZeroBitCount] = beforeLast.version
            left &= left - 1
        }
        beforeLast = last
        last = Group(views: 0, version: version)
    }

    /// The bit of a view; 0 for a view that no group can have.
    private static func bit(_ view: Int) -> UInt64 { view < 64 ? 1 << UInt64(view) : 0 }
}
