package import HTTPMessages
internal import HTTPTypes
internal import StateJSON
package import StateStore

package struct BisectRequest: Sendable {
    package var test: ValueTest
    /// The version at which the test does not hold; nil for the oldest that is kept.
    package var from: Cursor?
    package var to: Cursor?
    package var store: VisibleStore
    package var style: Style
}

extension Contract {
    func bisect(_ routed: RoutedRequest) throws(Problem) -> Plan {
        guard routed.request.method == .post else {
            return .respond(try Self.refuseMethod(routed.request, allowed: "POST, OPTIONS"))
        }
        let style = try Parameters(routed.target, known: ["pretty"]).style()
        var found: (test: ValueTest?, from: Cursor?, to: Cursor?)
        for (key, value) in try members(of: routed) {
            let pointer = JSONPointer([key])
            switch key {
            case "test": found.test = try test(value, pointer)
            case "from": found.from = try cursor(in: value, pointer, routed)
            case "to": found.to = try cursor(in: value, pointer, routed)
            default: throw Self.invalid(pointer, "this member is not known; the known members are test, from and to")
            }
        }
        guard let test = found.test else { throw Self.invalid(JSONPointer(["test"]), "expected a test") }
        return .bisect(
            BisectRequest(test: test, from: found.from, to: found.to, store: routed.store, style: style))
    }

    private func test(_ value: JSONValue, _ place: JSONPointer) throws(Problem) -> ValueTest {
        guard case .object(let members) = value, members.members.count == 2, case .string(let text)? = members["path"],
            let (key, wanted) = members.members.first(where: { $0.key != "path" })
        else {
            throw Self.invalid(
                place, "expected path, a JSON Pointer, and one of value, minimum, maximum, exists and repeats")
        }
        guard let pointer = JSONPointer(text: text) else {
            throw Self.invalid(place.appending("path"), JSONPointer.expectation(of: text))
        }
        let expectation: String
        switch (key, wanted) {
        case ("value", _): return ValueTest(pointer, .equals(wanted))
        case ("minimum", _) where wanted.isNumber: return ValueTest(pointer, .atLeast(wanted))
        case ("maximum", _) where wanted.isNumber: return ValueTest(pointer, .atMost(wanted))
        case ("exists", .bool(let exists)): return ValueTest(pointer, .exists(exists))
        case ("repeats", .bool(let repeats)): return ValueTest(pointer, .repeats(repeats))
        case ("minimum", _), ("maximum", _): expectation = "expected a number"
        case ("exists", _), ("repeats", _): expectation = "expected true or false"
        default:
            expectation = "this member is not known; the known members are value, minimum, maximum, exists and repeats"
        }
        throw Self.invalid(place.appending(key), expectation)
    }

    package func response(
        to request: BisectRequest, found: Result<Commit, Bisection.Miss>, looks: Int, latest: Cursor
    ) -> Response {
        let body = JSONWriter.object { writer in
            switch found {
            case .success(let commit):
                writer.member("found", true)
                writer.key("commit")
                write(commit, of: request.store, as: .patches, epoch: latest.epoch, to: &writer)
            case .failure(let miss):
                writer.member("found", false)
                writer.member("reason", miss.rawValue)
            }
            writer.member("looks", looks)
        }
        return .json(.ok, body, style: request.style, latest: latest)
    }
}
