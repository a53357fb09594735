package import StateJSON

/// A state that follows a recorded history, commit by commit: by its patches, or by its actions.
package protocol HistoryFollower: Sendable {
    /// The version of the state.
    var version: Version { get }

    /// Takes the next commit, and returns it with the patch and the changedPointers places that this follower has for it.
    ///
    /// - Throws: ``HistoryFault``; then the follower is of no further use.
    mutating func take(_ recorded: Commit) throws(HistoryFault) -> Commit

    /// The state as JSON.
    ///
    /// O(n).
    func text() throws -> [UInt8]
}

/// A commit at which a history cannot be followed.
package struct HistoryFault: Error, Sendable, CustomStringConvertible {
    /// The version that the commit makes.
    package let version: Version
    /// The types of its actions, or of the one action at fault.
    package let types: [String]
    /// The place in the state, where it is one place.
    package let pointer: JSONPointer?
    /// What is wrong, as a sentence without the version.
    package let detail: String

    init(_ commit: Commit, type: String? = nil, at pointer: JSONPointer? = nil, _ detail: String) {
        version = commit.version
        types = type.map { [$0] } ?? commit.types
        self.pointer = pointer
        self.detail = detail
    }

    /// Which commit, and what is wrong.
    package var description: String {
        let place = pointer.map { $0.tokens.isEmpty ? " at the root" : " at \($0)" } ?? ""
        return "version \(version) (\(Set(types).sorted().joined(separator: ", "))): \(detail)\(place)"
    }
}

/// A state that follows a history by the recorded patches.
///
/// No reducer runs and no domain is needed.
package struct PatchedState: HistoryFollower {
    /// The state.
    package private(set) var value: JSONValue
    package private(set) var version: Version

    /// Begins with a state.
    package init(_ state: JSONValue, version: Version) {
        value = state
        self.version = version
    }

    /// Begins with the JSON of a state.
    ///
    /// - Throws: ``JSONFault`` when it is not JSON.
    package init(parsing state: [UInt8], version: Version) throws(JSONFault) {
        self.init(try JSONValue(parsing: state, depthMax: 1000), version: version)
    }

    /// Applies the recorded patch.
    ///
    /// It costs what the patch holds.
    package mutating func take(_ recorded: Commit) throws(HistoryFault) -> Commit {
        let places: [JSONPointer]
        do {
            let patch = try JSONValue(parsing: recorded.patch, depthMax: 1000)
            places = value.places(changing: patch)
            try value.apply(patch: patch)
        } catch let fault as JSONFault {
            throw HistoryFault(recorded, "the patch cannot be read: \(fault.detail)")
        } catch let mismatch as PatchMismatch {
            throw HistoryFault(recorded, "the patch does not fit the state: \(mismatch.detail)")
        } catch {
            throw HistoryFault(recorded, "\(error)")
        }
        version = recorded.version
        return recorded.with(patch: recorded.patch, changedPointers: places)
    }

    package func text() -> [UInt8] { value.text }
}
