/// Whose history it is: the name of the domain that commits to it.
package struct HistoryDomain: Codable, Equatable, Sendable {
    /// Such as `document`, or `model tasks.js`.
    package var name: String
    /// The version after which every commit is of this domain.
    package var since: Version

    package init(name: String, since: Version) { (self.name, self.since) = (name, since) }
}

/// The claim of a process that opens a history for writing: its own domain.
package struct DomainClaim: Sendable {
    /// The name of the domain that the process serves.
    package let name: String
    /// Whether a history of another domain becomes one of this domain.
    package var takesOthers: Bool

    package init(_ name: String, takesOthers: Bool = false) { (self.name, self.takesOthers) = (name, takesOthers) }

    /// Why a history is of another domain.
    package struct Refusal: Error, CustomStringConvertible {
        package let description: String
    }

    /// The record that a history gets, or nil if it has this one.
    ///
    /// A history without a record is taken for one of this domain.
    ///
    /// - Throws: ``Refusal`` for a history of another domain, unless this one takes it.
    package func record(
        of recorded: HistoryDomain?, endingAt latest: Version, in place: String
    ) throws(Refusal) -> HistoryDomain? {
        guard let recorded else { return HistoryDomain(name: name, since: 0) }
        guard !recorded.name.utf8.elementsEqual(name.utf8) else { return nil }
        guard takesOthers else {
            throw Refusal(
                description:
                    "the journal \(place) is of the domain \(recorded.name), and the domain \(name) is to be served: name that one, or another place for the data, or make the journal one of this domain with --change-domain"
            )
        }
        return HistoryDomain(name: name, since: latest)
    }
}
