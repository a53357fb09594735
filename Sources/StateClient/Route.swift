internal import Foundation
internal import StateJSON

struct Route: Sendable {
    /// Below the base URL, percent-encoded.
    let target: String
    /// The filter of the commits that can change the value, for a query; empty for a view, which any commit can change.
    let filter: String
    let rest: JSONPointer
    /// The parameters of a view or a query, each behind `&`.
    private let parameters: String

    init(_ path: String, _ parameters: String = "") throws(StateClient.Problem) {
        self.parameters = parameters
        if path.hasPrefix("view:"), ![".", ".."].contains(path.dropFirst(5)) {
            (target, filter, rest) = ("/views/" + percentEncoded(path.dropFirst(5)), "", .root)
            return
        }
        let tokens = path.split(separator: "/", omittingEmptySubsequences: false)
        // A URL cannot hold these tokens: the value around them is read.
        let odd = tokens.dropFirst().firstIndex { ["", ".", ".."].contains($0) } ?? tokens.endIndex
        guard tokens.first == "", parameters.isEmpty || odd == tokens.endIndex,
            let rest = JSONPointer(text: tokens[odd...].map { "/\($0)" }.joined())
        else {
            let detail = "a path is a JSON Pointer or view:<name>"
            throw StateClient.Problem(status: 400, code: "bad-pointer", detail: detail)
        }
        target = "/state" + tokens[..<odd].dropFirst().map { "/" + percentEncoded($0) }.joined()
        filter = parameter("path", path)
        self.rest = rest
    }

    func target(waiting: Bool) -> String {
        let query = parameters + (waiting ? "&wait=25" : "")
        return query.isEmpty ? target : target + "?" + query.dropFirst()
    }
}

func parameter(_ name: String, _ value: String?) -> String {
    value.map { "&\(name)=" + percentEncoded($0) } ?? ""
}

private let unreserved = CharacterSet(
    charactersIn: "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-._~")

func percentEncoded(_ text: some StringProtocol) -> String {
    // Nil is for texts that UTF-8 cannot encode, of which Swift has none.
    text.addingPercentEncoding(withAllowedCharacters: unreserved) ?? ""
}
