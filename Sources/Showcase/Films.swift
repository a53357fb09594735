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

/// Films from somewhere else: an action begins to load them, and an effect comes back with what it found.
package struct Films: Domain {
    /// The films of the last load that succeeded stay while others are loaded, and when that fails.
    package struct State: StateType, Codable {
        var phase = Phase.idle
        var films: [Film] = []
        /// Why it failed, when it has.
        var reason: String?
        package init() {}
    }

    package enum Phase: String, Codable, Sendable, CaseIterable { case idle, loading, finished, failed }

    /// Why there are no films: one sentence for everybody, without anything that was answered.
    package struct Unavailable: Error {
        package let sentence: String

        package init(_ sentence: String) { self.sentence = sentence }
    }

    /// Where films come from.
    ///
    /// Only the sentence of an ``Unavailable`` is told to anybody; of other errors only the type.
    package typealias Fetch = @Sendable () async throws -> [Film]

    /// Loads the films; a load that is under way is given up for this one.
    struct Load: Action {
        static let type = "films/load"
    }

    /// Sets the films.
    struct Set: ValidatedAction {
        static let type = "films/set"
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

    /// Ends a load without films.
    struct Fail: ValidatedAction {
        static let type = "films/fail"
        var reason: String

        func validate() throws(Rejection) {
            guard (1...textBytesMax).contains(reason.utf8.count) else {
                throw Rejection(
                    "films.reason", "a reason has 1 to \(textBytesMax) bytes", kind: .invalid, pointer: "/reason")
            }
        }
    }

    /// Gives up the load that is under way.
    struct Cancel: Action {
        static let type = "films/cancel"
    }

    private let fetch: Fetch

    /// Films that `fetch` brings; by default it says that nobody knows from where.
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

    /// The action that a fetch comes back as.
    private static func outcome(of fetch: Fetch) async -> any Action {
        do {
            return Set(films: try await fetch())
        } catch let error as Unavailable {
            return Fail(reason: error.sentence)
        } catch {
            // What else the error says may be quoted from an answer.
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
