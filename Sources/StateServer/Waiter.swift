internal import HTTPMessages
internal import MicroHTTP
internal import StateHTTP
internal import StateJSON
internal import StateStore

/// A request that waits on the board: who it is, and what it asked for.
///
/// An object, because thousands are handed about at once.
final class Waiter: Sendable {
    enum Kind: Sendable {
        case read(ReadRequest)
        case follow(FollowRequest)
        case stream(StreamRequest)
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

    init(exchange: Exchange, kind: Kind) {
        self.exchange = exchange
        self.kind = kind
        manner = Manner(kind)
    }

    /// As the board files it.
    var token: WaiterToken { WaiterToken(exchange.id, self) }
}

extension Exchange {
    /// What finds its waiter on the board: the transport knows only the exchange.
    var token: WaiterToken { WaiterToken(id) }
}

extension WaiterToken {
    /// Who has been filed under this token.
    var parked: Waiter {
        guard let waiter = waiter as? Waiter else {
            preconditionFailure("the desk files waiters, and nobody else files")
        }
        return waiter
    }
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
        }
    }

    private init(_ request: FollowRequest, stream: StreamRequest.Format? = nil) {
        self.init(
            style: request.style, applied: request.wait?.applied, settle: request.settle, scope: request.scope.name,
            form: request.form, stream: stream)
    }
}
