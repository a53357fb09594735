package import StateStore

/// A film, as a list of films shows it.
package struct Film: Codable, Equatable, Sendable {
    package var title: String
    package var director: String?
    package var episode: Int?

    package init(title: String, director: String? = nil, episode: Int? = nil) {
        self.title = title
        self.director = director
        self.episode = episode
    }
}

/// Films from another server: an action starts to load them, and an effect dispatches the result.
package struct Films: Domain {
    /// During a load, and after a failed one, the state keeps the films of the last successful load.
    package struct State: StateType, Codable {
        var phase = Phase.idle
        var films: [Film] = []
        var reason: String?
        package init() {}
    }

    package enum Phase: String, Codable, Sendable, CaseIterable { case idle, loading, finished, failed }

    /// The reason why there are no films: a sentence for every client, which quotes nothing of the other server's answer.
    package struct Unavailable: Error {
        package let sentence: String

        package init(_ sentence: String) { self.sentence = sentence }
    }

    /// Fetches the films.
    ///
    /// Clients read the sentence of an ``Unavailable``, and only the type of any other error.
    package typealias Fetch = @Sendable () async throws -> [Film]

    /// Loads the films; the store cancels a load that is under way.
    struct Load: Action {
        static let type = "films/load"
    }

    struct Set: ValidatedAction {
        static let type = "films/set"
        static let isInternal = true
        var films: [Film]

        func validate() throws(Rejection) {
            guard films.count <= filmsMax else { throw Self.refusal("there are more than \(filmsMax) films", "") }
            for (index, film) in films.enumerated() {
                guard (1...textBytesMax).contains(film.title.utf8.count) else {
                    throw Self.refusal("a title has 1 to \(textBytesMax) bytes", "/\(index)/title")
                }
                guard film.director?.utf8.count ?? 0 <= textBytesMax else {
                    throw Self.refusal("a director has at most \(textBytesMax) bytes", "/\(index)/director")
                }
            }
        }

        private static func refusal(_ detail: String, _ place: String) -> Rejection {
            Rejection("films.bounds", detail, kind: .invalid, pointer: "/films\(place)")
        }
    }

    struct Fail: ValidatedAction {
        static let type = "films/fail"
        static let isInternal = true
        var reason: String

        func validate() throws(Rejection) {
            guard (1...textBytesMax).contains(reason.utf8.count) else {
                throw Rejection(
                    "films.reason", "a reason has 1 to \(textBytesMax) bytes", kind: .invalid, pointer: "/reason")
            }
        }
    }

    struct Cancel: Action {
        static let type = "films/cancel"
    }

    private let fetch: Fetch

    /// Makes a domain that loads with `fetch`; by default each load fails because no address is configured.
    package init(fetch: @escaping Fetch = { throw Unavailable("no films address is configured") }) {
        self.fetch = fetch
    }

    package var reducer: some Reducer<State> {
        On(Load.self) { state, _ in
            state.phase = .loading
            state.reason = nil
        }
        On(Set.self) { state, action in
            state.phase = .finished
            state.films = action.films
            state.reason = nil
        }
        On(Fail.self) { state, action throws(Rejection) in
            try state.requireLoading()
            state.phase = .failed
            state.reason = action.reason
        }
        On(Cancel.self) { state, _ throws(Rejection) in
            try state.requireLoading()
            state.phase = .idle
        }
        On(StoreResume.self) { state, _ in
            guard state.phase == .loading else { return }
            state.phase = .failed
            state.reason = "interrupted by a restart"
        }

        Effect(on: Load.self, id: "load") { [fetch] _, _, dispatch in
            do throws(DispatchError) {
                try await dispatch(Self.outcome(of: fetch))
            } catch .rejected(let rejection, _) {
                try await dispatch(Fail(reason: "the films that came do not fit: \(rejection.detail)"))
            }
        }
        CancelEffect(on: Cancel.self, id: "load")
    }

    private static func outcome(of fetch: Fetch) async -> any Action {
        do {
            return Set(films: try await fetch())
        } catch let error as Unavailable {
            return Fail(reason: error.sentence)
        } catch {
            // The error's description may quote the other server's answer.
            return Fail(reason: "the films could not be fetched: \(type(of: error))")
        }
    }
}

private let filmsMax = 1000
private let textBytesMax = 1000

extension Films.State {
    fileprivate func requireLoading() throws(Rejection) {
        guard phase == .loading else {
            throw Rejection("films.not-loading", "no load is under way: the films are \(phase.rawValue)")
        }
    }
}
