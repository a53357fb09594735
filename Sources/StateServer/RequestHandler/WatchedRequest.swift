internal import HTTPMessages
internal import MicroHTTP
internal import StateHTTP
internal import StateJSON
internal import StateStore
internal import Synchronization

/// A request with a watch in the hub: an object, because a delivery carries thousands of them.
final class WatchedRequest: Sendable {
    enum Kind: Sendable {
        case read(ReadRequest)
        case changes(ChangesRequest)
        case stream(StreamRequest)
        case dispatch(DispatchRequest)
    }

    /// The whole request without what decides no byte of its answers, which requests with equal options share.
    ///
    /// A parameter that is forgotten here is compared, and costs time.
    struct Options: Hashable {
        enum Request: Hashable {
            case read(ReadRequest)
            case changes(ChangesRequest)
            case stream(StreamRequest.Source, StreamRequest.Format)
            case dispatch
        }

        let request: Request
        let trace: String?
    }

    let exchange: Exchange
    let kind: Kind
    let sentEntities: Atomic<Int>

    init(_ exchange: Exchange, _ kind: Kind) {
        self.exchange = exchange
        self.kind = kind
        let sentCount = if case .stream(let request) = kind { request.snapshot?.position ?? 0 } else { 0 }
        sentEntities = Atomic(sentCount)
    }

    var options: Options { Options(request: kind.options, trace: exchange.trace?.text) }

    var access: Access {
        switch kind {
        case .read(let request): request.store.access
        case .changes(let request): request.store.access
        case .stream(let request): request.store.access
        case .dispatch(let request): request.store.access
        }
    }
}

extension WatchedRequest.Kind {
    var route: Watch.Route {
        switch self {
        case .read(let request): request.route
        case .changes(let request): request.route
        case .stream(let request):
            switch request.source {
            case .value(let request): request.route
            case .changes(let request): request.route
            }
        case .dispatch: .action
        }
    }
}

extension ReadRequest {
    fileprivate var route: Watch.Route { if case .view = selection.base { .view } else { .state } }
}

extension ChangesRequest {
    fileprivate var route: Watch.Route { form.isDifference ? .state : .changes }
}

extension Delivery {
    var watched: [WatchedRequest] {
        requests.map { request in
            guard let watched = request as? WatchedRequest else {
                preconditionFailure("the request handler registers nothing but watched requests")
            }
            return watched
        }
    }
}

extension [WatchedRequest] {
    var byOptions: [[WatchedRequest]] {
        // All requests of a delivery usually have equal options, which needs no dictionary.
        guard let options = first?.options, contains(where: { $0.options != options }) else { return [self] }
        return Array<[WatchedRequest]>(Dictionary(grouping: self, by: \.options).values)
    }
}

extension WatchedRequest.Kind {
    fileprivate var options: WatchedRequest.Options.Request {
        switch self {
        case .read(let request): return .read(request.untimed)
        case .changes(let request): return .changes(request.untimed)
        case .stream(let request):
            switch request.source {
            case .value(var read):
                // The stream has begun.
                (read.known, read.atLeast) = (nil, nil)
                return .stream(.value(read.untimed), request.format)
            case .changes(let changes): return .stream(.changes(changes.untimed), request.format)
            }
        case .dispatch: return .dispatch
        }
    }
}

extension ReadRequest {
    fileprivate var untimed: ReadRequest {
        var request = self
        request.wait?.duration = .zero
        request.debounce = nil
        return request
    }
}

extension ChangesRequest {
    fileprivate var untimed: ChangesRequest {
        var request = self
        // A delivery says behind which version its commits are.
        request.since = .now
        request.wait?.duration = .zero
        request.debounce = nil
        return request
    }
}
