internal import StateJSON

extension CompiledDomain {
    /// The UTF-8 JSON of a whole state; O(n) in its size.
    ///
    /// - Throws: ``JSONFault`` or `EncodingError` for a number that JSON does not have, such as infinity.
    package func bytes(of state: StateBox) throws -> [UInt8] { try tree(of: state).encoded() }

    /// The commit that adds the newly declared parts of the domain to a recorded state; nil when there are none.
    ///
    /// The cost is O(n) in the size of the state.
    package func upgrade(
        from recorded: [UInt8], to state: StateBox, version: Version, epoch: Epoch, at time: Timestamp
    ) throws -> Commit? {
        let bytes = try bytes(of: state)
        // Nearly every start finds the very bytes that it would write.
        guard recorded != bytes,
            try JSONValue(parsing: recorded, depthMax: 1000) != JSONValue(parsing: bytes, depthMax: 1000)
        else { return nil }
        var patch = JSONPatch()
        patch.compare(recorded, bytes)
        return Commit(
            version: version, time: time, id: Cursor(epoch, version).description, types: [Commit.upgradeType],
            action: Array(#"{"type":"\#(Commit.upgradeType)"}"#.utf8), patch: patch.text,
            changedPointers: patch.changedPointers)
    }
}
