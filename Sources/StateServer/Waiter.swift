internal import HTTPMessages
internal import MicroHTTP
internal import StateHTTP
internal import StateJSON
internal import StateStore

/// A request that waits on the board: who it is, and what it asked for.
///
/// Equal when the exchange is: the transport, which knows only that, can take a waiter out. An object, because thousands
/// are handed about at once.
final class Waiter: Hashable, Sendable {
    enum Kind: Sendable {
        case read(ReadRequest)
        case follow(FollowRequest)
        case stream(StreamRequest)
        /// Only to find the one that is parked.
        case unknown
    }

    /// What makes two answers of the same content differ: problems name their request, the rest only these.
    struct Manner: Hashable {
        var style = Style.compact
        var applied: Int?
        var settle: Duration?
        var scope = ""
        var form = FollowRequest.Form.patches
        var stream: StreamRequest.Format?
        var until: [UInt8]?
    }

    let exchange: Exchange
    let kind: Kind
    let manner: Manner

    init(exchange: Exchange, kind: Kind = .unknown) {
        self.exchange = exchange
        self.kind = kind
        manner = Manner(kind)
    }

    static func == (left: Waiter, right: Waiter) -> Bool { left.exchange == right.exchange }

    func hash(into hasher: inout Hasher) { hasher.combine(exchange) }
}

extension Waiter.Manner {
    fileprivate init(_ kind: Waiter.Kind) {
        switch kind {
        case .read(let request):
            self.init(
                style: request.style, applied: request.wait?.applied, settle: request.settle,
                scope: request.scope.name, until: request.until?.text)
        case .follow(let request): self.init(request)
        case .stream(let request):
            switch request.source {
            case .value: self.init(stream: request.format)
            case .changes(let follow): self.init(follow, stream: request.format)
            }
        case .unknown: self.init()
        }
    }

    private init(_ request: FollowRequest, stream: StreamRequest.Format? = nil) {
        self.init(
            style: request.style, applied: request.wait?.applied, settle: request.settle, scope: request.scope.name,
            form: request.form, stream: stream)
    }
}
