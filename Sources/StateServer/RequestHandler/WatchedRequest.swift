internal import HTTPMessages
internal import MicroHTTP
internal import StateHTTP
internal import StateJSON
internal import StateStore
internal import Synchronization

/// A request with a watch in the hub: its exchange, its kind and its options.
///
/// It is an object, because a delivery carries thousands of them.
final class WatchedRequest: Sendable {
    enum Kind: Sendable {
        case read(ReadRequest)
        case changes(ChangesRequest)
        case stream(StreamRequest)
        case dispatch(DispatchRequest, RequestName)
    }

    /// The options that decide the bytes of an answer.
    ///
    /// Requests with equal options share the answer to the same delivery.
    struct Options: Hashable {
        var style = Style.compact
        var coding: ContentCoding?
        var applied: Int?
        var store = ""
        var access: Access?
        var form = ChangesRequest.Form.patches
        var stream: StreamRequest.Format?
        var durable: DurableRead?
        var until: [UInt8]?
        var since: Cursor?
        var trace: String?
    }

    let exchange: Exchange
    let kind: Kind
    let options: Options
    /// How many entities the stream has sent of the snapshot that it begins with.
    let sentEntities: Atomic<Int>

    init(_ exchange: Exchange, _ kind: Kind) {
        self.exchange = exchange
        self.kind = kind
        let sentCount = if case .stream(let request) = kind { request.snapshot?.position ?? 0 } else { 0 }
        sentEntities = Atomic(sentCount)
        var options = Options(kind)
        if let trace = exchange.trace { options.trace = trace.text }
        self.options = options
    }

    var access: Access {
        switch kind {
        case .read(let request): request.store.access
        case .changes(let request): request.store.access
        case .stream(let request): request.store.access
        case .dispatch(let request, _): request.store.access
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

extension WatchedRequest.Options {
    fileprivate init(_ kind: WatchedRequest.Kind) {
        switch kind {
        case .read(let request):
            self.init(
                style: request.style, coding: request.coding, applied: request.wait?.applied, store: request.store.name,
                until: request.until?.text, since: request.keyed?.since)
        case .changes(let request): self.init(request)
        case .stream(let request):
            switch request.source {
            case .value: self.init(stream: request.format)
            case .changes(let changes): self.init(changes, stream: request.format)
            }
        case .dispatch: self.init()
        }
    }

    private init(_ request: ChangesRequest, stream: StreamRequest.Format? = nil) {
        self.init(
            style: request.style, coding: request.coding, applied: request.wait?.applied, store: request.store.name,
            access: request.store.access, form: request.form, stream: stream,
            durable: request.durable)
    }
}
