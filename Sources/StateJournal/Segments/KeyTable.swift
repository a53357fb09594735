internal import StateJSON
package import StateStore

/// A key can expire long after its commit is pruned.
package enum KeyTable {
    static let form: UInt8 = 1

    /// Returns the last expiry, or nil without keys, for which nothing is written.
    package static func write(
        _ keys: some Sequence<KeyRecord>, _ epoch: Epoch, to writer: inout ByteWriter
    ) -> Timestamp? {
        var expiry: Timestamp?
        for key in keys {
            if expiry == nil {
                writer.removeAll()
                writer.byte(form)
            }
            expiry = max(expiry ?? key.expiry, key.expiry)
            var members: SegmentBody.KeyMembers = key.isChange ? .isChange : []
            let hasOwnID = !JSONPointer.sameBytes(key.id, Cursor(epoch, key.version).description)
            if hasOwnID { members.insert(.id) }
            if key.client != nil { members.insert(.client) }
            writer.number(members.rawValue)
            writer.number(key.version)
            writer.string(key.key.recorded)
            writer.string(key.fingerprint)
            writer.signed(key.expiry.milliseconds)
            if hasOwnID { writer.string(key.id) }
            if let client = key.client { writer.string(client) }
        }
        return expiry
    }

    package static func read(_ bytes: UnsafeRawBufferPointer, _ epoch: Epoch) throws(SegmentFault) -> [KeyRecord] {
        var reader = ByteReader(bytes)
        guard try reader.byte() == form else { throw SegmentFault("a newer program reads them") }
        var keys: [KeyRecord] = []
        while !reader.isAtEnd {
            let members = SegmentBody.KeyMembers(rawValue: try reader.number())
            // Each key has its version here.
            guard members.isSubset(of: [.isChange, .client, .id]) else { throw .malformed }
            let version = try reader.number()
            let key = try reader.string()
            let fingerprint = try reader.string()
            let expiry = Timestamp(milliseconds: try reader.signed())
            let id = members.contains(.id) ? try reader.string() : Cursor(epoch, version).description
            let client = members.contains(.client) ? try reader.string() : nil
            keys.append(
                KeyRecord(
                    key: IdempotencyKey(recorded: key), fingerprint: fingerprint, version: version, id: id,
                    isChange: members.contains(.isChange), expiry: expiry, client: client))
        }
        return keys
    }
}
