internal import CDocuments
internal import StateJSON

/// `openapi.json` of CDocuments: the OpenAPI document without what depends on the store, its client and the settings.
///
/// It is OpenAPI but for what would stand in it many times, and is written out here:
/// - each GET is a HEAD as well;
/// - `parameters` and `headers` are lists of the names of components, and each answer has ``fieldsOfEveryAnswer``, too;
/// - `problems` are the statuses of an operation beside ``problemsOfEveryRoute``;
/// - a response of a problem has the meaning of each of its `codes`, in place of the words and the content;
/// - `description` of `info` is a list of paragraphs;
/// - words in capitals stand for what the settings and the domain say.
enum OpenAPISource {
    /// The document, with values for the words in capitals.
    static func document(with words: [String: JSONValue]) -> JSONValue {
        var document = filled(parsed, words)
        document["info"]["description"] = paragraphs(document["info"]["description"])
        document["paths"] = document["paths"].mapMembers { path, item in
            var methods = item.mapMembers { _, operation in writtenOut(operation, isProbe: !path.hasPrefix("/v1")) }
            if item["get"] != .null { methods["head"] = head(of: methods["get"]) }
            return methods
        }
        let problems = document["components"]["responses"].members
        document["components"]["responses"] = responses(problems)
        document["components"]["schemas"]["ServerCode"] = [
            "type": "string", "description": "A code of the server.", "enum": .array(codes(problems)),
        ]
        return document
    }

    /// The header fields that every answer can have.
    private static let fieldsOfEveryAnswer: [JSONValue] = [
        "State-Cursor", "State-Age", "Cache-Control", "X-Content-Type-Options", "Cross-Origin-Resource-Policy", "Vary",
        "traceparent",
    ]
    /// The statuses of the problems that any request to the contract, or to a probe, can have.
    private static let problemsOfEveryRoute = [400, 401, 404, 405, 408, 414, 421, 429, 431, 500, 501, 503, 505]
    private static let problemsOfProbes = [400, 401, 405, 503]

    private static var parsed: JSONValue {
        var length = 0
        let start = storekeeper_openapi(&length)
        do {
            return try JSONValue(parsing: Array(UnsafeRawBufferPointer(start: start, count: length)))
        } catch {
            preconditionFailure("openapi.json is no JSON: \(error)")
        }
    }

    /// Puts values in the place of words: a string that is a word becomes the value, and a word in a text is written.
    private static func filled(_ value: JSONValue, _ words: [String: JSONValue]) -> JSONValue {
        switch value {
        case .string(let text):
            words[text]
                ?? .string(
                    words.reduce(text) { text, word in
                        text.contains(word.key)
                            ? text.replacing(word.key, with: String(decoding: word.value.text, as: UTF8.self)) : text
                    })
        case .array(let elements): .array(elements.map { filled($0, words) })
        case .object: value.mapMembers { _, member in filled(member, words) }
        default: value
        }
    }

    // MARK: Operations

    private static func writtenOut(_ operation: JSONValue, isProbe: Bool) -> JSONValue {
        var operation = operation
        operation["parameters"] = .array(
            operation["parameters"].elements.map { OpenAPIDocument.reference("parameters", $0.string) })
        var responses = operation["responses"].mapMembers { _, answer in withFields(answer) }
        let statuses = isProbe ? problemsOfProbes : problemsOfEveryRoute
        for status in statuses.map(String.init) + operation["problems"].elements.map(\.string) {
            responses[status] = OpenAPIDocument.reference("responses", "Problem\(status)")
        }
        responses["default"] = OpenAPIDocument.reference("responses", "Problem")
        operation["responses"] = responses
        operation.members["problems"] = nil
        return operation
    }

    private static func withFields(_ answer: JSONValue) -> JSONValue {
        var answer = answer
        let names = (fieldsOfEveryAnswer + answer["headers"].elements).map(\.string)
        answer["headers"] = .of(names.map { ($0, OpenAPIDocument.reference("headers", $0)) })
        return answer
    }

    private static func head(of operation: JSONValue) -> JSONValue {
        var operation = operation
        operation["operationId"] = .string("head" + operation["operationId"].string.dropFirst(3))
        operation["summary"] = .string("The head of: " + operation["summary"].string)
        operation["description"] = "What GET answers, without the content; never a stream."
        operation["responses"] = operation["responses"].mapMembers { _, answer in
            var answer = answer
            answer.members["content"] = nil
            return answer
        }
        return operation
    }

    // MARK: Problems

    /// An answer for each status of a problem, with every code that it can have.
    private static func responses(_ problems: JSONObject) -> JSONValue {
        let content: JSONValue = [
            "application/problem+json": ["schema": OpenAPIDocument.reference("schemas", "Problem")]
        ]
        var responses = problems.members.map { status, problem in
            let lines = problem["codes"].members.members.map { code, meaning in
                "- \(code.isEmpty ? "a code of the domain" : "`\(code)`"): \(meaning.string)"
            }
            var response = withFields(problem)
            response["description"] = .string(
                "\(problem["description"].string)\n\n" + lines.joined(separator: "\n"))
            response["content"] = content
            response.members["codes"] = nil
            return ("Problem\(status)", response)
        }
        responses.append(("Problem", ["description": "Any other problem (RFC 9457).", "content": content]))
        return .of(responses)
    }

    /// The codes of the server, each once, in the order of their statuses.
    private static func codes(_ problems: JSONObject) -> [JSONValue] {
        var seen: Set<String> = [""]
        return problems.members.flatMap { $0.value["codes"].members.members.map(\.key) }
            .filter { seen.insert($0).inserted }.map(JSONValue.string)
    }

    private static func paragraphs(_ lines: JSONValue) -> JSONValue {
        .string(lines.elements.map(\.string).joined(separator: "\n\n"))
    }
}

/// Access to the parts of a document whose form is known; what is not there is null, empty, or an empty text.
extension JSONValue {
    /// An object with these members.
    static func of(_ members: (String, JSONValue)...) -> JSONValue { of(members) }

    /// An object with these members.
    static func of(_ members: [(String, JSONValue)]) -> JSONValue {
        var object = JSONObject()
        for (key, value) in members { object[key] = value }
        return .object(object)
    }

    /// The members of an object.
    var members: JSONObject {
        get { if case .object(let object) = self { object } else { JSONObject() } }
        set { self = .object(newValue) }
    }

    /// The elements of an array.
    var elements: [JSONValue] { if case .array(let elements) = self { elements } else { [] } }

    /// The text of a string, or a number as JSON spells it.
    var string: String {
        switch self {
        case .string(let text): text
        case .integer(let number): "\(number)"
        default: ""
        }
    }

    /// A member of an object.
    subscript(key: String) -> JSONValue {
        get { members[key] ?? .null }
        set { members[key] = newValue }
    }

    /// The object with other values for its members.
    func mapMembers(_ value: (_ key: String, _ value: JSONValue) -> JSONValue) -> JSONValue {
        .of(members.members.map { ($0.key, value($0.key, $0.value)) })
    }
}
