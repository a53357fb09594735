internal import StateJSON
internal import StateStore
internal import Synchronization

/// RFC 9485 as RE2 spells it; more is refused, so that every server of the standard gives the same answers.
struct IRegexp: Hashable, Sendable {
    private let text: ExactText

    enum Compiled: Sendable {
        case pattern(Pattern)
        case unreadable
        case tooLarge
    }

    /// Some milliseconds to compile, and about 16 bytes each; a class such as `\p{L}` has a thousand, and `\p{L}{20}`
    /// has it twenty times.
    static let sizeMax = 20_000
    /// Has room for a pattern of ``sizeMax`` and its matches.
    private static let memoryMax = 512 << 10

    init?(_ text: String, isWhole: Bool) {
        guard let translated = Self.translated(text) else { return nil }
        self.text = ExactText(isWhole ? "\\A(?:\(translated))\\z" : translated)
    }

    /// Takes up to some hundred milliseconds for a long one.
    func compiled() -> Compiled {
        do throws(Pattern.Fault) {
            let pattern = try Pattern(text.text, memoryMax: Self.memoryMax)
            return pattern.size <= Self.sizeMax ? .pattern(pattern) : .tooLarge
        } catch {
            return error.isTooLarge ? .tooLarge : .unreadable
        }
    }

    private static let grammar: Pattern = {
        let escape = #"\\(?:[()*+\-.?\[\\\]^{|}nrt]|[pP]\{[^(.}]{1,2}\})"#
        let member = #"(?:[^\[\]\\-]|\#(escape))"#
        let first = #"(?:\^?-|\^\#(member)|[^\[\]\\^-]|\#(escape))"#
        // A hyphen stands first, last, or between the two ends of a range.
        let characters = #"\[\#(first)(?:-?\#(member))*-?\]"#
        let atom = #"(?:[^()*+?\[\\\]{|}]|\#(escape)|\#(characters)|\))"#
        guard let made = try? Pattern(#"\A(?:\#(atom)(?:[*+?]|\{[0-9]+(?:,[0-9]*)?\})?|[(|])*\z"#) else {
            preconditionFailure("RE2 does not take the grammar of patterns")
        }
        return made
    }()

    /// For RE2, a dot is a carriage return as well, and a group costs more where its text is kept.
    private static func translated(_ text: String) -> String? {
        guard text.withBytes(grammar.matches) else { return nil }
        var (translated, isInClass, isEscaped, depth) = ("", false, false, 0)
        for character in text.unicodeScalars {
            switch character {
            case _ where isInClass || isEscaped: translated.unicodeScalars.append(character)
            case ".": translated += "[^\\n\\r]"
            case "(":
                translated += "(?:"
                depth += 1
            case ")" where depth == 0: return nil
            case ")":
                translated += ")"
                depth -= 1
            default: translated.unicodeScalars.append(character)
            }
            if !isEscaped, character == "[" || character == "]" { isInClass = character == "[" }
            isEscaped = character == "\\" && !isEscaped
        }
        return depth == 0 ? translated : nil
    }
}

/// RE2 takes up to 340 kB for each; any thread may call any method.
final class CompiledPatterns: Sendable {
    static let shared = CompiledPatterns()
    static let countMax = 128

    private let known = Mutex<[IRegexp: IRegexp.Compiled]>([:])

    /// A quick call, on a thread that serves others, throws ``QueryStop/elsewhere`` for what is yet to compile.
    func compiled(_ expression: IRegexp, isQuick: Bool) throws(QueryStop) -> IRegexp.Compiled {
        if let known = known.withLock({ $0[expression] }) { return known }
        guard !isQuick else { throw .elsewhere }
        let compiled = expression.compiled()
        known.withLock { known in
            // Patterns in use come again.
            if known.count >= Self.countMax { known = [:] }
            known[expression] = compiled
        }
        return compiled
    }
}

struct LiteralPattern: Sendable {
    let expression: IRegexp
    /// In characters from 0.
    let offset: Int

    static let expectation =
        #"expected a pattern of RFC 9485: write [0-9] for \d, [A-Za-z0-9_] for \w, [Aa] for a letter of either case, and \+ for a plus sign"#
}

extension [LiteralPattern] {
    func compiled(isQuick: Bool) throws -> [Pattern] {
        var sizeLeft = IRegexp.sizeMax
        return try map { (literal) throws -> Pattern in
            let compiled = try CompiledPatterns.shared.compiled(literal.expression, isQuick: isQuick)
            if case .unreadable = compiled {
                throw MemberQuery.Fault(
                    parameter: "filter", offset: literal.offset, detail: LiteralPattern.expectation)
            }
            if case .pattern(let pattern) = compiled {
                sizeLeft -= pattern.size
                if sizeLeft >= 0 { return pattern }
            }
            throw MemberQuery.Fault(
                parameter: "filter", offset: literal.offset,
                detail: "the patterns of a filter may repeat large classes such as \\p{L} some 20 times in all")
        }
    }
}
