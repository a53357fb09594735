import HTTPMessages
import HTTPTypes
import Testing

@testable import StateHTTP
@testable import StateJSON
@testable import StateStore
@testable import TestSupport

@Suite("Contract")
struct ContractTests {
    private static let epoch = Epoch("storekeeperdemoa") ?? .random()
    private static let latest = Cursor(epoch, 7)

    private func contract(_ limits: ContractLimits = ContractLimits()) throws -> Contract {
        Contract(catalogue: try CompiledDomain(Demo()).catalogue, limits: limits)
    }

    private func answer(_ request: Request, oldest: Version = 0) throws -> Plan {
        let contract = try contract()
        let plan = contract.plan(
            for: request,
            in: Circumstances(
                bounds: HistoryBounds(latest: Self.latest, oldest: oldest), name: RequestName(request.own, number: 1),
                authentication: .success(Access()))
        ).plan
        if case .document(let request) = plan { return .respond(contract.response(to: request)) }
        return plan
    }

    @Test(
        "a request to a fork in the form for proxies is one to the same path",
        arguments: ["", "http://127.0.0.1:8080", "https://state.example"])
    func absoluteFork(origin: String) throws {
        for (below, inner) in [
            ("state/a%2Fb?pretty", "/v1/state/a%2Fb?pretty"),
            ("changes?since=oldest&path=/a", "/v1/changes?since=oldest&path=/a"),
            ("state/", "/v1/state/"),
        ] {
            guard
                case .forks(.inside("f1", let request)) = try answer(Request(target: "\(origin)/v1/forks/f1/\(below)"))
            else {
                Issue.record("\(below)")
                continue
            }
            #expect(request.target == origin + inner)
        }
    }

    private func json(_ response: Response) throws -> JSONValue { try JSONValue(parsing: response.body) }

    /// The parameters of a GET, each of which the document names by a reference.
    private func parameters(of path: String, in document: JSONValue) throws -> [JSONValue] {
        let list = document[pointer: JSONPointer(["paths", path, "get", "parameters"])]
        guard case .array(let references)? = list else { return [] }
        return try references.map { reference in
            guard case .string(let target)? = reference[pointer: "/$ref"] else { return reference }
            let pointer = try #require(JSONPointer(text: String(target.dropFirst())))
            return try #require(document[pointer: pointer])
        }
    }

    @Test("the description of a route has exactly the parameters that the route takes")
    func parameters() throws {
        let answer = try answer(Request(target: "/v1/openapi.json"))

        guard case .respond(let response) = answer else { Issue.record("\(answer)"); return }
        let described = try json(response)
        let ofQueries = ["after", "count", "explain", "fields", "filter", "limit", "offset", "sort"]
        let ofAnyRead =
            (["at-least", "debounce", "pretty", "until", "until-exists", "version", "wait"] + ofQueries).sorted()
        let ofState = (ofAnyRead + ["as", "since"]).sorted()
        for (path, target, known) in [
            ("/v1/state", "/v1/state", ofState),
            ("/v1/state/{pointer}", "/v1/state/counter", ofState),
            ("/v1/views/tasks.open", "/v1/views/tasks.open", ofAnyRead),
            (
                "/v1/changes", "/v1/changes",
                ["as", "before", "by", "debounce", "limit", "on-lost", "path", "pretty", "since", "types", "wait"]
            ),
        ] {
            let names = try parameters(of: path, in: described).filter { $0[pointer: "/in"] == .string("query") }
                .compactMap { $0[pointer: "/name"] }
            #expect(Set(names.map { String(decoding: $0.text, as: UTF8.self) }) == Set(known.map { "\"\($0)\"" }))

            guard case .respond(let refusal) = try self.answer(Request(target: "\(target)?unknown")) else { continue }
            #expect(
                String(decoding: refusal.body, as: UTF8.self).contains(
                    "known here are \(known.joined(separator: ", "))\""))
        }
    }

    @Test(
        "a problem of the request handler has its status, and Retry-After where a retry helps",
        arguments: [
            (Problem.tooManyWaiters(.all), 503, "5"), (.tooManyWaiters(.client), 429, "5"), (.draining, 503, "1"),
            (.notDurable, 503, "1"), (.outcomeUnknown(id: nil), 503, "1"), (.journalDamaged, 500, nil),
            (.versionGone(oldest: 3), 410, nil), (.ourFault, 500, nil),
            (.tooLarge(limit: 9), 413, nil),
        ] as [(Problem, Int, String?)])
    func rim(problem: Problem, status: Int, retryAfter: String?) {
        #expect(problem.status.code == status)
        #expect(problem.fields[.retryAfter] == retryAfter)
    }

    @Test(
        "what the store cannot do is said with its status",
        arguments: [
            (.full(.mailbox), 503, "mailbox-full"), (.full(.idempotencyKeys), 503, "idempotency-keys-full"),
            (.notRecorded, 503, "not-durable"), (.unknown(id: "mine"), 503, "outcome-unknown"),
            (.failed(detail: "secret"), 500, "internal"),
            (.draining, 503, "draining"),
        ] as [(Outcome, Int, String)])
    func outcomes(outcome: Outcome, status: Int, code: String) throws {
        let contract = try contract()
        let options = DispatchOptions(store: VisibleStore(scope: contract.catalogue.whole, access: Access()))
        let request = DispatchRequest(options: options, content: .one(Transaction([.init(Demo.Reset())])))

        let response = contract.response(
            to: request, outcome: outcome, latest: Self.latest, name: RequestName(nil, number: 1))

        #expect(response.status.code == status)
        #expect(try json(response)[pointer: "/code"] == .string(code))
        #expect(!String(decoding: response.body, as: UTF8.self).contains("secret"))
    }

    @Test(
        "the cause of a follow-up is shown to a client that may see every action, and to no other one",
        arguments: [(["*"], true), (["/counter", "actions:counter/*"], false)])
    func causes(read: [String], isShown: Bool) throws {
        let contract = try contract()
        let access = Access(
            Grant(read: read, dispatch: ["counter/*"], others: true), subject: "a", in: contract.catalogue)
        let options = DispatchOptions(store: VisibleStore(scope: contract.catalogue.whole, access: access))
        let request = DispatchRequest(options: options, content: .one(Transaction([.init(Demo.Reset())])))
        var cascade = CascadeReport(isComplete: true)
        cascade.caused = [
            CascadeReport.Caused(version: 7, id: "b", cause: "hidden", types: ["counter/add"], isChange: true)
        ]
        cascade.refused = [CascadeReport.Refused(type: "counter/add", cause: "hidden", code: "c", detail: "d")]

        let response = contract.response(
            to: request,
            outcome: .committed(Receipt(Cursor(Self.epoch, 5), ownID: nil, isChange: true, isReplay: false)),
            cascade: cascade, latest: Self.latest, name: RequestName(nil, number: 1))

        let answer = try json(response)
        let cause = isShown ? JSONValue.string("hidden") : JSONValue?.none
        #expect(answer[pointer: "/caused/0/id"] == .string("b"))
        #expect(answer[pointer: "/caused/0/cause"] == cause)
        #expect(answer[pointer: "/refused/0/code"] == .string("c"))
        #expect(answer[pointer: "/refused/0/cause"] == cause)
    }

    @Test(
        "what a cache keeps of a stream depends on the credential, except where all clients see it",
        arguments: [true, false])
    func privateStream(isPublic: Bool) throws {
        let contract = try contract()
        var read = DurableRead(
            content: .commits, start: StreamOffset(Cursor(Self.epoch, 1)).text, knownCompressed: [], isPublic: isPublic)
        let page = ChangesPage(commits: [], next: 5, isMore: true, latest: Self.latest)
        func response(_ bytesCount: Int, _ coding: ContentCoding? = nil) -> Response {
            let request = ChangesRequest(
                since: .oldest, limit: 10, filter: ChangesFilter(),
                store: VisibleStore(scope: contract.catalogue.whole, access: Access()), form: .patches,
                onLost: .problem, durable: read, style: .compact, coding: coding, name: RequestName(nil, number: 1))
            return contract.response(
                to: request, read, page, at: StreamTime(Timestamp(milliseconds: 0), random: 0),
                messages: { [UInt8](repeating: 0x20, count: bytesCount) })
        }

        let (plain, compressed) = (response(2), response(10_000, .gzip))
        read.known = .tags([read.tag(to: StreamOffset(Cursor(Self.epoch, 5)).text)])
        let known = response(2)

        let cacheControl = (isPublic ? "public" : "private") + ", max-age=86400, immutable"
        for response in [plain, compressed, known] { #expect(response.fields[.cacheControl] == cacheControl) }
        #expect(known.status == .notModified)
        for response in [plain, known] { #expect(response.fields[.vary] == (isPublic ? nil : "Authorization")) }
        #expect(compressed.fields[.vary] == (isPublic ? "" : "Authorization, ") + "Accept-Encoding")
    }

    @Test("an unknown outcome names the client's ID and says neither that the action was committed nor that it was not")
    func unknownOutcome() throws {
        let problem = Problem.outcomeUnknown(id: "mine")

        #expect(problem.members.map(\.name) == ["id"])
        #expect(!problem.detail.contains("nothing was committed"))
        #expect(problem.detail.contains("not known"))
        #expect(Problem.outcomeUnknown(id: nil).members.isEmpty)
    }

    @Test(
        "a time has milliseconds",
        arguments: [
            (0, "1970-01-01T00:00:00.000Z"), (1, "1970-01-01T00:00:00.001Z"), (-1, "1969-12-31T23:59:59.999Z"),
            (1_767_323_045_678, "2026-01-02T03:04:05.678Z"), (1_767_323_045_999, "2026-01-02T03:04:05.999Z"),
            (951_782_400_000, "2000-02-29T00:00:00.000Z"),
        ])
    func time(milliseconds: Int64, text: String) throws {
        let commit = Commit(
            version: 1, time: Timestamp(milliseconds: milliseconds), id: "a", types: [], action: Array("{}".utf8),
            patch: Array("[]".utf8))

        let contract = try contract()
        let response = contract.response(
            toOutcomeOf: "a", commit, VisibleStore(scope: contract.catalogue.whole, access: Access()),
            latest: Self.latest,
            style: .compact, name: RequestName(nil, number: 1))

        #expect(try json(response)[pointer: "/time"] == .string(text))
    }

    @Test(
        "a wait lasts as asked, up to the limit, and the answer has the applied wait where it was preferred or cut",
        arguments: [
            ("?wait=25", nil, .seconds(25), nil), ("?wait=0.5", nil, .milliseconds(500), nil),
            ("?wait=55", nil, .seconds(55), nil), ("?wait=56", nil, .seconds(55), 55),
            ("?wait=1e300", nil, .seconds(55), 55), ("?wait", nil, .seconds(25), nil), ("?wait=0", nil, nil, nil),
            ("", nil, nil, nil), ("", "wait", .seconds(25), 25), ("", "wait=55", .seconds(55), 55),
            ("", "wait=56", .seconds(55), 55), ("", "wait=9223372036854775807", .seconds(55), 55),
            ("", "wait=0", nil, nil),
            ("?wait=5", "wait=50", .seconds(5), nil),
        ] as [(String, String?, Duration?, Int?)])
    func wait(query: String, preference: String?, duration: Duration?, applied: Int?) throws {
        let fields: HTTPFields = preference.map { [.prefer: $0] } ?? [:]
        let request = Request(target: "/v1/state\(query)", fields: fields)

        let answer = try answer(request)

        guard case .read(let read) = answer else { Issue.record("\(answer)"); return }
        #expect(read.wait?.duration == duration)
        #expect(read.wait?.applied == applied)
    }

    @Test(
        "a limit of changes is cut at its maximum",
        arguments: [
            (nil, 100), ("1", 1), ("1000", 1000), ("1001", 1000), ("18446744073709551616", 1000), ("1e2", 100),
        ])
    func limit(asked: String?, given: Int) throws {
        let answer = try answer(Request(target: "/v1/changes?since=now\(asked.map { "&limit=\($0)" } ?? "")"))

        guard case .changes(let follow) = answer else { Issue.record("\(answer)"); return }
        #expect(follow.limit == given)
    }

    @Test("a stream of a history that has nothing is answered with gone")
    func nothingKept() throws {
        let target = "/v1/streams/commits?offset=now&live=sse"

        guard case .respond(let response) = try answer(Request(target: target), oldest: 9) else {
            Issue.record("there is nothing to stream")
            return
        }

        #expect(response.status == .gone)
        guard case .stream = try answer(Request(target: target), oldest: 7) else {
            Issue.record("the newest version is kept")
            return
        }
    }

    @Test("a line feed behind the last line of a bulk load begins no further line")
    func lines() throws {
        var limits = ContractLimits()
        limits.bulkLinesMax = 3
        let contract = try contract(limits)
        func linesCount(_ ends: [String]) -> Int? {
            let body = ends.map { #"{"type":"counter/reset"}"# + $0 }.joined()
            let plan = contract.plan(
                for: Request(
                    method: .post, target: "/v1/actions", fields: [.contentType: "application/x-ndjson"],
                    body: Array(body.utf8)),
                in: Circumstances(
                    bounds: HistoryBounds(latest: Self.latest, oldest: 0),
                    name: RequestName(nil, number: 1), authentication: .success(Access()))
            ).plan
            guard case .dispatch(let request) = plan, case .lines(let lines) = request.content else { return nil }
            return lines.count
        }

        #expect(linesCount(["\n", "\n", ""]) == 3)
        #expect(linesCount(["\n", "\n", "\n"]) == 3)
        #expect(linesCount(["\r\n", "\r\n", "\r\n"]) == 3)
        #expect(linesCount(["\n", "\n", "\n", ""]) == nil)
        #expect(linesCount(["\n", "\n", "\n\n"]) == nil)
    }

    @Test(
        "a number in the query is spelled as in JSON, without a sign",
        arguments: [
            ("state?wait=0x1", 400), ("state?wait=1.", 400), ("state?wait=.5", 400), ("state?wait=%201", 400),
            ("state?wait=+1", 400), ("state?wait=01", 400), ("state?wait=1e400", 400), ("state?wait=0.25", nil),
            ("state?version=00", 400), ("state?version=-0", 400), ("state?version=%2B7", 400), ("state?version=7", nil),
            ("state?version=0", nil), ("state?wait=1&debounce=%2B5", 400), ("state?wait=1&debounce=05", 400),
            ("state?wait=1&debounce=5", nil), ("state?wait=1&debounce=1e2", nil), ("state?wait=1&debounce=1e5", 400),
            ("state?wait=1&debounce=0.5", 400), ("state?wait=1&debounce=18446744073709551616", 400),
            ("state?limit=01", 400), ("state?limit=1e2", nil), ("state?limit=5.0", nil), ("state?limit=1e400", 400),
            ("state?limit=18446744073709551616", 400), ("state?limit=", 400), ("state?offset=00", 400),
            ("changes?since=now&limit=01", 400), ("changes?since=now&limit=1e2", nil),
            ("changes?since=now&limit=+1", 400), ("changes?since=now&limit=0.5", 400),
            ("changes?since=now&limit=0e5", 400), ("changes?since=now&limit=1e400", 400),
            ("changes?since=now&limit=18446744073709551616", nil), ("schedule?limit=01", 400),
            ("schedule?limit=18446744073709551616", nil), ("schedule?limit=1e2", nil),
            ("streams/commits?offset=now&live=long-poll&cursor=1e300", 400),
            ("streams/commits?offset=now&live=long-poll&cursor=1000000000000000", 400),
            ("state?version=9007199254740993.0", 409), ("state?version=18446744073709551616", 409),
        ] as [(String, Int?)])
    func numbers(target: String, status: Int?) throws {
        let answer = try answer(Request(target: "/v1/\(target)"))

        if case .respond(let response) = answer {
            #expect(response.status.code == status)
        } else {
            #expect(status == nil, "\(answer)")
        }
    }
}
