/// A request of a load, for wrk and for raw sockets.
package struct LoadRequest: Equatable, Sendable {
    /// The method, such as `GET`.
    package var method: String
    /// The target, with its query.
    package var path: String
    /// The header fields beside `Host` and `Content-Length`.
    package var fields: [(name: String, value: String)]
    /// The body; empty for a GET.
    package var body: String

    /// Makes a request.
    package init(_ method: String, _ path: String, fields: [(name: String, value: String)] = [], body: String = "") {
        self.method = method
        self.path = path
        self.fields = fields
        self.body = body
    }

    /// Makes a GET.
    package static func get(_ path: String, fields: [(name: String, value: String)] = []) -> LoadRequest {
        LoadRequest("GET", path, fields: fields)
    }

    /// Makes a POST with a JSON body.
    package static func post(_ path: String, json: String) -> LoadRequest {
        LoadRequest("POST", path, fields: [("Content-Type", "application/json")], body: json)
    }

    /// The bytes of the request on the wire.
    package var bytes: [UInt8] {
        var text = "\(method) \(path) HTTP/1.1\r\nHost: 127.0.0.1\r\n"
        for field in fields { text += "\(field.name): \(field.value)\r\n" }
        if method != "GET" { text += "Content-Length: \(body.utf8.count)\r\n" }
        return Array((text + "\r\n" + body).utf8)
    }

    /// Whether two requests have the same bytes on the wire.
    package static func == (one: LoadRequest, other: LoadRequest) -> Bool { one.bytes == other.bytes }

    /// A Lua script that makes wrk send requests one after the other.
    ///
    /// The script builds all requests before the load begins, so that wrk's own work does not depend on their number.
    package static func wrkScript(_ requests: [LoadRequest]) -> String {
        let texts = requests.map { request in
            let fields = request.fields.map { "[\(quoted($0.name))] = \(quoted($0.value))" }.joined(separator: ", ")
            let body = request.method == "GET" ? "nil" : quoted(request.body)
            return "        wrk.format(\(quoted(request.method)), \(quoted(request.path)), {\(fields)}, \(body)),"
        }
        return """
            local requests, turn = {}, 0
            function init(args)
                requests = {
            \(texts.joined(separator: "\n"))
                }
            end
            function request()
                turn = turn % #requests + 1
                return requests[turn]
            end

            """
    }

    /// A Lua script that makes wrk send a request with another number in each place of `%d`, counted from `first`.
    ///
    /// The number has nine digits, so that the length of the body is constant.
    ///
    /// - Parameter count: how many requests the script builds before the load begins; it builds further ones as it goes.
    package static func wrkScript(numbered request: LoadRequest, from first: Int, count: Int) -> String {
        var text = request.bytes
        text.removeAll { $0 == UInt8(ascii: "\r") }
        let template = String(decoding: text, as: UTF8.self)
        let length = request.body.replacing("%d", with: "123456789").utf8.count
        let wire = template.replacing(
            "Content-Length: \(request.body.utf8.count)\n", with: "Content-Length: \(length)\n")
        let parts = wire.split(separator: "\n\n", maxSplits: 1, omittingEmptySubsequences: false)
        let head = parts[0].replacing("\n", with: "\r\n") + "\r\n\r\n"
        let body = parts.count > 1 ? String(parts[1]) : ""
        return """
            local requests, turn = {}, 0
            local function numbered(index)
                return (string.gsub(\(quoted(head + body)), "%%d", string.format("%09d", \(first) + index)))
            end
            function init(args)
                for index = 1, \(count) do requests[index] = numbered(index) end
            end
            function request()
                turn = turn + 1
                return requests[turn] or numbered(turn)
            end

            """
    }

    /// A Lua script that makes wrk send GETs with numbers below `count` in the place of `%d`, up to 100,000 different ones.
    ///
    /// Numbers behind one another are far apart, so that the data behind them is, too.
    package static func wrkScript(spreading path: String, over count: Int) -> String {
        // The step is a prime, which shares no divisor with the usual counts.
        """
        local requests, turn = {}, 0
        function init(args)
            for index = 0, \(min(count, 100_000) - 1) do
                local path = string.gsub(\(quoted(path)), "%%d", string.format("%d", index * 7919 % \(count)))
                requests[index + 1] = wrk.format("GET", path)
            end
        end
        function request()
            turn = turn % #requests + 1
            return requests[turn]
        end

        """
    }

    /// A Lua string in double quotes.
    private static func quoted(_ text: String) -> String {
        var result = "\""
        // A line end is one character of two scalars.
        for scalar in text.unicodeScalars {
            switch scalar {
            case "\"", "\\": result += "\\\(scalar)"
            case "\n": result += "\\n"
            case "\r": result += "\\r"
            default: result.unicodeScalars.append(scalar)
            }
        }
        return result + "\""
    }
}
