package import StateJSON

// What readers and waiters are told.

/// A waiter as the board files it: by number.
///
/// One type for every owner of waiters: thousands are filed and woken at once, and what is compiled for one type costs a
/// fraction of what is compiled for any.
package struct WaiterToken: Hashable, Sendable {
    /// What tells it from all others of its board.
    package let number: UInt64
    /// What its owner knows of it; nil where it is only looked for.
    package let waiter: (any AnyObject & Sendable)?

    /// Makes a token.
    package init(_ number: UInt64, _ waiter: (any AnyObject & Sendable)? = nil) {
        self.number = number
        self.waiter = waiter
    }

    /// Whether the numbers are the same.
    package static func == (left: WaiterToken, right: WaiterToken) -> Bool { left.number == right.number }

    /// Feeds the number.
    package func hash(into hasher: inout Hasher) { hasher.combine(number) }
}

/// Those who are to be answered now, in the order of their coming, with what there is for them.
package struct Wake: Sendable {
    /// What has come.
    package enum News: Sendable {
        /// The selection that they wait for has other content; nil where it is gone.
        case selection(Reading)
        /// There are commits for these followers.
        case changes(ChangesQuery, ChangesPage)
        /// The version that they waited for is here.
        case version
    }

    package let news: News
    package let tokens: [WaiterToken]

    init(_ news: News, _ tokens: some Sequence<WaiterToken>) {
        self.news = news
        // Who came first is told first, and lies first in memory, which for thousands counts.
        self.tokens = tokens.sorted { $0.number < $1.number }
    }
}

/// A selection's value at an instant.
package struct Reading: Sendable {
    package let cursor: Cursor
    /// nil where there is nothing.
    package let encoded: Encoded?

    /// Makes a reading.
    package init(cursor: Cursor, encoded: Encoded?) {
        self.cursor = cursor
        self.encoded = encoded
    }
}

/// What a waiter at a selection waits for.
package enum WaitCondition: Sendable {
    /// Content other than these.
    case otherThan(TagSet)
    /// A value that says the same as this one, in whatever spelling.
    case equalTo(JSONValue)
    /// Any content, where there is none.
    case present

    /// Whether it is so; nil stands for a place where there is nothing.
    package func isMet(by encoded: Encoded?) -> Bool { isMet(by: encoded) { encoded?.value } }

    /// Whether it is so, with a value that several who ask share.
    func isMet(by encoded: Encoded?, value: () -> JSONValue?) -> Bool {
        switch self {
        // Someone who waits for content that is gone, or that is other content now, is to be told.
        case .otherThan(let tags): !tags.contains(encoded?.tag)
        case .equalTo(let wanted): value() == wanted
        case .present: encoded != nil
        }
    }
}

/// Whether a waiter was taken in.
package enum Parking: Sendable {
    case parked
    /// What it would wait for is so already.
    case ready
    /// There are too many: in all, or of this client.
    case refused(Share)

    package enum Share: Sendable { case all, client }
}

/// What there is after a follower's position.
package enum Following: Sendable {
    case page(ChangesPage)
    /// Nothing yet; where asked for, the follower is parked.
    case nothing(head: Cursor, Parking)
    /// The commits are no longer in memory, but the journal has them.
    case inJournal(head: Cursor)
    /// The commits are gone.
    case expired(oldest: Version, head: Cursor)
    /// The position is above the head: it belongs to a history that is not this one.
    case aboveHead(head: Cursor)
}

/// How many may wait.
package struct WaiterCaps: Sendable {
    package var waitersMax: Int
    package var waitersPerClientMax: Int

    /// Makes caps.
    package init(waitersMax: Int, waitersPerClientMax: Int) {
        self.waitersMax = waitersMax
        self.waitersPerClientMax = waitersPerClientMax
    }
}
