/// Spells the cursors of one history as those of another.
package struct EpochChange {
    let from: Epoch
    let to: Epoch

    package init(from: Epoch, to: Epoch) {
        (self.from, self.to) = (from, to)
    }

    package func commit(_ commit: Commit) -> Commit {
        guard from != to else { return commit }
        return Commit(
            version: commit.version, time: commit.time, id: id(commit.id), cause: commit.cause.map(id),
            root: commit.root.map(id), by: commit.by, trace: commit.trace, types: commit.types,
            action: commit.action, patch: commit.patch,
            changedPointers: commit.changedPointers, clientIDs: commit.clientIDs,
            idempotency: commit.idempotency.map(key))
    }

    package func key(_ key: KeyRecord) -> KeyRecord {
        KeyRecord(
            key: key.key, fingerprint: key.fingerprint, version: key.version, id: id(key.id), isChange: key.isChange,
            expiry: key.expiry, client: key.client)
    }

    package func id(_ id: String) -> String {
        guard let cursor = Cursor(text: id), cursor.epoch == from else { return id }
        return Cursor(to, cursor.version).description
    }
}
