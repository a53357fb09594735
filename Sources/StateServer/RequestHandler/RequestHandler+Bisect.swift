internal import HTTPMessages
internal import MicroHTTP
internal import StateHTTP
internal import StateJSON
internal import StateStore

/// The search for the first commit after which a test of a value holds.
extension RequestHandler {
    /// Looks at O(log n) past states, each as a GET with `version` does.
    func bisect(_ request: BisectRequest, _ exchange: Exchange) -> Reply {
        let latest = latest
        return reading(exchange, request.requestID, .past) { [self] in
            let oldest = try journal.map { max(try $0.oldestState(), hub.bounds.oldest) } ?? hub.bounds.oldest
            var low = request.from?.version ?? oldest
            var high = request.to?.version ?? latest.version
            guard low >= oldest else { throw Problem.versionGone(oldest: oldest) }
            var looks = 0
            func holds(at version: Version) throws -> Bool {
                // The client may have gone: what is found then is of no use.
                guard !exchange.isOver else { return true }
                looks += 1
                let cursor = Cursor(latest.epoch, version)
                let path = hub.path(to: version)
                guard let state = try pastState(at: cursor, path, isOver: { exchange.isOver }) else {
                    throw Problem.versionGone(oldest: oldest)
                }
                let value = try state.encoded(.pointer(request.pointer)).map {
                    try JSONValue(parsing: Array($0.json), depthMax: 1000)
                }
                return request.holds(for: value)
            }
            func answer(_ found: Result<Commit, Contract.BisectMiss>) -> Response {
                contract.response(to: request, found: found, looks: looks, latest: latest)
            }
            guard try holds(at: high) else { return answer(.failure(.neverHolds)) }
            guard try low < high && !holds(at: low) else { return answer(.failure(.holdsAtStart)) }
            while high - low > 1 {
                let middle = low + (high - low) / 2
                if try holds(at: middle) { high = middle } else { low = middle }
            }
            guard let commit = try page(ChangesQuery(since: low, limit: 1))?.commits.first else {
                throw Problem.versionGone(oldest: oldest)
            }
            return answer(.success(commit))
        }
    }
}
