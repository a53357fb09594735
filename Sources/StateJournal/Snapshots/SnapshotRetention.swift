import StateStore

/// The choice of the snapshots that a journal drops when it has too many.
///
/// The oldest snapshot that all kept commits follow stays, so that past versions, exports and verifications begin
/// there, however often the server was stopped since. Between it and the two newest ones, the snapshots stay that
/// divide the history most evenly.
struct SnapshotRetention {
    var countMax: Int
    /// The version up to which the commits exceed their number.
    var surplus: Version
    /// The version up to which the commits exceed their bytes; only the two newest snapshots may be older.
    var heavy: Version

    /// The snapshots to drop.
    func dropped(of versions: [Version]) -> [Version] {
        var kept = versions.dropLast(2).filter { $0 >= heavy } + versions.suffix(2)
        while kept.count > max(countMax, 2) { kept.remove(at: leastUseful(of: kept)) }
        return versions.filter { !kept.contains($0) }
    }

    private func leastUseful(of kept: [Version]) -> Int {
        let middle = kept.indices.dropFirst().dropLast(2)
        guard kept[0] >= surplus,
            let index = middle.min(by: { kept[$0 + 1] - kept[$0 - 1] < kept[$1 + 1] - kept[$1 - 1] })
        else { return 0 }
        return index
    }
}
