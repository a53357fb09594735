internal import HTTPMessages
internal import MicroHTTP
internal import StateHTTP
internal import StateJSON
internal import StateStore

extension RequestHandler {
    /// Looks at O(log n) past states, each as a GET with `version` does.
    func bisect(_ request: BisectRequest, _ exchange: Exchange) -> Reply {
        let latest = latest
        return reading(exchange, request.requestID, .past) { [self] in
            let oldest = try journal.map { max(try $0.oldestState(), hub.bounds.oldest) } ?? hub.bounds.oldest
            let low = request.from?.version ?? oldest
            guard low >= oldest else { throw Problem.versionGone(oldest: oldest) }
            let (found, looks) = try Bisection.first(after: low, through: request.to?.version ?? latest.version) {
                version in
                // The client may have gone: what is found then is of no use.
                guard !exchange.isOver else { return true }
                let cursor = Cursor(latest.epoch, version)
                guard let state = try pastState(at: cursor, hub.path(to: version), isOver: { exchange.isOver }) else {
                    throw Problem.versionGone(oldest: oldest)
                }
                let value = try state.encoded(.pointer(request.test.pointer)).map {
                    try JSONValue(parsing: Array($0.json), depthMax: 1000)
                }
                return request.test.holds(for: value)
            }
            switch found {
            case .failure(let miss):
                return contract.response(to: request, found: .failure(miss), looks: looks, latest: latest)
            case .success(let version):
                guard let commit = try page(ChangesQuery(since: version - 1, limit: 1))?.commits.first else {
                    throw Problem.versionGone(oldest: oldest)
                }
                return contract.response(to: request, found: .success(commit), looks: looks, latest: latest)
            }
        }
    }
}
