internal import Dispatch
internal import FoundationEssentials
internal import HTTPClient
internal import Showcase
internal import StateServer

/// Accepts the format of SWAPI, `{"results": [{"title", "episode_id", "director"}]}`, or the array alone, up to 1 MB,
/// and follows no redirects, so that only the configured server is connected to.
struct FilmsClient {
    private let address: String
    private let timeout: Duration
    private let retriesMax: Int

    /// Does not quote the answer.
    private struct Fault: Error {
        let sentence: String
        var isWorthRetrying = false
    }

    private static let bodyBytesMax = 1 << 20
    private static let queue = DispatchQueue(label: "storekeeper.films", attributes: .concurrent)

    static func fetch(_ settings: Settings) throws(SettingsFault) -> Films.Fetch {
        let base = settings.filmsBaseURL
        guard base != "none" else { return { throw Films.Unavailable("no films address is configured") } }
        guard let url = URL(string: base), ["http", "https"].contains(url.scheme), url.host?.isEmpty == false,
            url.query == nil, url.fragment == nil
        else {
            throw SettingsFault("films_base_url must be none, or http or https with a host and no query")
        }
        // The parsed form is percent-encoded; libcurl refuses an address with a space.
        let address = url.absoluteString
        let client = FilmsClient(
            address: "\(address.hasSuffix("/") ? String(address.dropLast()) : address)/films",
            timeout: .seconds(settings.filmsTimeoutSeconds), retriesMax: settings.filmsRetries)
        do {
            // A machine without libcurl is found at start.
            _ = try HTTPConnection()
        } catch {
            throw SettingsFault("films_base_url is set, and \(error), or set films_base_url to none")
        }
        return { try await client.films() }
    }

    private func films() async throws -> [Film] {
        var retriesCount = 0
        while true {
            do {
                return try await ask()
            } catch let fault as Fault {
                guard fault.isWorthRetrying, retriesCount < retriesMax else {
                    throw Films.Unavailable(fault.sentence)
                }
            }
            try await Task.sleep(for: min(.milliseconds(100) * (1 << retriesCount), .seconds(2)))
            retriesCount += 1
        }
    }

    private func ask() async throws -> [Film] {
        let response: HTTPConnection.Response
        do {
            response = try await get()
        } catch let failure as HTTPConnection.Failure {
            switch failure {
            case .cancelled: throw CancellationError()
            case .timedOut:
                throw Fault(sentence: "the films server did not answer within \(timeout)", isWorthRetrying: true)
            case .tooLong:
                throw Fault(sentence: "the films server answered with more than \(Self.bodyBytesMax) bytes")
            case .unreachable(let reason), .disconnected(let reason):
                throw Fault(sentence: "the connection to the films server failed: \(reason)", isWorthRetrying: true)
            }
        }
        guard response.status == 200 else {
            throw Fault(
                sentence: "the films server answered with status \(response.status)",
                isWorthRetrying: response.status >= 500)
        }
        do {
            return try Self.decode(Data(response.body))
        } catch {
            // The decoding error is dropped because its text quotes the answer.
            throw Fault(sentence: "the films server did not answer with a list of films")
        }
    }

    /// Sends one request on a thread of ``queue``; a cancelled task ends it at once.
    private func get() async throws -> HTTPConnection.Response {
        var request = HTTPConnection.Request(
            address, fields: ["Accept: application/json"], within: timeout, bodyBytesMax: Self.bodyBytesMax)
        request.statusWithBody = 200
        let connection = try HTTPConnection()
        return try await withTaskCancellationHandler {
            try await withCheckedThrowingContinuation { [request] continuation in
                Self.queue.async {
                    continuation.resume(with: Result { try connection.perform(request) })
                }
            }
        } onCancel: {
            connection.cancel()
        }
    }

    private struct Entry: Decodable {
        var title: String
        var director: String?
        var episode_id: Int?
    }

    private struct Page: Decodable {
        var results: [Entry]
    }

    private static func decode(_ body: Data) throws -> [Film] {
        // What is not an array is a page.
        let list = try? JSONDecoder().decode([Entry].self, from: body)
        let entries = try list ?? JSONDecoder().decode(Page.self, from: body).results
        return entries.map { Film(title: $0.title, director: $0.director, episode: $0.episode_id) }
    }
}
