internal import HTTPMessages
internal import MicroHTTP
internal import StateHTTP
internal import StateStore

/// A request that waits on the board: who it is, and what it asked for.
///
/// Equal when the exchange is: the transport, which knows only that, can take a waiter out.
struct Waiter: Hashable, Sendable {
    enum Kind: Sendable {
        case read(ReadRequest)
        case follow(FollowRequest)
        case stream(StreamRequest)
        /// Only to find the one that is parked.
        case unknown
    }

    let exchange: Exchange
    var kind = Kind.unknown

    static func == (left: Waiter, right: Waiter) -> Bool { left.exchange == right.exchange }

    func hash(into hasher: inout Hasher) { hasher.combine(exchange) }
}
